#include "tools/oclrun/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/oclrun/print.h"

namespace oclc::oclrun {
namespace {

bool colored() {
  if (console().color != Color::automatic) return console().color == Color::always;
  const char* off = std::getenv("NO_COLOR");
  return !(off && *off) && ::isatty(STDERR_FILENO) != 0;
}

}  // namespace

Console& console() {
  static Console one;
  return one;
}

void tell(const char* kind, const std::string& text) {
  const std::string name = kind;
  const char* color = !colored() ? "" : name == "error" ? "\033[1;31m" : name == "warning" ? "\033[1;33m" : "\033[1;36m";
  std::fprintf(stderr, "oclrun: %s%s:%s ", color, kind, *color ? "\033[0m" : "");
  print(stderr, text + "\n");
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (console().progress == ProgressForm::json) json();
  if (console().progress == ProgressForm::automatic && ::isatty(STDERR_FILENO)) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::told(std::uint32_t done, std::uint32_t total) {
  const std::lock_guard lock(mutex_);
  parts_done_ = done;
  parts_ = total;
  told_at_ = seconds();
  if (console().progress == ProgressForm::json) json();
}

double Progress::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

double Progress::seconds_left() const {
  if (parts_done_ == 0 || parts_done_ > parts_) return -1;
  return std::max(0.0, told_at_ / parts_done_ * parts_ - seconds());
}

void Progress::json() const {
  const auto rounded = [](double s) { return std::round(s * 1000) / 1000; };
  nlohmann::json line = {{"stage", what_}, {"elapsed_s", rounded(seconds())}};
  if (parts_ > 0) line.update({{"done", parts_done_}, {"total", parts_}});
  if (seconds_left() >= 0) line["left_s"] = rounded(seconds_left());
  std::fprintf(stderr, "%s\n", line.dump().c_str());
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!changed_.wait_for(lock, std::chrono::milliseconds(shown ? 200 : 1000), [this] { return done_; })) {
    std::string line = what_ + (parts_ > 1 ? " " + std::to_string(parts_done_) + "/" + std::to_string(parts_) : "");
    line += " ... " + std::to_string(std::lround(seconds())) + " s";
    if (const double left = seconds_left(); left >= 0.5) line += ", about " + std::to_string(std::lround(left)) + " s left";
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    shown = true;
  }
  if (shown) std::fprintf(stderr, "\r\033[K");
}

}  // namespace oclc::oclrun
