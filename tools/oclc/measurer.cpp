#include "tools/oclc/measurer.h"

#include <algorithm>

#include "compiler/ir/copy.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/loop_seconds.h"
#include "frontends/cpp/typed/device_target.h"
#include "tools/oclc/progress.h"
#include "tools/oclc/timed_plan.h"

namespace oclc::tool {
namespace {

bool has_taps(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    if (node->op->name != "conv") continue;
    const Shape& filters = node->inputs[1]->type.shape;
    for (std::size_t i = 2; i < filters.size(); ++i)
      if (typical_extent(filters[i]) > 1) return true;
  }
  return false;
}

std::vector<TimedKernel> kernels_of(const Schedule& schedule, const Target& target, bool has_taps) {
  std::vector<TimedKernel> kernels;
  for (const Kernel& kernel : schedule.kernels) {
    if (std::find(kernel.sources.begin(), kernel.sources.end(), kTimedNode) == kernel.sources.end()) continue;
    double results = 1, terms = 1;
    for (const Axis& axis : kernel.axes) results *= static_cast<double>(typical_extent(axis.extent));
    for (const Axis& axis : kernel.reduction) terms *= static_cast<double>(typical_extent(axis.extent));
    const bool chosen = kernel.contraction && kernel.contraction->choice;
    kernels.push_back({chosen ? kernel.contraction->choice->text() : std::string(),
                       chosen ? kernel.contraction->choice->seconds : loop_seconds(kernel, target), typical(kernel.flops),
                       typical(kernel.bytes), results, terms, has_taps});
  }
  return kernels;
}

}  // namespace

CompileOptions options_for(const rt::Context& context, BuildOptions build) {
  build.device.clear();
  Progress silent(ProgressForm::none);
  CompileOptions options = compile_options(build, silent);
  options.progress = nullptr;
  options.target = target_of(context.device());
  options.target.precision = precision_under(find_contract(options.precision));
  return options;
}

Measurement Measurer::operator()(const TuningJob& job, const Tuning& choices, double give_up_seconds) {
  if (job.graph != graph_) begin(job);
  Measurement m;
  auto tuning = std::make_shared<Tuning>(choices);
  tuning->asked = [&](const TunedQuestion& question) {
    for (const TunedQuestion& known : m.asked)
      if (known.key == question.key) return;
    m.asked.push_back(question);
  };
  CompileOptions options = options_;
  options.target.tuning = tuning;
  options.disabled.insert(options.disabled.end(), job.disabled.begin(), job.disabled.end());
  try {
    auto module = std::make_shared<Module>();
    module->entries.push_back(copy_graph(*job.graph));
    const Compiled compiled = compile(std::move(module), options);
    m.kernels = kernels_of(compiled.schedule, options.target, has_taps(*job.graph));
    const std::string identity(compiled.plan.metadata.begin(), compiled.plan.metadata.end());
    if (const auto at = timed_.find(identity); at != timed_.end()) {
      m.seconds = at->second;
      m.repeated = true;
      return m;
    }
    TimedPlan plan(compiled.plan, context_, inputs_);
    m.seconds = plan.seconds_of(kTimedNode, give_up_seconds);
    m.span_seconds = plan.span_seconds();
    if (wanted_.empty()) wanted_ = plan.outputs();
    m.note = plan.difference(wanted_, tolerance());
    if (m.note.empty()) timed_.emplace(identity, m.seconds);
  } catch (const CompileError& error) {
    m.note = error.what();
  } catch (const rt::Error& error) {
    m.note = error.what();
  }
  tuning->asked = nullptr;
  return m;
}

double Measurer::tolerance() const {
  const Contract contract = find_contract(options_.precision);
  return contract == Contract::bf16 ? 2e-2 : contract == Contract::tf32 ? 5e-3 : contract == Contract::fast ? 2e-5 : 1e-5;
}

void Measurer::begin(const TuningJob& job) {
  graph_ = job.graph;
  timed_.clear();
  inputs_ = random_inputs(*job.graph);
  wanted_.clear();
  if (compared_ == ComparedWith::host) wanted_ = reference_of(*job.graph, inputs_);
}

}  // namespace oclc::tool
