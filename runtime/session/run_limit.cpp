#include "runtime/session/run_limit.h"

#include <cstdio>
#include <string>

#include "runtime/failure.h"

namespace oclc::runtime {
namespace {

std::string ms_text(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g ms", static_cast<double>(ns) * 1e-6);
  return text;
}

}  // namespace

void RunLimit::begin(std::uint64_t limit_ns) {
  cancelled_ = false;
  limit_ns_ = limit_ns;
  begin_ = std::chrono::steady_clock::now();
}

std::uint64_t RunLimit::taken_ns() const {
  return static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin_) / std::chrono::nanoseconds(1));
}

void RunLimit::check() const {
  if (cancelled_.load(std::memory_order_relaxed)) throw Failure(OCLC_E_CANCELLED, "the run was cancelled");
  if (timed() && taken_ns() > limit_ns_)
    throw Failure(OCLC_E_DEADLINE, "the run was stopped: its time limit of " + ms_text(limit_ns_) +
                                       " has passed; allow more (oclc_session_set_time_limit), or give it less to do");
}

void RunLimit::check_end() const {
  const std::uint64_t taken = timed() ? taken_ns() : 0;
  if (timed() && taken > limit_ns_)
    throw Failure(OCLC_E_DEADLINE, "the run ended after " + ms_text(taken) + ", behind its time limit of " +
                                       ms_text(limit_ns_) +
                                       "; allow more (oclc_session_set_time_limit), or give it less to do");
}

}  // namespace oclc::runtime
