#include "compiler/passes/layout/choose_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/winograd.h"
#include "compiler/passes/layout/conv_cost.h"
#include "compiler/passes/layout/keep_nchw.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

// w[O, C/group, k..] as [(group,) taps * C/group, O/group]. `B` is a Builder or a Rewriter.
template <class B>
Value* weight_matrix(B& b, Value* w, std::int64_t group) {
  const Shape shape = w->type.shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const Expr inner = product(std::span(shape).subspan(1));
  Ints perm;
  if (group == 1) {
    for (std::int64_t i = 2; i < rank; ++i) perm.push_back(i);
    perm.insert(perm.end(), {1, 0});
    return b.reshape(b.transpose(w, perm), {inner, shape[0]});
  }
  const Expr features = floor_div(shape[0], Expr(group));
  Shape split{Expr(group), features};
  split.insert(split.end(), shape.begin() + 1, shape.end());
  perm.push_back(0);
  for (std::int64_t i = 3; i <= rank; ++i) perm.push_back(i);
  perm.insert(perm.end(), {2, 1});
  return b.reshape(b.transpose(b.reshape(w, split), perm), {Expr(group), inner, features});
}

Value* packed_weights(Rewriter& r, Value* w, std::int64_t group) {
  const HostTensor* tensor = constant_of(w);
  if (!tensor) return weight_matrix(r, w, group);
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("w", w->type);
  graph.add_output("y", weight_matrix(b, x, group));
  return r.constant(evaluate(graph, std::span(tensor, 1)).at(0));
}

// The product that stands for the convolution is one of integers where that is.
void keep_integers(const Node& conv, Value* product) {
  if (multiplies_integers(&conv)) product->producer->attributes["integers"] = std::int64_t{1};
}

// Adds the bias and takes the node's place.
bool finish(Rewriter& r, const Node& node, Value* y, const ConvolutionCost& cost) {
  y->layout = channels_last(y->type.rank());
  y->producer->attributes["strategy_reason"] = cost.reason;
  if (node.inputs.size() > 2 && node.inputs[2]) {
    Shape shape{y->type.shape[1]};
    shape.resize(y->type.rank() - 1, Expr(1));
    y = r.call("add", {y, r.reshape(node.inputs[2], shape)});
  }
  node.output()->layout = y->layout;
  return r.replace(y);
}

bool rewrite_im2col(Graph& graph, Node* node, const ConvolutionCost& cost) {
  Rewriter r(graph, node);
  Value *x = node->inputs[0], *w = node->inputs[1];
  const auto group = node->get<std::int64_t>("group");
  const Shape shape = node->output()->type.shape;
  const std::size_t rank = shape.size();
  Ints kernel;
  for (std::size_t i = 2; i < rank; ++i) kernel.push_back(w->type.shape[i].value());
  Value* columns = r.call("unfold", {x},
                          {{"kernel", kernel},
                           {"strides", node->get<Ints>("strides")},
                           {"dilations", node->get<Ints>("dilations")},
                           {"pads", node->get<Ints>("pads")},
                           {"group", group}});
  const Expr inner = product(std::span(w->type.shape).subspan(1));
  Shape positions{shape[0]};
  positions.insert(positions.end(), shape.begin() + 2, shape.end());
  Shape rows = group == 1 ? positions : Shape{Expr(group), product(positions)};
  rows.push_back(inner);
  Value* y = r.call("matmul", {r.reshape(columns, rows), packed_weights(r, w, group)},
                    {{"trans_a", std::int64_t{0}}, {"trans_b", std::int64_t{0}}});
  keep_integers(*node, y);
  y->producer->attributes["strategy"] = std::string("im2col");
  const auto last = static_cast<std::int64_t>(rank);
  if (group == 1) {
    Ints perm{0, last - 1};
    for (std::int64_t i = 1; i < last - 1; ++i) perm.push_back(i);
    y = r.transpose(y, perm);
  } else {
    Shape split{Expr(group)};
    split.insert(split.end(), positions.begin(), positions.end());
    split.push_back(floor_div(shape[1], Expr(group)));
    Ints perm{1, 0, last};
    for (std::int64_t i = 2; i < last; ++i) perm.push_back(i);
    y = r.reshape(r.transpose(r.reshape(y, split), perm), shape);
  }
  return finish(r, *node, y, cost);
}

bool rewrite_winograd(Graph& graph, Node* node, const ConvolutionCost& cost, std::int64_t tile) {
  Rewriter r(graph, node);
  Value* v = r.call("winograd_input", {node->inputs[0]}, {{"tile", tile}, {"pads", node->get<Ints>("pads")}});
  Value* u = r.constant(winograd_weights(*constant_of(node->inputs[1]), tile));
  Value* m = r.call("matmul", {v, u}, {{"trans_a", std::int64_t{1}}, {"trans_b", std::int64_t{0}}});
  m->producer->attributes["strategy"] = std::string("winograd");
  Value* y = r.call("winograd_output", {m}, {{"tile", tile}, {"shape", node->output()->type.shape}});
  return finish(r, *node, y, cost);
}

// Positions, features and channels that fill the tiles of a product whose columns are positions.
constexpr std::int64_t kLeastPositions = 24, kLeastFeatures = 12, kLeastChannels = 8;
// Results of an image that pay for a copy of its planes, and features; fewer do where the planes are whole panels, which are
// read where they lie.
constexpr std::int64_t kLeastResults = 7000, kManyRowsOfWeights = 64, kWholePanels = 16;

// Values of which all that reads them computes on planes.
using Planes = std::set<const Value*>;

// Columns of one row of the result where a convolution has several taps, and most channels: the copy of a row of taps is one of
// many numbers then.
constexpr std::int64_t kLeastWidth = 48, kMostChannels = 4;

bool all(const Node& conv, const char* name, std::int64_t number) {
  const auto& list = conv.get<Ints>(name);
  return std::all_of(list.begin(), list.end(), [&](std::int64_t i) { return i == number; });
}

// Where vectors are wide, surplus columns of a product with few positions, of which many terms are summed, cost more than
// laying the planes out; many results cost more to lay out than they do there.
constexpr std::int64_t kFewTerms = 128, kManyPositions = 512, kLeastFeaturesOfChannels = 4;

bool gains_as_product_of_planes(std::int64_t channels, std::int64_t features, std::int64_t positions, const Target& target) {
  return !target.has.tall_tiles || channels <= kFewTerms ||
         (positions >= kManyPositions && features * kLeastFeaturesOfChannels > channels);
}

bool is_product_of_planes(const Node& conv, const Planes& planes, const Target& target) {
  const Shape &w = conv.inputs[1]->type.shape, &y = conv.output()->type.shape;
  if (conv.get<std::int64_t>("group") != 1 || !constant_of(conv.inputs[1]) || conv.output()->type.dtype != DType::f32 ||
      w[0].value() < kLeastFeatures || planes.count(conv.output()) == 0)
    return false;
  if (product(std::span(w).subspan(2)) == Expr(1)) {
    const std::int64_t positions = product(std::span(y).subspan(2)).constant().value_or(0), features = w[0].value();
    return all(conv, "strides", 1) && all(conv, "pads", 0) && w[1].value() >= kLeastChannels && positions >= kLeastPositions &&
           positions * features >= kLeastResults && (features >= kManyRowsOfWeights || positions % kWholePanels == 0) &&
           gains_as_product_of_planes(w[1].value(), features, positions, target);
  }
  return y.size() == 4 && all(conv, "strides", 1) && w[1].value() <= kMostChannels && y[2].is_constant() &&
         y[3].constant().value_or(0) >= kLeastWidth;
}

// On vectors the weights are the left operand of a product with the planes as they lie, or with each line's taps of few of
// them, and nothing is laid out. Tiles of AMX read rows of pixels: not measured otherwise.
bool multiplies_planes(const Node& conv, const Planes& planes, const Target& target) {
  const Value* x = conv.inputs[0];
  return target.has_vector_templates() && !target.matrix_unit && x->layout.is_row_major() && !is(x->producer, "transpose") &&
         !becomes_channels_last(x) && is_product_of_planes(conv, planes, target);
}

// The planes between rows and columns of zeros. Columns that make whole vectors are moved as such, between whole vectors of
// zeros, of which those that are wanted are read.
Value* with_margins(Rewriter& r, Value* x, const Ints& pads) {
  const auto padded = [&](Value* value, std::vector<Expr> before, std::vector<Expr> after) {
    const Attributes attributes{
        {"before", std::move(before)}, {"after", std::move(after)}, {"value", 0.0}, {"mode", std::string("constant")}};
    return r.call("store", {r.call("pad", {value}, attributes)});
  };
  const Shape shape = x->type.shape;
  const Expr lanes(kWidestVector), lines = shape[2] + Expr(pads[0] + pads[2]);
  if (!(floor_mod(shape[3], lanes) == Expr(0)) || std::max(pads[1], pads[3]) > kWidestVector)
    return padded(x, {0, 0, pads[0], pads[1]}, {0, 0, pads[2], pads[3]});
  x = padded(r.reshape(x, {shape[0], shape[1], shape[2], floor_div(shape[3], lanes), lanes}), {0, 0, pads[0], 1, 0},
             {0, 0, pads[2], 1, 0});
  x = r.reshape(x, {shape[0], shape[1], lines, shape[3] + lanes + lanes});
  return r.slice(x, {0, 0, 0, lanes - Expr(pads[1])}, {shape[0], shape[1], lines, shape[3] + Expr(pads[1] + pads[3])},
                 {1, 1, 1, 1});
}

// For each line of the result the weights times its taps, which are read out of planes with margins.
Value* product_of_lines(Rewriter& r, const Node& node) {
  Value* x = node.inputs[0];
  const Shape &w = node.inputs[1]->type.shape, &shape = node.output()->type.shape;
  const auto& pads = node.get<Ints>("pads");
  if (!all(node, "pads", 0)) x = with_margins(r, x, pads);
  Value* taps = r.call("unfold", {x},
                       {{"kernel", Ints{w[2].value(), w[3].value()}},
                        {"strides", node.get<Ints>("strides")},
                        {"dilations", node.get<Ints>("dilations")},
                        {"pads", Ints(4, 0)},
                        {"group", std::int64_t{1}},
                        {"gathered", std::int64_t{1}}});
  taps = r.reshape(taps, {shape[0], shape[2], shape[3], product(std::span(w).subspan(1))});
  Value* y = r.call("matmul", {packed_weights(r, node.inputs[1], 1), taps},
                    {{"trans_a", std::int64_t{1}}, {"trans_b", std::int64_t{1}}});
  keep_integers(node, y);
  y->producer->attributes["strategy"] = std::string("planes");
  y->producer->attributes["strategy_reason"] = std::string("few planes are read, and what reads the result are planes");
  return r.transpose(y, {0, 2, 1, 3});
}

bool rewrite_planes(Graph& graph, Node* node) {
  Rewriter r(graph, node);
  if (!(product(std::span(node->inputs[1]->type.shape).subspan(2)) == Expr(1))) {
    Value* y = product_of_lines(r, *node);
    if (node->inputs.size() > 2 && node->inputs[2])
      y = r.call("add", {y, r.reshape(node->inputs[2], {y->type.shape[1], Expr(1), Expr(1)})});
    return r.replace(y);
  }
  const Shape &x = node->inputs[0]->type.shape, &w = node->inputs[1]->type.shape, shape = node->output()->type.shape;
  const Expr positions = product(std::span(shape).subspan(2));
  const auto planes = [&](const Expr& channels) {
    return x[0] == Expr(1) ? Shape{channels, positions} : Shape{x[0], channels, positions};
  };
  const HostTensor& weights = *constant_of(node->inputs[1]);
  Value* y =
      r.call("matmul", {r.constant(weights.reshaped({w[0].value(), w[1].value()})), r.reshape(node->inputs[0], planes(w[1]))},
             {{"trans_a", std::int64_t{0}}, {"trans_b", std::int64_t{0}}});
  keep_integers(*node, y);
  y->producer->attributes["strategy"] = std::string("planes");
  y->producer->attributes["strategy_reason"] = std::string("what is read and what reads it are planes");
  if (node->inputs.size() > 2 && node->inputs[2]) y = r.call("add", {y, r.reshape(node->inputs[2], {w[0], Expr(1)})});
  return r.replace(r.reshape(y, shape));
}

bool mark(Node* node, const ConvolutionCost& cost, std::string_view strategy) {
  const bool changed =
      node->get_or<std::string>("strategy", "") != strategy || node->get_or<std::string>("strategy_reason", "") != cost.reason;
  node->attributes["strategy"] = std::string(strategy);
  node->attributes["strategy_reason"] = cost.reason;
  return changed;
}

// Convolutions for which Winograd takes windows of six points: those that gain most by it, as many as the contract's error
// allows. Rounding errors of layers are independent: their squares add up, to half of the network's; the rest is for all other
// sums, and weights of fewer bits.
std::set<const Node*> large_windows(const Graph& graph, const ConvolutionOptions& options) {
  const double network = options.target.precision.error;
  std::vector<std::pair<double, const Node*>> gains;
  for (const Node* node : graph.nodes()) {
    if (node->op->name != "conv" || multiplies_integers(node)) continue;
    if (const double gain = gain_of_large_window(*node, options); gain > 0) gains.emplace_back(gain, node);
  }
  std::stable_sort(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::set<const Node*> chosen;
  double left = network * network / 2;
  for (const auto& [gain, node] : gains) {
    const HostTensor* weights = constant_of(node->inputs[1]);
    const Shape& filter = node->inputs[1]->type.shape;
    const std::int64_t tile = winograd_tile(*node, true);
    const double error =
        weights ? winograd_error(*weights, tile) : typical_winograd_error(filter[1].value(), tile, filter[2].value());
    if (error * error > left) continue;
    left -= error * error;
    chosen.insert(node);
  }
  return chosen;
}

// Constants are no kernels; elementwise operators and movements are parts of others.
bool has_kernels_to_join(const std::vector<Node*>& nodes) {
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* n) {
           return !constant_of(n->outputs.front().get()) && n->op->kind != OpKind::elementwise &&
                  n->op->kind != OpKind::movement;
         }) >= static_cast<std::ptrdiff_t>(kFewestMegakernelParts);
}

}  // namespace

std::set<const Value*> values_read_as_planes(const Graph& graph, const Target& target) {
  Planes planes;
  const auto computes_on_planes = [&](const Value* value, const Node* user) {
    if (is(user, "conv")) return user->inputs[0] == value && is_product_of_planes(*user, planes, target);
    return user->op->kind == OpKind::elementwise && user->output()->type.elements() == value->type.elements() &&
           planes.count(user->output()) != 0 && std::none_of(user->inputs.begin(), user->inputs.end(), [&](const Value* v) {
             return v && v != value && becomes_channels_last(v);
           });
  };
  const auto& nodes = graph.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    for (const auto& output : (*node)->outputs) {
      const Value* value = output.get();
      if (std::all_of(value->users.begin(), value->users.end(),
                      [&](const Node* user) { return computes_on_planes(value, user); }))
        planes.insert(value);
    }
  }
  return planes;
}

bool choose_convolution(Graph& graph, const ConvolutionOptions& options) {
  const std::set<const Node*> large = large_windows(graph, options);
  const Planes planes = values_read_as_planes(graph, options.target);
  const bool join = has_kernels_to_join(graph.nodes());
  bool changed = false;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = choose_convolution(*body, options) || changed;
    if (node->op->name != "conv" || keeps_planes(*node)) continue;
    if (options.strategy == "auto" && multiplies_planes(*node, planes, options.target)) {
      changed = rewrite_planes(graph, node) || changed;
      continue;
    }
    ConvolutionOptions own = options;
    own.launches_join = join;
    if (multiplies_integers(node)) own.target.precision = options.target.precision.of_integers();
    const ConvolutionCost cost = choose_strategy(*node, own, large.count(node) != 0);
    switch (cost.strategy) {
      case ConvolutionStrategy::im2col:
        changed = rewrite_im2col(graph, node, cost) || changed;
        break;
      case ConvolutionStrategy::winograd:
        if (fuses_winograd(*node, options.target))
          changed = mark(node, cost, fmt::format("conv_winograd_{}", cost.winograd_tile)) || changed;
        else
          changed = rewrite_winograd(graph, node, cost, cost.winograd_tile) || changed;
        break;
      case ConvolutionStrategy::direct:
        changed = mark(node, cost, "conv_direct") || changed;
        break;
      case ConvolutionStrategy::depthwise:
        changed = mark(node, cost, "conv_depthwise") || changed;
        break;
      case ConvolutionStrategy::implicit:
        changed = mark(node, cost, "conv_implicit") || changed;
        break;
    }
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace oclc
