#include "compiler/passes/gradients/winograd_gradients.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/winograd.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/unit_conv_cost.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::int64_t kTile = 4;
// Narrower operands would fill tiles of matrix units with zeros.
constexpr std::int64_t kNarrow = 32;

bool allows_winograd(const Node& node) {
  const Value *x = node.inputs[0], *y = node.inputs[1];
  const Windows windows(node);
  if (node.get<Ints>("kernel") != Ints{kWinogradFilter, kWinogradFilter} || node.get<std::int64_t>("group") != 1 ||
      !all_ones(windows.strides) || !all_ones(windows.dilations) || x->type.dtype != DType::f32)
    return false;
  for (std::size_t i = 2; i < 4; ++i) {
    const Expr positions = x->type.shape[i] + Expr(windows.pads[i - 2] + windows.pads[i] - (kWinogradFilter - 1));
    if (!positions.is_constant() || !(positions == y->type.shape[i])) return false;
  }
  return x->type.shape[1].is_constant() && y->type.shape[1].is_constant();
}

bool saves_time(const Node& node, const Target& target) {
  const Shape &x = node.inputs[0]->type.shape, &y = node.inputs[1]->type.shape;
  const std::int64_t lanes = target.vector_width;
  if (x[1].value() % lanes != 0 || y[1].value() % lanes != 0) return false;
  const auto channels = static_cast<double>(x[1].value()), features = static_cast<double>(y[1].value()), images = typical(y[0]),
             positions = images * typical(y[2]) * typical(y[3]),
             tiles = images * typical(ceil_div(y[2], Expr(kTile))) * typical(ceil_div(y[3], Expr(kTile)));
  const double points = (kTile + 2) * (kTile + 2), taps = kWinogradFilter * kWinogradFilter, pair = 2 * channels * features;
  if (target.multiplies_parts_in_groups()) {
    if (std::min(channels, features) < kNarrow) return false;
    // Elements that are read and written: both operands once for each row of the filter, and as often packed; or what the
    // transforms read and write, the right operand once more when it is packed, and sums of points.
    const double memory = cost::kTransformMovingShare * target.bytes_per_second / sizeof(float), peak = target.flops;
    const double direct = pair * taps * positions / (cost::kShiftedProductShare * peak) +
                          2 * kWinogradFilter * positions * (channels + features) / memory;
    const double moved =
        (positions + points * tiles) * (channels + features) + 2 * points * (tiles * channels + channels * features);
    return pair * points * tiles / (cost::kTransformProductShare * peak) + moved / memory < direct;
  }
  const double rate = cost::kGradientProductShare * target.flops;
  // Patches of the image, and what the transforms write, go to memory and come back.
  const double direct = pair * taps * positions / rate + 8 * taps * channels * positions / target.bytes_per_second;
  const double winograd = pair * points * tiles / rate +
                          8 * points * (tiles * (channels + features) + channels * features) / target.bytes_per_second +
                          3 * target.launch_seconds;
  return winograd < direct;
}

}  // namespace

bool winograd_gradients(Graph& graph, const ConvolutionOptions& options) {
  const Target& target = options.target;
  const bool has_transforms = target.has_vector_templates() || target.multiplies_parts_in_groups();
  if (!has_transforms || !target.precision.may_transform() || (options.strategy != "auto" && options.strategy != "winograd"))
    return false;
  bool changed = false;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = winograd_gradients(*body, options) || changed;
    if (node->op->name != "conv_weight_grad" || !allows_winograd(*node) || !saves_time(*node, target)) continue;
    Builder b(graph, node->source);
    Value* v = b.call("winograd_input", {node->inputs[0]}, {{"tile", kTile}, {"pads", node->get<Ints>("pads")}});
    Value* m = b.call("winograd_gradient", {node->inputs[1]}, {{"tile", kTile}});
    Value* w = b.call("winograd_filter_gradient", {b.matmul(m, v, false, true)}, {{"tile", kTile}});
    graph.replace_all_uses(node->output(), b.reshape(w, node->output()->type.shape));
    changed = true;
  }
  if (changed) {
    graph.sort();
    graph.erase_dead();
  }
  return changed;
}

}  // namespace oclc
