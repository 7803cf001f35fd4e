// Many consecutive runs of an entry point, which the host neither feeds nor waits for in between.
#include <algorithm>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"
#include "runtime/session/session.h"

namespace oclc::runtime {
namespace {

// Of the values of all series that lie on the device at once; a series of more is fed and read in pieces.
constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 20;
// Steps between two looks at how far the device is: a queue that is never looked at grows with the steps.
constexpr std::uint64_t kStepsAhead = 128;

}  // namespace

// An input's or output's values in each step.
struct Session::Series {
  Port* port;
  std::byte* host;
  std::uint64_t bytes = 0;  // of one step
  ClMem value;              // that kernels read or write
  ClMem piece;              // of several steps
};

// What the caller has bound comes back when the steps are done, or failed.
class Session::LentPorts {
 public:
  LentPorts(Session& session, Entry& entry) : session_(session), entry_(entry) {}
  ~LentPorts() {
    if (ports_.empty()) return;
    clFinish(session_.context_->queue());
    for (auto& [port, bound] : ports_) {
      port->bound = std::move(bound);
      port->generation = ++session_.generation_;
    }
    entry_.dirty = true;
  }
  LentPorts(const LentPorts&) = delete;
  LentPorts& operator=(const LentPorts&) = delete;

  void lend(Port& port) {
    for (const auto& [lent, bound] : ports_)
      if (lent == &port) throw Failure(OCLC_E_ARGUMENT, port.label + " has two series");
    ports_.emplace_back(&port, std::move(port.bound));
    port.bound.reset();
    entry_.dirty = true;
  }

 private:
  Session& session_;
  Entry& entry_;
  std::vector<std::pair<Port*, std::optional<Bound>>> ports_;
};

// Binds the input or output to memory for one step.
void Session::bind_series(std::uint32_t index, std::uint64_t steps, const oclc_series& given, Series& series) {
  const Port& p = *series.port;
  if (p.binding->dtype() == oclc::plan::DType::string_)
    throw Failure(OCLC_E_UNSUPPORTED, p.label + ": a series holds numbers, found strings; run the steps one by one");
  if (given.dtype != static_cast<oclc_dtype>(p.binding->dtype()))
    throw Failure(OCLC_E_BINDING, p.label + ": wanted " + oclc_dtype_name(static_cast<oclc_dtype>(p.binding->dtype())) +
                                      ", found " + oclc_dtype_name(given.dtype));
  std::vector<std::int64_t> shape;
  if (given.shape) {
    const std::span<const std::int64_t> all(given.shape, given.rank);
    if (given.rank != rank(*p.binding) + 1 || all[0] < 0 || static_cast<std::uint64_t>(all[0]) < steps)
      throw Failure(OCLC_E_BINDING, p.label + ": wanted " + std::to_string(steps) + " steps of shape " +
                                        shape_text(plan(), p.binding->shape()) + ", found " + shape_text(all));
    shape.assign(all.begin() + 1, all.end());
  } else if (p.input) {
    throw Failure(OCLC_E_BINDING, p.label + ": its shape is NULL");
  }
  std::uint64_t bytes = 0;
  if (p.input) {
    static constexpr std::int64_t kScalar = 0;
    oclc_tensor one = OCLC_INIT(oclc_tensor);
    one.dtype = given.dtype;
    one.rank = static_cast<std::uint32_t>(shape.size());
    one.shape = shape.empty() ? &kScalar : shape.data();
    bytes = check_input(index, given.name, one);
  } else {
    for (std::uint32_t d = 0; d < rank(*p.binding); ++d)
      if (is_computed(p.binding->shape()->Get(d)))
        throw Failure(OCLC_E_UNSUPPORTED, p.label + ": a series has one shape, found " +
                                              shape_text(plan(), p.binding->shape()) +
                                              ", which each run finds; run the steps one by one");
    const std::vector<std::int64_t> found = this->shape(index, OCLC_OUTPUT, given.name, &bytes);
    if (given.shape && shape != found)
      throw Failure(OCLC_E_BINDING, p.label + ": wanted steps of shape " + shape_text(found) + ", found " + shape_text(shape));
    shape = found;
  }
  std::uint64_t needed = 0;
  if (__builtin_mul_overflow(bytes, steps, &needed) || given.bytes < needed)
    throw Failure(OCLC_E_BINDING, p.label + ": " + std::to_string(steps) + " steps of shape " + shape_text(shape) + " need " +
                                      std::to_string(steps) + " times " + std::to_string(bytes) + " bytes, found " +
                                      std::to_string(given.bytes));
  if (needed > 0 && !given.host) throw Failure(OCLC_E_BINDING, p.label + ": its host pointer is NULL");
  series.host = static_cast<std::byte*>(given.host);
  series.bytes = bytes;
  static constexpr std::int64_t kScalar = 0;
  oclc_tensor one = OCLC_INIT(oclc_tensor);
  one.dtype = given.dtype;
  one.rank = static_cast<std::uint32_t>(shape.size());
  one.shape = shape.empty() ? &kScalar : shape.data();
  one.bytes = bytes;
  if (bytes > 0) {
    series.value = allocate(bytes, p.label);
    one.buffer = series.value.get();
  }
  set_tensor(index, p.input ? OCLC_INPUT : OCLC_OUTPUT, given.name, &one);
}

// Enqueues steps `first` up to `end` of `steps`, whose values lie in the series' pieces.
void Session::enqueue_steps(Entry& e, std::span<Series> series, std::uint64_t first, std::uint64_t end, std::uint64_t steps) {
  const cl_command_queue queue = context_->queue();
  const bool texts = std::any_of(e.ports.begin(), e.ports.end(),
                                 [](const Port& p) { return p.binding->dtype() == oclc::plan::DType::string_; });
  ClEvent behind;
  for (std::uint64_t step = first; step < end; ++step) {
    const std::uint64_t at = step - first;
    const Transfers transfers{.in = texts || step == 0, .out = texts || step + 1 == steps};
    for (const Series& s : series) {
      if (!s.port->input || s.bytes == 0) continue;
      copy(*s.port, {s.piece.get(), at * s.bytes, 0}, {s.value.get(), 0, 0}, s.bytes);
      if (!transfers.in && is_copied(*s.port)) copy(*s.port, {s.value.get(), 0, 0}, s.port->copied, s.bytes);
    }
    limit_.check();
    unoptimized_submits_ += e.schedule->optimizing();
    enqueue_commands(e, 0, nullptr, transfers);
    for (const Series& s : series)
      if (!s.port->input && s.bytes > 0)
        copy(*s.port, is_copied(*s.port) ? s.port->copied : Place{s.value.get(), 0, 0, s.bytes},
             {s.piece.get(), at * s.bytes, 0}, s.bytes);
    if ((step + 1) % kStepsAhead != 0) continue;
    cl_event mark = nullptr;
    check_cl(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &mark), "marking a step");
    ClEvent here(mark);
    check_cl(clFlush(queue), "starting steps");
    if (behind) {
      cl_event earlier = behind.get();
      check_cl(clWaitForEvents(1, &earlier), "running steps");
    }
    behind = std::move(here);
  }
}

void Session::run_steps(std::uint32_t index, std::uint64_t steps, std::span<const oclc_series> given) {
  Entry& e = entry(index);
  context_->check_process();
  limit_.begin(time_limit_ns_);
  LentPorts lent(*this, e);
  std::vector<Series> series;
  for (const oclc_series& s : given) {
    series.push_back({&port(e, s.direction, s.name), nullptr, 0, {}, {}});
    lent.lend(*series.back().port);
  }
  // Outputs last: inputs give the dimensions.
  for (const bool input : {true, false})
    for (std::size_t i = 0; i < series.size(); ++i)
      if (series[i].port->input == input) bind_series(index, steps, given[i], series[i]);
  prepare(index);
  e.schedule->begin_run();
  std::uint64_t of_step = 1;
  for (const Series& s : series) of_step += s.bytes;
  const std::uint64_t piece = std::clamp<std::uint64_t>(kPieceBytes / of_step, 1, std::max<std::uint64_t>(steps, 1));
  for (Series& s : series)
    if (s.bytes > 0) s.piece = allocate(s.bytes * piece, "the steps of " + s.port->label);
  const cl_command_queue queue = context_->queue();
  for (std::uint64_t first = 0; first < steps; first += piece) {
    const std::uint64_t end = std::min(first + piece, steps);
    for (const Series& s : series)
      if (s.port->input && s.bytes > 0)
        check_cl(clEnqueueWriteBuffer(queue, s.piece.get(), CL_FALSE, 0, (end - first) * s.bytes, s.host + first * s.bytes, 0,
                                      nullptr, nullptr),
                 "writing the steps of " + s.port->label);
    enqueue_steps(e, series, first, end, steps);
    for (const Series& s : series)
      if (!s.port->input && s.bytes > 0)
        check_cl(clEnqueueReadBuffer(queue, s.piece.get(), CL_FALSE, 0, (end - first) * s.bytes, s.host + first * s.bytes, 0,
                                     nullptr, nullptr),
                 "reading the steps of " + s.port->label);
  }
  check_cl(clFinish(queue), "running the steps of entry point '" + e.name + "'");
  limit_.check_end();
}

}  // namespace oclc::runtime
