#include "tools/oclrun/progress.h"

#include <unistd.h>

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
  if (console().progress == ProgressForm::json) json(0, 0);
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
  part_ = total > 1 ? " " + std::to_string(done) + "/" + std::to_string(total) : "";
  if (console().progress == ProgressForm::json) json(done, total);
}

double Progress::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

void Progress::json(std::uint32_t done, std::uint32_t total) const {
  nlohmann::json line = {{"stage", what_}, {"elapsed_s", std::round(seconds() * 1000) / 1000}};
  if (total > 0) line.update({{"done", done}, {"total", total}});
  std::fprintf(stderr, "%s\n", line.dump().c_str());
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!changed_.wait_for(lock, std::chrono::milliseconds(shown ? 200 : 1000), [this] { return done_; })) {
    std::fprintf(stderr, "\r%s%s ... %.0f s ", what_.c_str(), part_.c_str(), seconds());
    shown = true;
  }
  if (shown) std::fprintf(stderr, "\r\033[K");
}

}  // namespace oclc::oclrun
