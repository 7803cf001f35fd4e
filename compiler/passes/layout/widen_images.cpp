#include "compiler/passes/layout/widen_images.h"

#include <map>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/pipeline/rewrite.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Numbers that an instruction copies; channels that are worth filling up to as many.
constexpr std::int64_t kCopiedChannels = 4, kFewestChannels = 3;
// Features whose tiles matrix units compute.
constexpr std::int64_t kFewestFeatures = 32;

bool reads_numbers(const Node& node) {
  if (node.op->name != "conv" || node.get<std::int64_t>("group") != 1 || !node.inputs[1]->type.is_static()) return false;
  const Value* image = node.inputs[0];
  const Shape& w = node.inputs[1]->type.shape;
  if (image->type.dtype != DType::f32 || !image->layout.is_row_major() || becomes_channels_last(image) || constant_of(image))
    return false;
  const std::int64_t channels = w[1].value();
  return channels >= kFewestChannels && channels < kCopiedChannels && w[0].value() >= kFewestFeatures &&
         product(std::span(w).subspan(2)).value() > 1;
}

// Copies by the convolution's loaders, and the launch that stores the image.
bool pays_for_launch(const Node& node, const Target& target) {
  const Shape &w = node.inputs[1]->type.shape, &y = node.output()->type.shape;
  const double channels = typical(w[1]), pixels = typical(y[0]) * typical(product(std::span(y).subspan(2))),
               taps = typical(product(std::span(w).subspan(2))), width = kCopiedChannels;
  const double stored = typical(product(node.inputs[0]->type.shape)) * (1 + width / channels) * sizeof(float);
  return pixels * taps * (channels / cost::kCopiedNumbersRate - width / cost::kCopiedVectorsRate) >
         2 * (target.launch_seconds + stored / target.bytes_per_second);
}

HostTensor with_zeros(const HostTensor& w, std::int64_t channels) {
  std::vector<std::int64_t> shape = w.shape();
  const std::int64_t had = shape[1], taps = w.elements() / (shape[0] * had);
  shape[1] = channels;
  HostTensor wide(w.dtype(), shape);
  for (std::int64_t o = 0; o < shape[0]; ++o) {
    for (std::int64_t i = 0; i < had * taps; ++i) wide.set(o * channels * taps + i, w.at(o * had * taps + i));
  }
  return wide;
}

Value* padded(Rewriter& r, Value* v) {
  const std::size_t rank = v->type.rank();
  std::vector<Expr> before(rank, Expr(0)), after(rank, Expr(0));
  after[1] = Expr(kCopiedChannels) - v->type.shape[1];
  return r.call("pad", {v}, {{"before", before}, {"after", after}, {"value", 0.0}, {"mode", std::string("constant")}});
}

Value* widened(Rewriter& r, Value* image) {
  Value* wide = r.call("store", {padded(r, image)});
  wide->layout = channels_last(image->type.rank());
  return wide;
}

// Weights that are trained are laid out for their products anyway, with the zeros.
Value* widened_weights(Rewriter& r, Value* w) {
  const HostTensor* constant = constant_of(w);
  return constant ? r.constant(with_zeros(*constant, kCopiedChannels)) : padded(r, w);
}

}  // namespace

bool widen_images(Graph& graph, const Target& target) {
  if (!target.multiplies_groups()) return false;
  bool changed = false;
  std::map<Value*, Value*> wide;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = widen_images(*body, target) || changed;
    if (!reads_numbers(*node) || !pays_for_launch(*node, target)) continue;
    Rewriter r(graph, node);
    Value*& image = wide[node->inputs[0]];
    if (!image) image = widened(r, node->inputs[0]);
    graph.set_input(node, 0, image);
    graph.set_input(node, 1, widened_weights(r, node->inputs[1]));
    changed = true;
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace oclc
