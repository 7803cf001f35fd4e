// Tells of work that keeps somebody waiting: drivers compile kernels when they are first used, which can take minutes.
#pragma once
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace examples {

// After a second, and every ten from then on, a line on standard error; on a terminal one line that counts the seconds.
class Waiting {
 public:
  explicit Waiting(std::string what) : what_(std::move(what)), thread_([this] { show(); }) {}
  ~Waiting() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void show() {
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    std::chrono::milliseconds pause(1000);
    bool shown = false;
    while (!changed_.wait_for(lock, pause, [this] { return done_; })) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      std::fprintf(stderr, "%s%s (%.0f s)%s", terminal ? "\r" : "", what_.c_str(), seconds, terminal ? " \033[K" : "\n");
      pause = std::chrono::milliseconds(terminal ? 200 : 10000);
      shown = terminal;
    }
    if (shown) std::fputs("\r\033[K", stderr);
  }

  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace examples
