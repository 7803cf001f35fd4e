// Does something on a thread of its own if the object still lives after a while.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace oclc::runtime {

class LateStart {
 public:
  // `action` throws nothing that matters: what it throws is dropped.
  LateStart(std::chrono::milliseconds patience, std::function<void()> action) {
    thread_ = std::thread([this, patience, action = std::move(action)] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, patience, [this] { return over_; })) return;
      try {
        action();
      } catch (...) {
      }
    });
  }
  // Waits for the action, if it has begun.
  ~LateStart() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  LateStart(const LateStart&) = delete;
  LateStart& operator=(const LateStart&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace oclc::runtime
