#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/attention/attention_amx.h"
#include "compiler/codegen/contraction/choose.h"
#include "compiler/codegen/contraction/cpu/contraction_short.h"
#include "compiler/codegen/contraction/cpu/contraction_strassen.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/gpu/packed_right.h"
#include "compiler/codegen/launches/side_by_side.h"
#include "compiler/passes/gradients/mixed_precision.h"
#include "compiler/passes/gradients/split_updates.h"
#include "compiler/passes/gradients/winograd_gradients.h"
#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/passes/layout/keep_planes.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/layout/widen_images.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/schedule/attention.h"
#include "compiler/schedule/chains.h"
#include "compiler/schedule/images.h"
#include "compiler/schedule/join_rows.h"
#include "compiler/schedule/loops_apart.h"
#include "compiler/schedule/persistent.h"
#include "compiler/schedule/pool_products.h"
#include "compiler/schedule/short_products.h"
#include "compiler/schedule/split_sums.h"
#include "compiler/schedule/stripes.h"
#include "compiler/schedule/turned_weights.h"
#include "compiler/support/error.h"

namespace oclc {

namespace {

// Passes behind the pipeline, which run once.
constexpr std::string_view kLatePasses[] = {
    "choose_convolution", "assign_layouts", "fuse",          "persistent",     "short_products",
    "split_sums",         "turn_weights",   "join_rows",     "join_pointwise", "pack_right_operands",
    "side_by_side",       "resident",       "images",        "stripes",        "shorten_weights",
    "one_memory",         "chains",         "read_through",  "widen_images",   "keep_planes",
    "multiply_halves",    "loops_apart",    "split_updates", "attention",      "pool_products"};

bool is_disabled(const CompileOptions& options, std::string_view name) {
  return std::find(options.disabled.begin(), options.disabled.end(), name) != options.disabled.end();
}

// The target with the contract of precision under which kernels are made.
Target target_under_contract(const CompileOptions& options, const Module& module) {
  Target target = options.target;
  target.precision = precision_under(find_contract(options.precision), !module.states.empty());
  return target;
}

bool lays_out_operands(const CompileOptions& options, const Target& target) {
  return target.multiplies_groups() && !is_disabled(options, "fuse") && !is_disabled(options, "pack_right_operands");
}

}  // namespace

void run_pipeline(Module& module, const CompileOptions& options) {
  check_pass_names(options.disabled, {std::begin(kLatePasses), std::end(kLatePasses)});
  PassContext context;
  for (const std::string& name : options.disabled) {
    if (std::find(std::begin(kLatePasses), std::end(kLatePasses), name) == std::end(kLatePasses))
      context.disabled.push_back(name);
  }
  const Target target = target_under_contract(options, module);
  const ConvolutionOptions convolutions{target, options.conv};
  const bool choose = !is_disabled(options, "choose_convolution");
  context.joins_products = !target.items_are_cores() && !is_disabled(options, "fuse");
  context.separates_classes = target.items_are_cores() || target.has.wgmma;
  context.lays_out_operands = lays_out_operands(options, target);
  for (const auto& graph : module.entries) {
    if (choose) winograd_gradients(*graph, convolutions);
    run_passes(*graph, context);
  }
  for (const auto& graph : module.entries) {
    recompute(*graph, options.recompute_bytes);
    if (choose) {
      if (!is_disabled(options, "keep_planes")) keep_planes(*graph, target);
      if (!is_disabled(options, "assign_layouts")) lay_out_images(*graph, target);
      if (!is_disabled(options, "widen_images")) widen_images(*graph, target);
      choose_convolution(*graph, convolutions);
    }
    if (!is_disabled(options, "fuse") && !is_disabled(options, "split_updates")) split_updates(*graph, target);
    if (!is_disabled(options, "assign_layouts")) assign_layouts(*graph);
    if (updates_state(*graph, module.states)) {
      if (options.mixed != DType::f32) store_activations(*graph, module.states, options.mixed);
    } else if (target.precision.contract == Contract::bf16) {
      store_activations(*graph, module.states, DType::bf16, true);
    }
  }
}

Compiled compile(std::shared_ptr<Module> module, const CompileOptions& options) {
  Compiled result;
  const Target target = target_under_contract(options, *module);
  result.module = std::move(module);
  const auto stage = [&](std::string_view name) {
    if (options.progress) options.progress(name);
  };
  if (options.gemm == "clblast" && options.target.counts_loops())
    throw CompileError(
        {.stage = "target",
         .wanted = fmt::format("kernels whose work-items make at most {} loop iterations, all that target '{}' makes",
                               options.target.loop_iterations, options.target.name),
         .found = "those of the library CLBlast, which know no such limit",
         .advice = "--gemm own",
         .exit_code = ExitCode::usage});
  stage("passes");
  run_pipeline(*result.module, options);
  stage("kernels");
  const bool fuse = !is_disabled(options, "fuse");
  const bool cpu = target.items_are_cores();
  result.schedule = lower(*result.module, {fuse, options.gemm == "clblast", cpu, lays_out_operands(options, target), cpu},
                          options.report ? &result.fates : nullptr);
  if (fuse && !is_disabled(options, "persistent")) persistent(result.schedule, target);
  if (fuse && !is_disabled(options, "short_products")) short_products(result.schedule, target);
  if (fuse && !is_disabled(options, "split_sums")) split_sums(result.schedule, target);
  if (fuse && !is_disabled(options, "pool_products")) pool_products(result.schedule, target);
  if (fuse && !is_disabled(options, "attention")) attention(result.schedule, target, attends_by_vectors);
  if (fuse && !is_disabled(options, "turn_weights")) turn_weights(result.schedule, target);
  if (fuse && !is_disabled(options, "read_through")) read_through(result.schedule, target);
  if (fuse && !is_disabled(options, "join_rows")) join_rows(result.schedule, target);
  if (fuse && !is_disabled(options, "join_pointwise")) join_pointwise(result.schedule, target);
  if (fuse && !is_disabled(options, "chains")) chains(result.schedule, target, !is_disabled(options, "resident"));
  if (fuse && !is_disabled(options, "stripes") && !is_disabled(options, "resident")) stripes(result.schedule, target, true);
  if (fuse && !is_disabled(options, "images") && !is_disabled(options, "resident")) images(result.schedule, target);
  if (fuse && !is_disabled(options, "stripes") && !is_disabled(options, "resident")) stripes(result.schedule, target);
  if (fuse && !is_disabled(options, "pack_right_operands")) pack_right_operands(result.schedule, target);
  transform_filters(result.schedule, target);
  if (target.precision.may_round() && !is_disabled(options, "shorten_weights"))
    shorten_weights(result.schedule, target, target.precision.error / 2);
  if (fuse && !is_disabled(options, "multiply_halves")) multiply_halves(result.schedule, target, target.precision.error / 2);
  if (fuse && !is_disabled(options, "side_by_side")) side_by_side(result.schedule, target);
  if (fuse && !is_disabled(options, "loops_apart") && !is_disabled(options, "resident")) loops_apart(result.schedule, target);
  choose_contractions(result.schedule, target, options.report ? &result.contractions : nullptr);
  stage("codegen");
  PlanOptions plan_options;
  plan_options.precision = options.precision;
  plan_options.limits = options.limits;
  plan_options.resident = fuse && !is_disabled(options, "resident");
  plan_options.one_memory = fuse && !is_disabled(options, "one_memory");
  for (const std::string& name : options.disabled) plan_options.notes.push_back("disable=" + name);
  plan_options.notes.push_back("conv=" + options.conv);
  plan_options.notes.push_back("gemm=" + options.gemm);
  result.plan = build_plan(result.schedule, target, plan_options);
  return result;
}

}  // namespace oclc
