#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/attention_amx.h"
#include "compiler/codegen/contraction_short.h"
#include "compiler/codegen/contraction_strassen.h"
#include "compiler/codegen/packed_right.h"
#include "compiler/codegen/side_by_side.h"
#include "compiler/codegen/winograd_filters.h"
#include "compiler/kernels/attention.h"
#include "compiler/kernels/chains.h"
#include "compiler/kernels/images.h"
#include "compiler/kernels/join_rows.h"
#include "compiler/kernels/loops_apart.h"
#include "compiler/kernels/persistent.h"
#include "compiler/kernels/pool_products.h"
#include "compiler/kernels/short_products.h"
#include "compiler/kernels/split_sums.h"
#include "compiler/kernels/stripes.h"
#include "compiler/kernels/turned_weights.h"
#include "compiler/passes/choose_convolution.h"
#include "compiler/passes/keep_planes.h"
#include "compiler/passes/layout.h"
#include "compiler/passes/mixed_precision.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/split_updates.h"
#include "compiler/passes/widen_images.h"
#include "compiler/passes/winograd_gradients.h"
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

// Products of bfloat16 parts for a product of floats: as accurate as fma, to 16 bits, or of rounded operands.
int tile_products(std::string_view precision) {
  if (precision == "strict") return 0;
  if (precision == "bf16") return 1;
  return precision == "fp32" || precision == "mixed" ? 6 : 3;
}

// The target with what the contract of precision says about products. Training asks for careful sums: deep networks amplify the
// rounding of their first steps, and where an activation lies near zero its sign decides a gradient.
Target target_under_contract(const CompileOptions& options, const Module& module) {
  Target target = options.target;
  target.careful_sums = options.precision == "strict" || !module.states.empty();
  target.products = options.precision == "strict" ? Products::fma
                    : options.precision == "tf32" ? Products::rounded
                                                  : Products::split;
  if (target.matrix_unit == MatrixUnit::amx) target.tile_products = tile_products(options.precision);
  return target;
}

bool lays_out_operands(const CompileOptions& options, const Target& target) {
  return target.sm90a && target.products != Products::fma && !is_disabled(options, "fuse") &&
         !is_disabled(options, "pack_right_operands");
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
  const ConvolutionOptions convolutions{target, options.conv, options.precision};
  const bool choose = !is_disabled(options, "choose_convolution");
  context.joins_products = target.device_class == DeviceClass::gpu && !is_disabled(options, "fuse");
  context.separates_classes = target.device_class == DeviceClass::cpu || target.sm90a;
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
    } else if (options.precision == "bf16") {
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
  if (options.gemm == "clblast" && options.target.loop_iterations != Target::kNoLimit)
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
  const bool cpu = target.device_class == DeviceClass::cpu;
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
  const bool may_round = options.precision == "fast" || (options.precision == "fp32" && !target.careful_sums);
  if (may_round && !is_disabled(options, "shorten_weights"))
    shorten_weights(result.schedule, target, contract_error(options.precision) / 2);
  if (fuse && !is_disabled(options, "multiply_halves"))
    multiply_halves(result.schedule, target, contract_error(options.precision) / 2);
  if (fuse && !is_disabled(options, "side_by_side")) side_by_side(result.schedule, target);
  if (fuse && !is_disabled(options, "loops_apart") && !is_disabled(options, "resident")) loops_apart(result.schedule, target);
  stage("codegen");
  PlanOptions plan_options;
  plan_options.precision = options.precision;
  plan_options.limits = options.limits;
  plan_options.assumptions = result.module->assumptions;
  plan_options.resident = fuse && !is_disabled(options, "resident");
  plan_options.one_memory = fuse && !is_disabled(options, "one_memory");
  for (const std::string& name : options.disabled) plan_options.notes.push_back("disable=" + name);
  plan_options.notes.push_back("conv=" + options.conv);
  plan_options.notes.push_back("gemm=" + options.gemm);
  result.plan = build_plan(result.schedule, target, plan_options);
  return result;
}

}  // namespace oclc
