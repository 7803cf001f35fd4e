// A schedule that is bound, enqueued: launches, loops, what the host reads and computes between them.
#include <cstring>

#include "runtime/awake_workers.h"
#include "runtime/expressions.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/host_step.h"
#include "runtime/package/verify.h"
#include "runtime/schedule.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

constexpr std::int64_t kMaxLoopTrips = std::int64_t{1} << 24;

}  // namespace

std::uint32_t Schedule::enqueue(cl_command_queue queue, std::vector<std::int64_t>& symbols, std::vector<LaunchRecord>* records,
                                Watch* watch) {
  watch_ = watch;
  queue_ = queue;
  symbols_ = &symbols;
  records_ = records;
  launched_ = 0;
  run(nodes_);
  return launched_;
}

void Schedule::run(std::span<const Node> nodes) {
  for (const Node& node : nodes) {
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
    const std::int64_t trips = evaluate(node.trip, *symbols_, "a loop's trip count");
    const auto too_many = [](const std::string& count) {
      return Failure(OCLC_E_BINDING,
                     "a loop would run " + count + " times, at most " + std::to_string(kMaxLoopTrips) + " are allowed");
    };
    if (trips > kMaxLoopTrips && node.condition < 0) throw too_many(std::to_string(trips));
    for (std::int64_t i = 0; i < trips; ++i) {
      if (i == kMaxLoopTrips) throw too_many("more than " + std::to_string(i));
      (*symbols_)[static_cast<std::size_t>(node.counter)] = i;
      const std::span<const Node> body = node.body;
      const std::size_t first = node.condition < 0 ? 0 : 1;
      run(body.first(first));
      if (first == 1 && (*symbols_)[static_cast<std::size_t>(node.condition)] == 0) break;
      run(body.subspan(first));
    }
  }
}

void Schedule::read_dims(const fb::Read& read, int segment) {
  const auto index = static_cast<std::uint32_t>(read.from()->buffer());
  const fb::Buffer& buffer = *loaded_.plan().buffers()->Get(index);
  const Place& place = places_[index];
  const std::uint64_t size = package::dtype_bytes(buffer.dtype());
  const auto skip = static_cast<std::uint64_t>(evaluate(read.from()->value(), *symbols_, "the offset of what is read"));
  std::vector<std::byte> bytes(size * read.dims()->size());
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
  } else {
    const cl_int code =
        clEnqueueNDRangeKernel(queue_, leaf.kernel.get(), leaf.dims, nullptr, leaf.global, leaf.local, 0, nullptr, wanted);
    if (code != CL_SUCCESS) check_cl(code, "enqueuing " + leaf.described());
  }
  ++launched_;
  if (records_) records_->push_back({index, -1, ClEvent(event), leaf.flops, leaf.bytes});
  if (watch_) watch_->after(leaf, leaf.step);
}

void Schedule::run_parts(Leaf& leaf) {
  const auto index = static_cast<std::uint32_t>(&leaf - leaves_.data());
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
  ++launched_;
  choose_parts(leaf, leaf.kernel.get(), 0, static_cast<cl_int>(leaf.parts.size()));
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
  if (args.k == 0 && g.beta() == 0) return zero_gemm(args, event);
  blas_->gemm(args, queue_, event, leaf.described());
}

// A sum over nothing, which CLBlast refuses.
void Schedule::zero_gemm(const oclc_clblast_gemm_args& args, cl_event* event) {
  const cl_float zero = 0;
  for (std::size_t i = 0; i < args.batch; ++i)
    for (std::size_t row = 0; row < args.m; ++row) {
      const bool last = i + 1 == args.batch && row + 1 == args.m;
      const std::size_t at = args.offset_c + i * args.stride_c + row * args.ldc;
      check_cl(clEnqueueFillBuffer(queue_, args.c, &zero, sizeof zero, at * sizeof zero, args.n * sizeof zero, 0, nullptr,
                                   last ? event : nullptr),
               "clearing the result of an empty product");
    }
}

}  // namespace oclc::runtime
