#include "tools/oclrun/training/train_log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/io/tensor.h"
#include "tools/oclrun/progress.h"

namespace oclc::oclrun {
namespace {

// Shortest form that reads back as the same number, with a point in every locale.
std::string text(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

constexpr char kJsonEnd[] = "\n]}\n";

}  // namespace

TrainLog::TrainLog(const std::string& path, const std::vector<std::string>& columns) : path_(path) {
  if (path_.empty()) return;
  json_ = path_.ends_with(".json");
  out_.open(path_, std::ios::binary | std::ios::trunc);
  if (json_) {
    out_ << "{\"schema\": 1, \"columns\": " << nlohmann::json(columns).dump() << ", \"rows\": [" << kJsonEnd;
  } else {
    for (std::size_t i = 0; i < columns.size(); ++i) out_ << (i ? "," : "") << columns[i];
    out_ << "\n";
  }
  check();
}

void TrainLog::check() {
  out_.flush();
  if (!out_) throw io::FileError(io::FileProblem::io, path_ + ": cannot write the log");
}

void TrainLog::row(std::uint64_t step, const std::vector<double>& values) {
  if (path_.empty()) return;
  if (json_) out_.seekp(-static_cast<std::streamoff>(sizeof kJsonEnd - 1), std::ios::end);
  if (json_) out_ << (first_ ? "\n" : ",\n") << "[";
  first_ = false;
  out_ << step;
  for (const double v : values) out_ << (json_ ? ", " : ",") << (json_ && !std::isfinite(v) ? "null" : text(v));
  out_ << (json_ ? std::string("]") + kJsonEnd : std::string("\n"));
  check();
}

TrainProgress::TrainProgress(std::uint64_t steps, std::uint64_t batch, bool enabled)
    : steps_(steps),
      batch_(batch),
      enabled_(enabled && console().progress == ProgressForm::automatic && ::isatty(STDERR_FILENO)),
      json_(enabled && console().progress == ProgressForm::json) {}

TrainProgress::~TrainProgress() { wipe(); }

void TrainProgress::wipe() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

double TrainProgress::seconds() const { return std::chrono::duration<double>(last_ - begin_).count(); }

double TrainProgress::samples_per_second() const {
  const bool one = done_ <= first_done_;
  const double seconds = one ? this->seconds() : std::chrono::duration<double>(last_ - first_).count();
  return static_cast<double>((one ? done_ : done_ - first_done_) * batch_) / std::max(seconds, 1e-9);
}

void TrainProgress::done(std::uint64_t steps, std::optional<double> loss) {
  const auto now = Clock::now();
  if (done_ == 0) first_ = now, first_done_ = steps;
  done_ = steps;
  last_ = now;
  if (json_ && (now - drawn_ >= std::chrono::milliseconds(100) || steps == steps_)) {
    drawn_ = now;
    nlohmann::json line = {{"stage", "training"}, {"done", done_}, {"total", steps_}, {"samples_per_s", samples_per_second()}};
    if (loss && std::isfinite(*loss)) line["loss"] = *loss;
    std::fprintf(stderr, "%s\n", line.dump().c_str());
  }
  if (!enabled_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  shown_ = true;
  const double rate = samples_per_second();
  const auto eta = static_cast<std::uint64_t>(static_cast<double>((steps_ - done_) * batch_) / std::max(rate, 1e-9) + 0.5);
  std::fprintf(stderr, "\rstep %llu/%llu", static_cast<unsigned long long>(done_), static_cast<unsigned long long>(steps_));
  if (loss) std::fprintf(stderr, "  loss %.5g", *loss);
  std::fprintf(stderr, "  %.4g samples/s  ETA %llu:%02llu\033[K", rate, static_cast<unsigned long long>(eta / 60),
               static_cast<unsigned long long>(eta % 60));
}

}  // namespace oclc::oclrun
