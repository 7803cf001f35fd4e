#include "tools/oclc/timed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "compiler/ops/reference/evaluate.h"
#include "plan_generated.h"
#include "runtime/package/writer.h"
#include "tools/command_line/cpu_threads.h"

namespace oclc::tool {
namespace {

constexpr int kFewestRuns = 3, kMostRuns = 200;
constexpr double kSeconds = 0.05;

// `tensor.shape` refers to `value`.
oclc_tensor view_of(const HostTensor& value, void* data) {
  static constexpr std::int64_t kScalar = 0;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = static_cast<oclc_dtype>(value.dtype());
  tensor.rank = static_cast<std::uint32_t>(value.shape().size());
  tensor.shape = value.shape().empty() ? &kScalar : value.shape().data();
  tensor.host = data;
  tensor.bytes = value.bytes();
  return tensor;
}

rt::Plan load(const BuiltPlan& built) {
  const std::vector<std::byte> bytes = package::package_to_memory(std::as_bytes(std::span(built.metadata)), built.constants);
  return rt::Plan::load(bytes.data(), bytes.size());
}

}  // namespace

rt::Context profiling_context(const std::string& device) {
  // As oclrun does: two threads on one core would make a contraction look twice as slow.
  command_line::keep_threads_on_cores();
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = device.c_str();
  options.profiling = 1;
  options.wait_for_optimized = 1;
  return rt::Context(options);
}

std::vector<HostTensor> random_inputs(const Graph& graph) {
  std::vector<HostTensor> inputs;
  std::mt19937 random(11);
  for (const auto& input : graph.inputs()) {
    HostTensor& x = inputs.emplace_back(input->type.dtype, bind_shape(input->type.shape, {}));
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(random()) / 2147483648.0 - 1);
  }
  return inputs;
}

std::vector<HostTensor> reference_of(const Graph& graph, const std::vector<HostTensor>& inputs) {
  return evaluate(graph, inputs);
}

TimedPlan::TimedPlan(const BuiltPlan& built, const rt::Context& context, const std::vector<HostTensor>& inputs)
    : session_(load(built), context) {
  session_.enable_profile(true);
  const plan::Entry& entry = *plan::GetPlan(built.metadata.data())->entries()->Get(0);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    // Inputs are only read.
    const oclc_tensor tensor = view_of(inputs[i], const_cast<std::byte*>(inputs[i].data()));
    session_.set_input(0, entry.inputs()->Get(i)->name()->str(), tensor);
  }
  for (const auto* output : *entry.outputs()) {
    HostTensor& y =
        outputs_.emplace_back(static_cast<DType>(output->dtype()), session_.shape(0, OCLC_OUTPUT, output->name()->str()));
    session_.set_output(0, output->name()->str(), view_of(y, y.mutable_data()));
  }
}

double TimedPlan::run(std::string_view node) {
  session_.run(0);
  double seconds = 0;
  std::uint64_t start = std::numeric_limits<std::uint64_t>::max(), end = 0;
  for (const oclc_launch_info& launch : session_.launches()) {
    start = std::min<std::uint64_t>(start, launch.start_ns);
    end = std::max<std::uint64_t>(end, launch.end_ns);
    if (std::string_view(launch.nodes).find(node) != std::string_view::npos)
      seconds += static_cast<double>(launch.end_ns - launch.start_ns) * 1e-9;
  }
  if (end > start) span_ = std::min(span_, static_cast<double>(end - start) * 1e-9);
  return seconds;
}

double TimedPlan::seconds_of(std::string_view node, double give_up) {
  const auto begin = std::chrono::steady_clock::now();
  double best = run(node);
  if (best > 2 * give_up) return best;
  for (int i = 1; i < kMostRuns; ++i) {
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (i >= kFewestRuns && (elapsed > kSeconds || best > give_up)) break;
    best = std::min(best, run(node));
  }
  return best;
}

std::string TimedPlan::difference(const std::vector<HostTensor>& wanted, double tolerance) const {
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    double largest = 0, apart = 0;
    for (std::int64_t i = 0; i < wanted[k].elements(); ++i) {
      const double a = outputs_[k].at(i), b = wanted[k].at(i);
      largest = std::max(largest, std::abs(b));
      apart = std::abs(a - b) <= apart ? apart : std::abs(a - b);  // keeps NaN
    }
    if (!(apart <= tolerance * largest)) return fmt::format("wrong: max_rel {:.2e}", apart / std::max(largest, 1e-30));
  }
  return {};
}

}  // namespace oclc::tool
