#include "tools/oclc/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace oclc::tool {

Progress::Progress(ProgressForm form) : json_(form == ProgressForm::json) {
  if (form == ProgressForm::automatic && ::isatty(STDERR_FILENO)) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::stage(std::string_view name) {
  const std::lock_guard lock(mutex_);
  stage_ = name;
  if (json_) fmt::print(stderr, "{{\"stage\": \"{}\", \"elapsed_s\": {:.3f}}}\n", stage_, seconds());
}

double Progress::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

void Progress::show() {
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!changed_.wait_for(lock, std::chrono::milliseconds(shown ? 200 : 1000), [this] { return done_; })) {
    fmt::print(stderr, "\r\033[Koclc: {} ... {:.0f} s", stage_, seconds());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) fmt::print(stderr, "\r\033[K");
}

}  // namespace oclc::tool
