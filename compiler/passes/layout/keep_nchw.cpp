#include "compiler/passes/layout/keep_nchw.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

constexpr std::string_view kStrategy = "planes";
// Columns of a result, and the longest step between windows that vectors are copied for.
constexpr std::int64_t kLeastColumns = 4, kLongestStep = 2;
// Elements of a result for which a constant of its size is worth a kernel by planes.
constexpr std::int64_t kLargestShares = 1 << 20;

bool is_depthwise_layer(const Node& node) {
  return is(&node, "conv") && node.get<std::int64_t>("group") != 1 && node.inputs[1]->type.shape[1] == Expr(1);
}

struct WindowSizes {
  Ints kernel, strides, dilations, pads;  // y, x; pads: top, left, bottom, right
  std::int64_t inside(std::size_t i, std::int64_t position, std::int64_t extent) const {
    const std::int64_t start = position * strides[i] - pads[i];
    const std::int64_t before = start < 0 ? ceil_div(-start, dilations[i]) : 0;
    const std::int64_t behind = start < extent ? ceil_div(extent - start, dilations[i]) : 0;  // the first tap beyond it
    return std::max<std::int64_t>(std::min(behind, kernel[i]) - before, 0);
  }
};

WindowSizes windows_of(const Node& node) {
  WindowSizes w{{}, node.get<Ints>("strides"), node.get<Ints>("dilations"), node.get<Ints>("pads")};
  if (is(&node, "conv")) {
    for (std::size_t i = 2; i < 4; ++i) w.kernel.push_back(node.inputs[1]->type.shape[i].constant().value_or(0));
  } else {
    w.kernel = node.get<Ints>("kernel");
  }
  return w;
}

bool suits(const Node& node, const std::set<const Value*>& planes) {
  const Value *x = node.inputs[0], *y = node.outputs[0].get();
  if (node.outputs.size() != 1 || x->type.rank() != 4 || y->type.dtype != DType::f32 || planes.count(y) == 0) return false;
  if (!x->layout.is_row_major() || is(x->producer, "transpose") || becomes_channels_last(x)) return false;
  for (std::size_t i = 1; i < 4; ++i) {
    if (!x->type.shape[i].is_constant() || !y->type.shape[i].is_constant()) return false;
  }
  const WindowSizes w = windows_of(node);
  const std::int64_t columns = y->type.shape[3].value();
  return w.kernel[0] > 0 && w.kernel[1] > 0 && columns >= kLeastColumns && w.strides[1] <= kLongestStep &&
         (w.strides[1] == 1 || (w.kernel[1] > 1 && w.dilations[1] % 2 == 1)) &&
         (w.kernel[1] - 1) * w.dilations[1] < columns * w.strides[1];
}

// For each position the elements of a window over those of them that the average counts; nothing if some count none, or if
// windows reach beyond the padding.
std::optional<HostTensor> shares(const Node& node) {
  const Shape &x = node.inputs[0]->type.shape, &y = node.output()->type.shape;
  const WindowSizes w = windows_of(node);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t last = (y[i + 2].value() - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i];
    if (last >= x[i + 2].value() + w.pads[i] + w.pads[i + 2]) return std::nullopt;
  }
  if (y[2].value() > kLargestShares / y[3].value()) return std::nullopt;
  HostTensor all(DType::f32, {y[2].value(), y[3].value()});
  for (std::int64_t i = 0; i < all.elements(); ++i) {
    const std::int64_t columns = y[3].value();
    const std::int64_t count = w.inside(0, i / columns, x[2].value()) * w.inside(1, i % columns, x[3].value());
    if (count == 0) return std::nullopt;
    all.set(i, static_cast<double>(w.kernel[0] * w.kernel[1]) / static_cast<double>(count));
  }
  return all;
}

void mark(Node& node) {
  node.attributes["strategy"] = std::string(is(&node, "conv") ? "conv_planes" : kStrategy);
  node.attributes["strategy_reason"] = std::string("what is read and what reads it are planes");
}

bool keep(Graph& graph, Node* node) {
  if (!is(node, "avg_pool")) {
    mark(*node);
    return true;
  }
  const auto all = shares(*node);
  if (!all) return false;
  const bool whole = node->get_or<std::int64_t>("count_include_pad", 0) != 0 ||
                     std::all_of(node->get<Ints>("pads").begin(), node->get<Ints>("pads").end(), [](auto n) { return n == 0; });
  if (whole) {
    mark(*node);
    return true;
  }
  Rewriter r(graph, node);
  Attributes attributes = node->attributes;
  attributes["count_include_pad"] = std::int64_t{1};
  Value* average = r.call("avg_pool", {node->inputs[0]}, std::move(attributes));
  mark(*average->producer);
  return r.replace(r.call("mul", {average, r.constant(*all)}));
}

}  // namespace

bool keeps_planes(const Node& node) {
  const std::string strategy = node.get_or<std::string>("strategy", "");
  return (is(&node, "conv") && strategy == "conv_planes") || (node.op->kind == OpKind::window && strategy == kStrategy);
}

bool keep_nchw(Graph& graph, const Target& target) {
  if (!target.has_vector_templates()) return false;
  const std::set<const Value*> planes = values_read_as_planes(graph, target);
  const auto nodes = graph.nodes();  // those that are added are chosen already
  bool changed = false;
  for (Node* node : nodes) {
    for (const auto& body : node->bodies) changed = keep_nchw(*body, target) || changed;
    const bool window = is_depthwise_layer(*node) || is(node, "max_pool") || is(node, "avg_pool");
    if (window && suits(*node, planes)) changed = keep(graph, node) || changed;
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace oclc
