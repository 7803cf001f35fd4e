#include "runtime/program/build_queue.h"

#include <poll.h>

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

namespace oclc::runtime {
namespace {

// Processes that make a context at a time: NVIDIA's driver 580 takes 0.25 s for one alone, 0.5 s for each of four at once and 1
// s for each of eight (H100), so that all at once would all begin late.
constexpr int kOpenAtOnce = 2;
// Who ends the queue waits so long at most.
constexpr int kPollMs = 10;

}  // namespace

BuildQueue::BuildQueue(const Device& device, std::vector<BuildJob> jobs, unsigned processes, Builders::Tell tell)
    : device_(device), jobs_(std::move(jobs)), tell_(std::move(tell)), processes_(processes), waiting_(jobs_.size()) {
  std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
}

BuildQueue::~BuildQueue() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  if (feeder_.joinable()) feeder_.join();
}

void BuildQueue::start() {
  const std::lock_guard lock(mutex_);
  if (feeder_.joinable() || waiting_.empty()) return;
  try {
    feeder_ = std::thread([this] { feed(); });
  } catch (const std::system_error&) {  // no thread: this process builds all
  }
}

std::optional<BuildQueue::Taken> BuildQueue::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !waiting_.empty() || !built_.empty() || begun_ == 0; });
  if (!built_.empty()) {
    const std::uint32_t unit = built_.front();
    built_.pop_front();
    return Taken{unit, true};
  }
  if (waiting_.empty()) return std::nullopt;
  const std::size_t job = waiting_.front();
  waiting_.pop_front();
  return Taken{jobs_[job].unit, false};
}

void BuildQueue::feed() {
  try {
    for (Process& process : processes_) process.runs.start(device_, BuilderProcess::Pace::at_once);
    while (!is_over()) {
      open_some();
      give_work();
      take_replies();
    }
  } catch (...) {  // without memory no process helps
  }
  for (Process& process : processes_) end(process);
}

// Whether no process can do more.
bool BuildQueue::is_over() {
  const bool all_ended = std::none_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.runs.runs(); });
  const std::lock_guard lock(mutex_);
  return all_ended || stops_ || (waiting_.empty() && begun_ == 0);
}

void BuildQueue::open_some() {
  auto opening = std::count_if(processes_.begin(), processes_.end(),
                               [](const Process& p) { return p.runs.runs() && p.was_asked_to_open && !p.is_open; });
  for (Process& process : processes_) {
    if (opening >= kOpenAtOnce) return;
    if (!process.runs.runs() || process.was_asked_to_open) continue;
    process.was_asked_to_open = true;
    if (process.runs.ask(BuilderRequest::kOpen, 0, "", ""))
      ++opening;
    else
      lost(process);
  }
}

void BuildQueue::give_work() {
  for (Process& process : processes_) {
    if (!process.runs.runs() || process.job) continue;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        process.runs.end();
        continue;
      }
      if (!process.is_open) continue;
      process.job = waiting_.front();
      waiting_.pop_front();
      ++begun_;
    }
    const BuildJob& job = jobs_[*process.job];
    if (!process.runs.ask(job.kind(), job.unit, job.options, job.source)) lost(process);
  }
}

void BuildQueue::take_replies() {
  std::vector<pollfd> sockets;
  for (const Process& process : processes_) sockets.push_back({process.runs.socket(), POLLIN, 0});
  if (::poll(sockets.data(), sockets.size(), kPollMs) <= 0) return;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (sockets[i].revents == 0 || !process.runs.runs()) continue;
    if (!process.runs.take_reply(0)) {
      lost(process);
    } else if (!process.job) {
      process.is_open = true;
    } else {
      // What it could not build fails here as well, with the driver's words.
      const std::lock_guard lock(mutex_);
      built_.push_back(jobs_[*std::exchange(process.job, std::nullopt)].unit);
      --begun_;
      changed_.notify_all();
    }
  }
}

void BuildQueue::lost(Process& process) {
  end(process);
  if (!std::exchange(told_, true)) tell_(kBuilderEnded);
}

// What it was at is built by another one, or here.
void BuildQueue::end(Process& process) {
  process.runs.end();
  if (!process.job) return;
  const std::lock_guard lock(mutex_);
  waiting_.push_front(*std::exchange(process.job, std::nullopt));
  --begun_;
  changed_.notify_all();
}

}  // namespace oclc::runtime
