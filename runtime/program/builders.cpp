#include "runtime/program/builders.h"

#include <algorithm>
#include <utility>

namespace oclc::runtime {
namespace {

constexpr int kLookMs = 100;

}  // namespace

Builders::Builders(const Device& device, std::vector<BuildJob> jobs, Work work, Pace pace, Tell tell)
    : device_(device), jobs_(std::move(jobs)), work_(work), pace_(pace), tell_(std::move(tell)) {
  for (const BuildJob& job : jobs_) {
    if (job.process >= processes_.size()) processes_.resize(job.process + 1);
    processes_[job.process].units.push_back(job.unit);
  }
}

void Builders::start() {
  const std::lock_guard lock(mutex_);
  start_locked();
}

void Builders::start_locked() {
  for (Process& process : processes_)
    if (!process.runs.runs() && !process.units.empty()) start_one(process);
}

void Builders::start_one(Process& process) {
  process.runs.start(device_, pace_);
  for (const std::uint32_t unit : process.units) {
    const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const BuildJob& j) { return j.unit == unit; });
    if (process.runs.runs() && ask(process, job->kind(), unit, job->options, job->source))
      process.unanswered.emplace_back(unit, "");
  }
}

void Builders::lost(Process& process) {
  process.runs.end();
  process.unanswered.clear();
  if (!std::exchange(told_, true)) tell_(kBuilderEnded);
}

bool Builders::ask(Process& process, std::uint32_t kind, std::uint32_t unit, const std::string& first,
                   const std::string& second) {
  if (process.runs.ask(kind, unit, first, second)) return true;
  lost(process);
  return false;
}

Builders::Process* Builders::process_of(std::uint32_t unit) {
  for (Process& process : processes_)
    if (std::find(process.units.begin(), process.units.end(), unit) != process.units.end()) return &process;
  return nullptr;
}

bool Builders::builds(std::uint32_t unit) const {
  return work_ == Work::programs_and_kernels &&
         std::any_of(jobs_.begin(), jobs_.end(), [&](const BuildJob& j) { return j.unit == unit; });
}

void Builders::want(std::uint32_t unit, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  Process* process = process_of(unit);
  if (!process || told_ || !wanted_.emplace(unit, asked_for(kernel)).second) return;
  start_locked();
  if (work_ == Work::programs) return;  // each is built as its process begins
  if (process->runs.runs() && ask(*process, BuilderRequest::kKernel, unit, kernel, ""))
    process->unanswered.emplace_back(unit, kernel);
}

// Whether an answer came in time.
bool Builders::take_reply(Process& process, int timeout_ms) {
  const auto reply = process.runs.take_reply(timeout_ms);
  if (!process.runs.runs() || (reply && process.unanswered.empty())) lost(process);
  if (!reply || process.unanswered.empty()) return false;
  // What it could not build fails here as well, with the driver's words.
  done_.insert(process.unanswered.front());
  process.unanswered.erase(process.unanswered.begin());
  return true;
}

void Builders::wait(std::uint32_t unit, const std::string& kernel, const Look& look) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      Process* process = process_of(unit);
      if (!process || !process->runs.runs()) return;
      const auto asked = std::find(process->unanswered.begin(), process->unanswered.end(), std::pair(unit, kernel));
      if (asked == process->unanswered.end()) return;
      if (take_reply(*process, kLookMs)) continue;
    }
    if (look) look();
  }
}

void Builders::wait_for_unit(std::uint32_t unit, const Look& look) { wait(unit, "", look); }
void Builders::wait_for_kernel(std::uint32_t unit, const std::string& kernel, const Look& look) {
  wait(unit, asked_for(kernel), look);
}

bool Builders::is_done(std::uint32_t unit, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  Process* process = process_of(unit);
  while (process && process->runs.runs() && take_reply(*process, 0)) {
  }
  if (!process || !process->runs.runs()) return true;
  const auto& left = process->unanswered;
  return std::find(left.begin(), left.end(), std::pair(unit, asked_for(kernel))) == left.end();
}

std::pair<std::uint32_t, std::uint32_t> Builders::asked_and_done() const {
  const std::lock_guard lock(mutex_);
  std::uint32_t done = 0;
  for (const auto& item : wanted_) done += static_cast<std::uint32_t>(done_.count(item));
  return {static_cast<std::uint32_t>(wanted_.size()), done};
}

void Builders::rest() {
  const std::lock_guard lock(mutex_);
  const bool busy = std::any_of(processes_.begin(), processes_.end(), [](const Process& p) { return !p.unanswered.empty(); });
  for (Process& process : processes_)
    if (!busy) process.runs.end();
}

}  // namespace oclc::runtime
