#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/choose.h"
#include "compiler/ir/carry.h"
#include "compiler/passes/graph_passes.h"
#include "compiler/plan/placed_kernels.h"
#include "compiler/renamed_passes.h"
#include "compiler/schedule_passes.h"
#include "compiler/support/error.h"

namespace oclc {

namespace {

bool is_disabled(const CompileOptions& options, std::string_view name) {
  return std::find(options.disabled.begin(), options.disabled.end(), name) != options.disabled.end();
}

// The target with the contract of precision under which kernels are made.
Target target_under_contract(const CompileOptions& options, const Module& module) {
  Target target = options.target;
  target.precision = precision_under(find_contract(options.precision), trains(module));
  return target;
}

bool lays_out_operands(const CompileOptions& options, const Target& target) {
  return target.multiplies_groups() && !is_disabled(options, "fuse") && !is_disabled(options, "pack_b");
}

void check_options(const CompileOptions& options) {
  std::vector<std::string> names = {"fuse", "megakernel", "merge_arguments"};
  for (const GraphPass& pass : graph_passes()) {
    if (pass.name != "pipeline") names.emplace_back(pass.name);
  }
  for (const SchedulePass& pass : schedule_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  check_pass_names(options.disabled, names);
  if (options.gemm != "clblast" || !options.target.counts_loops()) return;
  throw CompileError(
      {.stage = "target",
       .wanted = fmt::format("kernels whose work-items make at most {} loop iterations, all that target '{}' makes",
                             options.target.loop_iterations, options.target.name),
       .found = "those of the library CLBlast, which know no such limit",
       .advice = "--gemm own",
       .exit_code = ExitCode::usage});
}

GraphContext graph_context(const CompileOptions& options, const Target& target, const Module& module) {
  GraphContext context;
  context.convolutions = {target, options.conv};
  context.pipeline.disabled = context.disabled = options.disabled;
  context.pipeline.joins_products = target.has.horizontal_fusion && context.runs("fuse");
  context.pipeline.separates_classes = target.megakernel() != Megakernel::none;
  context.pipeline.lays_out_operands = lays_out_operands(options, target);
  context.pipeline.multiplies_integers = target.multiplies_tiles() && target.precision.bf16_products > 1;
  context.recompute_bytes = options.recompute_bytes;
  context.mixed = options.mixed;
  if (holds_weights(module)) context.states = module.states;
  return context;
}

LowerOptions lower_options(const CompileOptions& options, const Target& target) {
  const bool by_vectors = target.has_vector_templates();
  return {.fuse = !is_disabled(options, "fuse"),
          .blas = options.gemm == "clblast",
          .even_positions = by_vectors,
          .lays_out_operands = lays_out_operands(options, target),
          .copies_operands = by_vectors,
          .costs = fusion_costs(target)};
}

ScheduleContext schedule_context(const CompileOptions& options, const Target& target) {
  return {.target = target,
          .disabled = options.disabled,
          .error_budget = target.precision.error,
          .rounds_weights = target.precision.may_round()};
}

PlanOptions plan_options(const CompileOptions& options) {
  PlanOptions plan;
  plan.precision = options.precision;
  plan.limits = options.limits;
  plan.target = options.target.name;
  plan.device_class = options.target.device_class;
  for (const std::string& name : options.disabled) plan.notes.push_back("disable=" + name);
  plan.notes.push_back("conv=" + options.conv);
  plan.notes.push_back("gemm=" + options.gemm);
  if (options.flushes_subnormals) {
    plan.notes.emplace_back("subnormals=flush");
    plan.build_options = "-cl-denorms-are-zero";
  }
  return plan;
}

CompileOptions with_current_names(CompileOptions options) {
  options.disabled = current_pass_names(options.disabled);
  return options;
}

}  // namespace

void run_pipeline(Module& module, const CompileOptions& given) {
  const CompileOptions options = with_current_names(given);
  check_options(options);
  run_graph_passes(module, graph_context(options, target_under_contract(options, module), module));
}

Compiled compile(std::shared_ptr<Module> module, const CompileOptions& given) {
  const CompileOptions options = with_current_names(given);
  Compiled result;
  result.module = std::move(module);
  const Target target = target_under_contract(options, *result.module);
  const auto stage = [&](std::string_view name) {
    if (options.progress) options.progress(name);
  };
  stage("passes");
  run_pipeline(*result.module, options);
  if (options.stop_after == "passes") return result;
  stage("kernels");
  result.schedule = lower(*result.module, lower_options(options, target), options.report ? &result.fates : nullptr);
  if (options.stop_after == "kernels") return result;
  stage("schedule");
  // Its passes estimate many products that do not come to be.
  run_schedule_passes(result.schedule, schedule_passes(), schedule_context(options, without_questions(target)));
  choose_contractions(result.schedule, target, options.report ? &result.contractions : nullptr);
  if (options.stop_after == "schedule") return result;
  stage("codegen");
  const bool merge_arguments = !is_disabled(options, "fuse") && !is_disabled(options, "merge_arguments");
  std::vector<GeneratedLaunch> launches = generate_launches(result.schedule, target, merge_arguments);
  if (options.stop_after == "codegen") {
    result.plan.files = files_of(launches);
    return result;
  }
  stage("plan");
  PlanOptions planned = plan_options(options);
  planned.assumptions = result.module->assumptions;
  if (is_refittable(*result.module)) planned.notes.emplace_back("refit");
  planned.metadata = result.module->metadata;
  result.plan = build_plan(result.schedule, std::move(launches), planned);
  return result;
}

}  // namespace oclc
