// What a session enqueues for a run, and what it waits for.
#include <chrono>
#include <optional>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"
#include "runtime/session/nan_check.h"
#include "runtime/session/session.h"

namespace oclc::runtime {

namespace fb = oclc::plan;

namespace {

// Time and runs with unoptimized kernels, behind the first: then a session waits for the optimized ones.
constexpr std::uint64_t kMostUnoptimizedNs = 1000000000;
constexpr std::uint32_t kMostUnoptimizedSubmits = 2;

}  // namespace

void Session::enqueue_commands(Entry& e, std::uint32_t wait_count, const cl_event* wait, Transfers transfers) {
  if (wait_count > 0)
    check_cl(clEnqueueBarrierWithWaitList(context_->queue(), wait_count, wait, nullptr), "waiting for the caller's events");
  strings_.reset();
  if (transfers.in) write_inputs(e);
  enqueue_schedule(e);
  if (transfers.out) read_outputs(e);
}

void Session::copy(const Port& p, const Place& from, const Place& to, std::uint64_t bytes) {
  check_cl(clEnqueueCopyBuffer(context_->queue(), from.memory, to.memory, from.offset, to.offset, bytes, 0, nullptr, nullptr),
           "copying " + p.label);
}

void Session::write_inputs(const Entry& e) {
  for (const Port& p : e.ports) {
    const std::uint64_t bytes = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (!p.input || bytes == 0 || !p.bound) continue;
    if (is_copied(p)) copy(p, {p.bound->memory.get(), p.bound->offset, 0}, p.copied, bytes);
    if (!p.bound->host || p.in_place) continue;
    if (p.binding->dtype() == fb::DType::string_)
      write_texts(p);
    else
      check_cl(clEnqueueWriteBuffer(context_->queue(), p.copied.memory, CL_FALSE, p.copied.offset, bytes, p.bound->host, 0,
                                    nullptr, nullptr),
               "writing " + p.label);
  }
}

void Session::enqueue_schedule(Entry& e) {
  records_.clear();
  recorded_schedule_ = profile_ ? e.schedule.get() : nullptr;
  stats_.command_buffer = 0;
  const bool replays = !profile_ && !nan_check_ && !limit_.timed();
  // Drivers check a launch less when it is recorded (PoCL 3.1 reads what a refused one leaves behind): the run before showed
  // that each is taken.
  if (replays && e.was_enqueued && !e.recorded && !e.recording_failed && e.schedule->replayable() &&
      CommandBuffer::wanted(*context_)) {
    e.recorded = CommandBuffer::record(*context_, *e.schedule);
    e.recording_failed = !e.recorded;
  }
  if (replays && e.recorded && e.recorded->enqueue()) {
    AwakeWorkers::begin();
    stats_.launches = e.recorded->launches();
    stats_.command_buffer = 1;
    return;
  }
  scratch_ = e.symbols;
  std::optional<NanCheck> check;
  if (nan_check_) {
    const auto index = static_cast<std::uint32_t>(&e - entries_.data());
    check.emplace(*context_, *loaded_, index, e.memory, state_sizes_, *e.schedule).begin();
  }
  if (e.schedule->worth_waiting() && (unoptimized_ns_ > kMostUnoptimizedNs || unoptimized_submits_ > kMostUnoptimizedSubmits))
    e.schedule->wait_for_optimized();
  stats_.launches =
      e.schedule->enqueue(context_->queue_of_run(), scratch_, profile_ ? &records_ : nullptr, check ? &*check : nullptr);
  e.was_enqueued = true;
  if (stats_.unoptimized && !e.schedule->unoptimized() && stats_.optimized_ns == 0)
    stats_.optimized_ns =
        static_cast<std::uint64_t>((std::chrono::steady_clock::now() - created_) / std::chrono::nanoseconds(1));
  stats_.unoptimized = e.schedule->unoptimized();
  if (e.schedule->reads()) e.found = scratch_;
}

// Of an output with these symbols. What is computed while the plan runs has to stay within the memory that was laid out for it.
std::uint64_t Session::found_bytes(const Entry& e, const Port& p, std::span<const std::int64_t> symbols) const {
  const auto buffer = static_cast<std::size_t>(p.binding->buffer());
  const fb::Expr* size = plan().buffers()->Get(static_cast<std::uint32_t>(buffer))->bytes();
  const std::uint64_t room = e.memory.sizes[buffer];
  if (!is_computed(size)) return room;
  const std::int64_t bytes = evaluate(size, symbols, "the size of an output");
  if (bytes < 0 || static_cast<std::uint64_t>(bytes) > room)
    throw Failure(OCLC_E_PLAN, package_->name() + ": invalid plan: " + p.label + " takes " + std::to_string(bytes) +
                                   " bytes, its buffer has " + std::to_string(room));
  return static_cast<std::uint64_t>(bytes);
}

void Session::read_outputs(const Entry& e) {
  for (const Port& p : e.ports) {
    if (p.input || !p.bound) continue;
    const std::uint64_t bytes = found_bytes(e, p, scratch_);
    if (bytes == 0) continue;
    if (is_copied(p)) copy(p, p.copied, {p.bound->memory.get(), p.bound->offset, 0}, bytes);
    if (!p.bound->host || p.in_place) continue;
    if (p.binding->dtype() == fb::DType::string_)
      read_texts(p, bytes);
    else
      check_cl(clEnqueueReadBuffer(context_->queue(), p.copied.memory, CL_FALSE, p.copied.offset, bytes, p.bound->host, 0,
                                   nullptr, nullptr),
               "reading " + p.label);
  }
}

void Session::enqueue(std::uint32_t index, std::uint32_t wait_count, const cl_event* wait, cl_event* event, bool flush) {
  if (wait_count > 0 && !wait) throw Failure(OCLC_E_ARGUMENT, "the wait list is NULL");
  limit_.begin(time_limit_ns_);
  prepare(index);
  entries_[index].schedule->begin_run();
  cl_event done = nullptr;
  try {
    enqueue_commands(entries_[index], wait_count, wait, {});
    if (event) check_cl(clEnqueueMarkerWithWaitList(context_->queue(), 0, nullptr, &done), "marking the end of the run");
    if (flush) check_cl(clFlush(context_->queue()), "starting the run");
  } catch (...) {
    // What was enqueued still uses the caller's memory.
    if (done) clReleaseEvent(done);
    clFinish(context_->queue());
    throw;
  }
  if (event) *event = done;
}

void Session::read_output(std::uint32_t index, const char* name, void* host, std::uint64_t bytes) {
  Entry& e = entry(index);
  const Port& p = port(e, OCLC_OUTPUT, name);
  check_ran(e, p);
  const auto buffer = static_cast<std::size_t>(p.binding->buffer());
  const std::uint64_t found = found_bytes(e, p, e.found.empty() ? e.symbols : e.found);
  const std::uint64_t element = package::dtype_bytes(p.binding->dtype());
  const bool texts = p.binding->dtype() == fb::DType::string_;
  const std::uint64_t needed = texts ? found / element * sizeof(const char*) : found;
  if (needed == 0) return;
  if (!host) throw Failure(OCLC_E_ARGUMENT, p.label + ": the host pointer is NULL");
  if (bytes < needed)
    throw Failure(OCLC_E_BINDING,
                  p.label + " takes " + std::to_string(needed) + " bytes, found room for " + std::to_string(bytes));
  const Place& place = e.schedule->places()[buffer];
  std::vector<std::int32_t> numbers(texts ? found / sizeof(std::int32_t) : 0);
  check_cl(clEnqueueReadBuffer(context_->queue(), place.memory, CL_TRUE, place.offset, found, texts ? numbers.data() : host, 0,
                               nullptr, nullptr),
           "reading " + p.label);
  for (std::size_t i = 0; i < numbers.size(); ++i) static_cast<const char**>(host)[i] = strings_.require(numbers[i]).c_str();
}

void Session::submit(std::uint32_t index) {
  prepare(index);
  unoptimized_submits_ += entries_[index].schedule->optimizing();
  limit_.begin(0);
  enqueue_commands(entries_[index], 0, nullptr, {});
}

void Session::run(std::uint32_t index) {
  const bool optimizing = entry(index).schedule->optimizing();
  const auto begin = std::chrono::steady_clock::now();
  cl_event done = nullptr;
  enqueue(index, 0, nullptr, &done);
  const ClEvent owner(done);
  if (AwakeWorkers* awake = context_->awake()) {
    awake->linger(done);
    AwakeWorkers::look(done);
  }
  check_cl(clWaitForEvents(1, &done), "running entry point '" + entries_[index].name + "'");
  limit_.check_end();
  if (optimizing)
    unoptimized_ns_ += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1));
}

}  // namespace oclc::runtime
