// A schedule that is bound, enqueued: launches, loops, what the host reads and computes between them.
#include <cstring>
#include <utility>

#include "runtime/device/awake_workers.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/limits.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"
#include "runtime/session/host_step.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// Launches that may stand in a queue at once: drivers keep memory for each.
constexpr std::uint32_t kMaxQueued = 1u << 14;

}  // namespace

std::uint32_t Schedule::enqueue(cl_command_queue queue, std::vector<std::int64_t>& symbols, std::vector<LaunchRecord>* records,
                                Watch* watch) {
  watch_ = watch;
  queue_ = queue;
  symbols_ = &symbols;
  records_ = records;
  launched_ = 0;
  host_steps_ = 0;
  take_optimized();
  if (!builders_done_) ask_builders();
  run(nodes_);
  if (!std::exchange(builders_done_, true)) {
    if (programs_->builders) programs_->builders->rest();
    if (!behind_) leave_marks();
    context_.flush_warnings();
  }
  if (behind_ && !std::exchange(asked_behind_, true)) ask_behind();
  return launched_;
}

void Schedule::ask_builders() {
  Builders* builders = programs_->builders.get();
  if (!builders) return;
  for (const Leaf& leaf : leaves_)
    for (const Leaf::Run& run : leaf.runs)
      if (run.unit >= 0 && (behind_ || !is_marked(*programs_, static_cast<std::uint32_t>(run.unit), leaf.name)))
        builders->want(static_cast<std::uint32_t>(run.unit), leaf.name);
}

void Schedule::leave_marks() const {
  for (const Leaf& leaf : leaves_) {
    if (!leaf.launch) continue;
    for (const Piece& piece : pieces_of(*leaf.launch)) leave_mark(*programs_, piece.unit, leaf.name);
  }
}

bool Schedule::all_behind(const std::function<bool(std::uint32_t unit, const std::string& kernel)>& use) const {
  for (const Leaf& leaf : leaves_) {
    if (leaf.part_index == 0 || !leaf.launch) continue;
    for (const Piece& piece : pieces_of(*leaf.launch))
      if (!use(piece.unit, leaf.name)) return false;
  }
  return true;
}

void Schedule::ask_behind() {
  all_behind([&](std::uint32_t unit, const std::string& kernel) {
    behind_->want(unit, kernel);
    return true;
  });
}

void Schedule::wait_for_optimized() {
  all_behind([&](std::uint32_t unit, const std::string& kernel) {
    behind_->wait_for_kernel(unit, kernel, [&] { look_at(*behind_); });
    return true;
  });
}

bool Schedule::take_optimized() {
  if (!behind_ || !asked_behind_) return false;
  if (!all_behind([&](std::uint32_t unit, const std::string& kernel) { return behind_->is_done(unit, kernel); })) return false;
  behind_->rest();
  behind_ = nullptr;
  programs_ = &loaded_.optimized();
  builders_done_ = false;
  for (Leaf& leaf : leaves_) {
    if (!leaf.launch) continue;
    leaf.kernel = make_kernel(*leaf.launch, leaf.name);
    leaf.apart = leaf.part_index > 0 && must_be_apart(leaf);
    leaf.part_kernels.clear();
    leaf.runs.clear();
    add_runs(leaf);
    if (leaf.part_index > 0) take_part_kernels(leaf);
    for (const Leaf::Slot& slot : leaf.slots) {
      if (!slot.set) continue;
      set_argument(leaf, slot, leaf.kernel.get());
      for (const ClKernel& kernel : leaf.part_kernels) set_argument(leaf, slot, kernel.get());
    }
  }
  return true;
}

void Schedule::wait_for_builders(const Leaf& leaf, const Leaf::Run& run) {
  Builders* builders = programs_->builders.get();
  if (!builders || run.unit < 0 || builders_done_) return;
  builders->wait_for_kernel(static_cast<std::uint32_t>(run.unit), leaf.name, [&] { look_at(*builders); });
}

void Schedule::look_at(const Builders& builders) const {
  limit_.check();
  const auto [asked, done] = builders.asked_and_done();
  context_.progress(done, asked);
}

void Schedule::run(std::span<const Node> nodes) {
  for (const Node& node : nodes) {
    count_step();
    if (node.leaf >= 0) {
      run_leaf(leaves_[static_cast<std::size_t>(node.leaf)]);
      if (launched_ == 1) AwakeWorkers::begin();
      continue;
    }
    AwakeWorkers::begin();
    if (node.read) {
      read_dims(*node.read, node.segment);
      continue;
    }
    if (node.host) {
      run_host(*node.host, loaded_, places_, *symbols_, queue_, strings_);
      continue;
    }
    run_loop(node);
  }
}

void Schedule::count_step() {
  limit_.check();
  const std::uint64_t most = context_.max_host_steps();
  if (++host_steps_ > most)
    throw Failure(OCLC_E_BINDING, "a run would take more than " + std::to_string(most) +
                                      " steps (launches, trips of loops, what the host does); give inputs that need fewer, or "
                                      "allow more: max_host_steps of the context");
}

void Schedule::run_loop(const Node& node) {
  const std::int64_t trips = evaluate(node.trip, *symbols_, "a loop's trip count");
  const auto too_many = [](const std::string& count) {
    return Failure(OCLC_E_BINDING,
                   "a loop would run " + count + " times, at most " + std::to_string(package::kMaxLoopTrips) + " are allowed");
  };
  if (trips > package::kMaxLoopTrips && node.condition < 0) throw too_many(std::to_string(trips));
  for (std::int64_t i = 0; i < trips; ++i) {
    if (i == package::kMaxLoopTrips) throw too_many("more than " + std::to_string(i));
    count_step();
    (*symbols_)[static_cast<std::size_t>(node.counter)] = i;
    const std::span<const Node> body = node.body;
    const std::size_t first = node.condition < 0 ? 0 : 1;
    run(body.first(first));
    if (first == 1 && (*symbols_)[static_cast<std::size_t>(node.condition)] == 0) break;
    run(body.subspan(first));
  }
}

void Schedule::read_dims(const fb::Read& read, int segment) {
  const auto index = static_cast<std::uint32_t>(read.from()->buffer());
  const fb::Buffer& buffer = *loaded_.plan().buffers()->Get(index);
  const Place& place = places_[index];
  const std::uint64_t size = package::dtype_bytes(buffer.dtype());
  const std::int64_t from = evaluate(read.from()->value(), *symbols_, "the offset of what is read");
  const auto skip = static_cast<std::uint64_t>(from);
  std::vector<std::byte> bytes(size * read.dims()->size());
  if (from < 0 || bytes.size() > place.bytes || skip > (place.bytes - bytes.size()) / size)
    reject("dimensions are read from element " + std::to_string(from) + " of buffer " + std::to_string(index) +
           " on, which has " + std::to_string(place.bytes / size));
  check_cl(clEnqueueReadBuffer(queue_, place.memory, CL_TRUE, place.offset + skip * size, bytes.size(), bytes.data(), 0,
                               nullptr, nullptr),
           "reading dimensions");
  for (std::uint32_t i = 0; i < read.dims()->size(); ++i) {
    const int dim = read.dims()->Get(i);
    const fb::Symbol& symbol = *loaded_.plan().symbols()->Get(static_cast<std::uint32_t>(dim));
    std::int64_t value = 0;
    if (buffer.dtype() == fb::DType::i64) {
      std::memcpy(&value, bytes.data() + i * size, sizeof value);
    } else {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + i * size, sizeof narrow);
      value = narrow;
    }
    const std::int64_t most = evaluate(symbol.upper(), *symbols_, "the largest value of a dimension");
    if (value < symbol.lo() || value > most)
      throw Failure(OCLC_E_BINDING, (read.nodes() ? "node '" + joined(read.nodes()) + "': " : std::string()) +
                                        "wanted a size from " + std::to_string(symbol.lo()) + " to " + std::to_string(most) +
                                        " as dimension '" + symbol.name()->str() + "', which the model computes, found " +
                                        std::to_string(value) +
                                        (value == -1 ? " (also said of sizes that do not fit the node's operand)" : "") +
                                        "; give inputs from which it computes a size in that range");
    (*symbols_)[static_cast<std::size_t>(dim)] = value;
  }
  if (segment > 0 && lay_out_) lay_out_(segment, *symbols_, places_);
}

void Schedule::run_leaf(Leaf& leaf) {
  if (leaf.looping) {
    evaluate_geometry(leaf, *symbols_);
    if (!leaf.empty) set_arguments(leaf, *symbols_, false);
  }
  if (leaf.empty) return;
  if (!leaf.parts.empty() && (records_ || watch_ || leaf.apart)) return run_parts(leaf);
  const auto index = static_cast<std::uint32_t>(&leaf - leaves_.data());
  if (watch_) watch_->before(leaf, leaf.step);
  cl_event event = nullptr;
  cl_event* wanted = records_ ? &event : nullptr;
  if (leaf.gemm) {
    run_gemm(leaf, wanted);
    count_launch();
  }
  for (const Leaf::Run& run : leaf.runs) {
    wait_for_builders(leaf, run);
    const cl_int code =
        clEnqueueNDRangeKernel(queue_, run.kernel, leaf.dims, nullptr, leaf.global, leaf.local, 0, nullptr, wanted);
    if (code != CL_SUCCESS) check_cl(code, "enqueuing " + leaf.described());
    count_launch();
  }
  if (records_) records_->push_back({index, -1, ClEvent(event), leaf.flops, leaf.bytes});
  if (watch_) watch_->after(leaf, leaf.step);
}

void Schedule::pace() {
  cl_event mark = nullptr;
  check_cl(clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &mark), "marking a launch");
  const ClEvent before = std::exchange(mark_, ClEvent(mark));
  check_cl(clFlush(queue_), "starting a launch");
  cl_event earlier = before.get();
  if (earlier) check_cl(clWaitForEvents(1, &earlier), "waiting for a launch");
}

void Schedule::count_launch() {
  if (limit_.timed()) pace();
  if (++launched_ % kMaxQueued == 0) check_cl(clFinish(queue_), "waiting for the launches so far");
}

void Schedule::run_parts(Leaf& leaf) {
  const auto index = static_cast<std::uint32_t>(&leaf - leaves_.data());
  for (const Leaf::Run& run : leaf.runs) wait_for_builders(leaf, run);
  for (cl_int i = 0; i < static_cast<cl_int>(leaf.parts.size()); ++i) {
    const Leaf& part = leaf.parts[static_cast<std::size_t>(i)];
    choose_parts(leaf, part.does, i, i + 1);
    if (watch_) watch_->before(part, part.step);
    cl_event event = nullptr;
    const cl_int code = clEnqueueNDRangeKernel(queue_, part.does, leaf.dims, nullptr, leaf.global, leaf.local, 0, nullptr,
                                               records_ ? &event : nullptr);
    if (code != CL_SUCCESS) check_cl(code, "enqueuing " + leaf.described());
    if (records_) records_->push_back({index, i, ClEvent(event), part.flops, part.bytes});
    if (watch_) watch_->after(part, part.step);
  }
  count_launch();
  for (const Leaf::Run& run : leaf.runs) choose_parts(leaf, run.kernel, run.first, run.last);
}

void Schedule::run_gemm(const Leaf& leaf, cl_event* event) {
  const auto size = [&](const fb::Expr* e, const char* what, std::int64_t otherwise = 0) {
    const std::int64_t value = evaluate(e, *symbols_, what, otherwise);
    if (value < 0) throw Failure(OCLC_E_BINDING, leaf.described() + ": " + what + " is " + std::to_string(value));
    return static_cast<std::size_t>(value);
  };
  const fb::BlasGemm& g = *leaf.gemm;
  oclc_clblast_gemm_args args{};
  args.m = size(g.m(), "m");
  args.n = size(g.n(), "n");
  args.k = size(g.k(), "k");
  args.batch = size(g.batch(), "batch", 1);
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  args.lda = size(g.lda(), "lda");
  args.ldb = size(g.ldb(), "ldb");
  args.ldc = size(g.ldc(), "ldc");
  args.stride_a = size(g.stride_a(), "stride_a");
  args.stride_b = size(g.stride_b(), "stride_b");
  args.stride_c = size(g.stride_c(), "stride_c");
  args.a = leaf.slots[0].place.memory;
  args.b = leaf.slots[1].place.memory;
  args.c = leaf.slots[2].place.memory;
  args.offset_a = static_cast<std::size_t>(leaf.slots[0].value);
  args.offset_b = static_cast<std::size_t>(leaf.slots[1].value);
  args.offset_c = static_cast<std::size_t>(leaf.slots[2].value);
  args.trans_a = g.trans_a();
  args.trans_b = g.trans_b();
  args.alpha = g.alpha();
  args.beta = g.beta();
  const auto matrix = [&](std::size_t rows, std::size_t columns, bool transposed, std::size_t row_stride, std::size_t stride) {
    if (transposed) std::swap(rows, columns);
    return Matrix{rows, columns, row_stride, args.batch, stride};
  };
  check_matrix(leaf, leaf.slots[0], matrix(args.m, args.k, args.trans_a, args.lda, args.stride_a));
  check_matrix(leaf, leaf.slots[1], matrix(args.k, args.n, args.trans_b, args.ldb, args.stride_b));
  check_matrix(leaf, leaf.slots[2], matrix(args.m, args.n, false, args.ldc, args.stride_c));
  if (args.k == 0 && g.beta() == 0) return zero_gemm(args, event);
  blas_->gemm(args, queue_, event, leaf.described());
}

// A sum over nothing, which CLBlast refuses.
void Schedule::zero_gemm(const oclc_clblast_gemm_args& args, cl_event* event) {
  const cl_float zero = 0;
  // Rows that follow each other are one.
  const bool whole = args.ldc == args.n || args.m == 1;
  const std::size_t rows = whole ? 1 : args.m, columns = whole ? args.m * args.n : args.n;
  for (std::size_t i = 0; i < args.batch; ++i)
    for (std::size_t row = 0; row < rows; ++row) {
      count_step();
      const bool last = i + 1 == args.batch && row + 1 == rows;
      const std::size_t at = args.offset_c + i * args.stride_c + row * args.ldc;
      check_cl(clEnqueueFillBuffer(queue_, args.c, &zero, sizeof zero, at * sizeof zero, columns * sizeof zero, 0, nullptr,
                                   last ? event : nullptr),
               "clearing the result of an empty product");
    }
}

}  // namespace oclc::runtime
