#include "compiler/passes/layout/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/passes/layout/keep_nchw.h"

namespace oclc {

Layout channels_last(std::size_t rank) {
  Layout layout;
  layout.order.push_back(0);
  for (std::size_t i = 2; i < rank; ++i) layout.order.push_back(static_cast<int>(i));
  layout.order.push_back(1);
  return layout;
}

namespace {

// Filter taps outermost, features innermost.
Layout taps_outermost(std::size_t rank) {
  Layout layout;
  for (std::size_t i = 1; i < rank; ++i) layout.order.push_back(static_cast<int>(i));
  layout.order.push_back(0);
  return layout;
}

// Filter taps outermost, then channels, features innermost: rows of a product's right operand.
Layout as_right_operand(std::size_t rank) {
  Layout layout;
  for (std::size_t i = 2; i < rank; ++i) layout.order.push_back(static_cast<int>(i));
  layout.order.push_back(1);
  layout.order.push_back(0);
  return layout;
}

// Rows whose length is a multiple of this fall on few sets of a cache.
constexpr std::int64_t kCrowdedRow = 128;

// Weights that change between runs are laid out anew in each, features padded to whole vectors.
bool lay_out_weights(Graph& graph, Node* conv) {
  Value* w = conv->inputs[1];
  const Node* from = w->producer;
  if (constant_of(w) || conv->has(kCorrelates) ||
      (from && (from->op->name == "store" ||
                (from->op->name == "slice" && from->inputs[0]->producer && from->inputs[0]->producer->op->name == "store"))))
    return false;
  const std::size_t rank = w->type.rank();
  const Shape shape = w->type.shape;
  const bool grouped = conv->get_or<std::int64_t>("group", 1) != 1;
  const Layout layout = grouped && shape[1] == Expr(1) ? taps_outermost(rank) : as_right_operand(rank);
  const std::int64_t features = shape[0].constant().value_or(0);
  std::int64_t surplus = (kWidestVector - features % kWidestVector) % kWidestVector;
  if ((features + surplus) % kCrowdedRow == 0) surplus += kWidestVector;
  const bool padded = !grouped && features > 0 && surplus > 0;
  const auto add = [&](std::string_view name, Value* x, Attributes attributes) {
    return graph.add(op(name), {x}, std::move(attributes), conv->source, conv)->output();
  };
  if (padded) {
    std::vector<Expr> before(rank, Expr(0)), after(rank, Expr(0));
    after[0] = Expr(surplus);
    w = add("pad", w, {{"before", before}, {"after", after}, {"value", 0.0}, {"mode", std::string("constant")}});
  }
  w = add("store", w, {});
  w->layout = layout;
  if (padded) {
    w = add("slice", w,
            {{"starts", std::vector<Expr>(rank, Expr(0))},
             {"sizes", std::vector<Expr>(shape)},
             {"steps", std::vector<std::int64_t>(rank, 1)}});
  }
  graph.set_input(conv, 1, w);
  return true;
}

bool convolves_depthwise(const Node& node) {
  return node.op->name == "conv" && node.get_or<std::int64_t>("group", 1) != 1 && node.inputs[1]->type.shape[1] == Expr(1);
}

bool keeps_layout(const Node& node) {
  if (node.op->kind == OpKind::elementwise) return true;
  return node.op->name == "concat" && node.get<std::int64_t>("axis") == 1;
}

// A transposition of a row-major value that read in memory order is that value: no pass moves its elements.
bool lies_channels_last(const Value* image) {
  const Node* from = image->producer;
  if (!from || from->op->name != "transpose" || !from->inputs[0]->layout.is_row_major()) return false;
  const auto& perm = from->get<Ints>("perm");
  const std::vector<int> order = channels_last(perm.size()).order;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (perm[static_cast<std::size_t>(order[i])] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// Features from which on a convolution is worth a pass over its image.
constexpr std::int64_t kManyFeatures = 16;

// Each element of the image is read often: by convolutions of more than one tap for many features, by pooling. Depthwise ones
// compute on vectors of channels.
bool is_worth_a_layout(const Node& node) {
  if (keeps_planes(node)) return false;
  if (node.op->name == "max_pool" || node.op->name == "avg_pool") return true;
  if (convolves_depthwise(node)) return product(std::span(node.inputs[1]->type.shape).subspan(2)).constant().value_or(0) > 1;
  if (node.op->name != "conv" || node.get_or<std::int64_t>("group", 1) != 1 ||
      !node.get_or<std::string>("strategy", "").empty())
    return false;
  const Shape& w = node.inputs[1]->type.shape;
  return w[0].constant().value_or(0) >= kManyFeatures && product(std::span(w).subspan(2)).constant().value_or(0) > 1;
}

// `known`: of values asked for before, since several paths lead to one.
bool becomes_channels_last(const Value* value, std::map<const Value*, bool>& known) {
  const auto [entry, is_new] = known.emplace(value, false);
  if (!is_new) return entry->second;
  const Node* from = value->producer;
  const auto same = [&](const Value* v) {
    return v && v->type.rank() == value->type.rank() && becomes_channels_last(v, known);
  };
  const auto decide = [&] {
    if (!value->layout.is_row_major()) return true;
    if (!from || from->outputs.size() != 1 || value->type.rank() < 3) return false;
    if (from->op->name == "conv" || from->op->kind == OpKind::window) return !keeps_planes(*from);
    if (from->op->name == "concat")
      return from->get<std::int64_t>("axis") == 1 && std::all_of(from->inputs.begin(), from->inputs.end(), same);
    return from->op->kind == OpKind::elementwise && std::any_of(from->inputs.begin(), from->inputs.end(), [&](const Value* v) {
             return same(v) && v->type.elements() == value->type.elements();
           });
  };
  return entry->second = decide();
}

}  // namespace

bool becomes_channels_last(const Value* value) {
  std::map<const Value*, bool> known;
  return becomes_channels_last(value, known);
}

bool lay_out_images(Graph& graph, const Target& target) {
  if (target.vector_width == 1) return false;
  bool changed = false;
  std::map<Value*, Value*> laid_out;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = lay_out_images(*body, target) || changed;
    if (!is_worth_a_layout(*node)) continue;
    Value* image = node->inputs[0];
    const std::int64_t channels = image->type.shape[1].constant().value_or(0);
    if (constant_of(image) || becomes_channels_last(image) || lies_channels_last(image) || channels == 0 ||
        channels % target.vector_width != 0)
      continue;
    Value*& moved = laid_out[image];
    if (!moved) {
      moved = graph.add(op("store"), {image}, {}, node->source, node)->output();
      moved->layout = channels_last(image->type.rank());
    }
    graph.set_input(node, 0, moved);
    changed = true;
  }
  return changed;
}

bool assign_layouts(Graph& graph) {
  bool changed = false;
  const auto set = [&](Value* value, Layout layout) {
    if (value->layout == layout) return;
    value->layout = std::move(layout);
    changed = true;
  };
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = assign_layouts(*body) || changed;
    const std::size_t rank = node->outputs.empty() ? 0 : node->output()->type.rank();
    if (rank < 3) continue;
    if (keeps_planes(*node)) continue;
    if (node->op->name == "conv") changed = lay_out_weights(graph, node) || changed;
    const bool windowed = node->op->name == "conv" || node->op->kind == OpKind::window;
    const bool follows = keeps_layout(*node) && std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) {
                           return v && v->type.rank() == rank && !v->layout.is_row_major() &&
                                  v->type.elements() == node->output()->type.elements();
                         });
    const bool concat_follows =
        node->op->name == "concat" && keeps_layout(*node) &&
        std::all_of(node->inputs.begin(), node->inputs.end(), [](const Value* v) { return !v->layout.is_row_major(); });
    if (windowed || follows || concat_follows) set(node->output(), channels_last(rank));
    if ((convolves_depthwise(*node) || node->get_or<std::string>("strategy", "") == "conv_direct") &&
        constant_of(node->inputs[1])) {
      set(node->inputs[1], taps_outermost(rank));
    }
  }
  // A reshape reads row-major order; a flattened feature map is written that way by its producer.
  for (Node* node : graph.nodes()) {
    if (node->op->name != "reshape" || node->inputs[0]->layout.is_row_major()) continue;
    const Value* x = node->inputs[0];
    if (x->producer && x->producer->has(kMadeInPlace)) continue;  // made for the layout that it has
    if (x->users.size() == 1 && product(std::span(x->type.shape).subspan(2)) != Expr(1)) set(node->inputs[0], {});
  }
  return changed;
}

}  // namespace oclc
