// Trees as tables that a loop of steps down reads, and what the leaves say, summed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "frontends/onnx/ml/tree_ensemble.h"

namespace oclc::onnx {
namespace {

using Node = TreeEnsemble::Node;

constexpr std::int64_t kDeepestTree = 4096;
constexpr std::int64_t kMostRows = 1 << 24;  // whose numbers a float holds

// The longest way from a root, in branches. An error if nodes lead in a circle or out of the table.
std::int64_t depth_of(OpContext& c, const TreeEnsemble& trees) {
  const auto count = static_cast<std::int64_t>(trees.nodes.size());
  std::vector<std::int64_t> level = trees.roots;
  for (std::int64_t depth = 0;; ++depth) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : level) {
      if (at < 0 || at >= count) c.fail(fmt::format("nodes from 0 to {}", count - 1), std::to_string(at));
      const auto& node = trees.nodes[static_cast<std::size_t>(at)];
      if (!node.leaf) next.insert(next.end(), {node.yes, node.no});
    }
    if (next.empty()) return depth;
    if (depth == kDeepestTree || static_cast<std::int64_t>(next.size()) > count)
      c.fail(fmt::format("trees whose nodes have one parent each, at most {} deep", kDeepestTree), "others");
    level = std::move(next);
  }
}

// The target that each tree speaks of, if it is one; else nothing. A tree that says nothing speaks of the first.
std::optional<std::vector<std::int64_t>> targets_of(const TreeEnsemble& trees) {
  std::vector<std::int64_t> found, open;
  std::vector<std::size_t> seen(trees.nodes.size(), trees.roots.size());
  for (std::size_t tree = 0; tree < trees.roots.size(); ++tree) {
    std::int64_t target = -1;
    open = {trees.roots[tree]};
    while (!open.empty()) {
      const auto at = static_cast<std::size_t>(open.back());
      open.pop_back();
      if (std::exchange(seen[at], tree) == tree) continue;
      if (!trees.nodes[at].leaf) open.insert(open.end(), {trees.nodes[at].no, trees.nodes[at].yes});
      for (std::int64_t t = 0; trees.nodes[at].leaf && t < trees.targets; ++t) {
        if (std::isnan(trees.weights[at * static_cast<std::size_t>(trees.targets) + static_cast<std::size_t>(t)])) continue;
        if (target >= 0 && target != t) return std::nullopt;
        target = t;
      }
    }
    found.push_back(std::max<std::int64_t>(target, 0));
  }
  return found;
}

// A table of a number of each node.
template <class Get>
Value* table(OpContext& c, const TreeEnsemble& trees, DType dtype, Get&& get) {
  HostTensor t(dtype, {static_cast<std::int64_t>(trees.nodes.size())});
  for (std::size_t i = 0; i < trees.nodes.size(); ++i) {
    const double value = static_cast<double>(get(i));
    t.set(static_cast<std::int64_t>(i), value);
  }
  return c.b.constant(std::move(t));
}

// The tables that a step of the way down reads, and which of them there are. A leaf leads to itself; `value` is what is
// compared with, or what the leaf says.
struct Tables {
  Value *feature = nullptr, *yes = nullptr, *no = nullptr, *value = nullptr, *relation = nullptr, *missing = nullptr;
};

Value* relation_holds(Builder& b, Relation relation, Value* x, Value* value) {
  switch (relation) {
    case Relation::less:
      return b.call("less", {x, value});
    case Relation::greater_equal:
      return b.call("greater_equal", {x, value});
    case Relation::greater:
      return b.call("greater", {x, value});
    case Relation::equal:
    case Relation::member:
      return b.call("equal", {x, value});
    case Relation::not_equal:
      return b.unary("not", b.call("equal", {x, value}));
    case Relation::less_equal:
      break;
  }
  return b.call("less_equal", {x, value});
}

std::vector<Relation> relations_in(const TreeEnsemble& trees) {
  std::vector<Relation> found;
  for (const auto& node : trees.nodes) {
    if (!node.leaf && std::find(found.begin(), found.end(), node.relation) == found.end()) found.push_back(node.relation);
  }
  return found;
}

// at[N, trees]: the nodes after one step down.
Value* step_down(Builder& b, const std::vector<Relation>& relations, const Tables& t, Value* x, Value* at) {
  const auto of = [&](Value* table) { return b.gather(table, at, 0); };
  const auto number = [&](Value* table) { return b.cast(of(table), DType::i32); };
  Value *mine = b.gather_elements(x, number(t.feature), 1), *value = of(t.value);
  Value* yes = relation_holds(b, relations[0], mine, value);
  for (std::size_t i = 1; i < relations.size(); ++i) {
    Value* is_it = b.call("equal", {number(t.relation), b.scalar(DType::i32, static_cast<double>(relations[i]))});
    yes = b.where(is_it, relation_holds(b, relations[i], mine, value), yes);
  }
  if (t.missing) yes = b.call("or", {yes, b.call("and", {b.unary("is_nan", mine), of(t.missing)})});
  return b.where(yes, of(t.yes), of(t.no));
}

// The nodes where the rows x[N, features] come to, [N, trees].
Value* leaves(OpContext& c, const TreeEnsemble& trees, Value* x, Value* values, std::int64_t depth) {
  const std::vector<Relation> relations = relations_in(trees);
  const auto count = static_cast<std::int64_t>(trees.roots.size());
  const auto node = [&](std::size_t i) -> const Node& { return trees.nodes[i]; };
  Value* roots = c.b.cast(c.b.ints(trees.roots), DType::i32);
  Value* at = c.b.expand(c.b.reshape(roots, {Expr(1), Expr(count)}), {x->type.shape[0], Expr(count)});
  if (depth == 0) return at;
  // Features are narrow: tables are most of a plan.
  constexpr std::int64_t kMostOfByte = 255;
  const bool few = std::all_of(trees.nodes.begin(), trees.nodes.end(), [](const Node& n) { return n.feature <= kMostOfByte; });
  Tables t{table(c, trees, few ? DType::u8 : DType::i32, [&](std::size_t i) { return node(i).feature; }),
           table(c, trees, DType::i32, [&](std::size_t i) { return node(i).yes; }),
           table(c, trees, DType::i32, [&](std::size_t i) { return node(i).no; }), values};
  if (relations.size() > 1)
    t.relation = table(c, trees, DType::u8, [&](std::size_t i) { return static_cast<int>(node(i).relation); });
  if (std::any_of(trees.nodes.begin(), trees.nodes.end(), [](const Node& n) { return n.missing_is_yes; }))
    t.missing = table(c, trees, DType::boolean, [&](std::size_t i) { return node(i).missing_is_yes; });
  const std::string counter = fmt::format("tree_step_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Builder b(*body, c.b);
  Value* inside = body->add_input("at", at->type);
  std::vector<Value*> captured{x};
  Value* rows = body->add_input("x", x->type);
  for (Value** one : {&t.feature, &t.yes, &t.no, &t.value, &t.relation, &t.missing}) {
    if (!*one) continue;
    captured.push_back(*one);
    *one = body->add_input(fmt::format("captured{}", captured.size()), (*one)->type);
  }
  body->add_output("at", step_down(b, relations, t, rows, inside));
  return c.b.loop(Expr(depth), counter, {at}, std::move(captured), std::move(body))->output();
}

// Puts trees that speak of one target beside each other.
void sort_by_target(TreeEnsemble& trees, std::vector<std::int64_t>& target) {
  std::vector<std::size_t> order(target.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return target[a] < target[b]; });
  const std::vector<std::int64_t> roots = trees.roots, targets = target;
  for (std::size_t i = 0; i < order.size(); ++i) {
    trees.roots[i] = roots[order[i]];
    target[i] = targets[order[i]];
  }
}

// What the leaves at[N, trees] say of the targets, as [N, parts, targets]; `values` is the table by nodes.
Value* said(OpContext& c, const TreeEnsemble& trees, const std::optional<std::vector<std::int64_t>>& target, Value* values,
            Value* at, double nothing) {
  const Expr rows = at->type.shape[0], targets(trees.targets), count(static_cast<std::int64_t>(trees.roots.size()));
  Value* mine = c.b.gather(values, at, 0);
  const DType dtype = mine->type.dtype;
  if (!target) {
    // Rows of a table of the leaves.
    std::vector<double> weights;
    for (std::size_t i = 0; i < trees.nodes.size(); ++i) {
      if (!trees.nodes[i].leaf) continue;
      const double* row = trees.weights.data() + i * static_cast<std::size_t>(trees.targets);
      weights.insert(weights.end(), row, row + trees.targets);
    }
    HostTensor table(dtype, {static_cast<std::int64_t>(weights.size()) / trees.targets, trees.targets});
    for (std::size_t i = 0; i < weights.size(); ++i)
      table.set(static_cast<std::int64_t>(i), std::isnan(weights[i]) ? nothing : weights[i]);
    return c.b.gather(c.b.constant(std::move(table)), c.b.cast(mine, DType::i32), 0);
  }
  // As many of each, in order: a row of trees for each target.
  const auto each = static_cast<std::int64_t>(target->size()) / trees.targets;
  bool even = each * trees.targets == static_cast<std::int64_t>(target->size());
  for (std::size_t i = 0; even && i < target->size(); ++i) even = (*target)[i] == static_cast<std::int64_t>(i) / each;
  if (even) return c.b.transpose(c.b.reshape(mine, {rows, targets, Expr(each)}), {0, 2, 1});
  Value* of_tree = c.b.reshape(c.b.ints(*target), {Expr(1), count, Expr(1)});
  Value* is_it = c.b.call("equal", {of_tree, c.b.iota({Expr(1), Expr(1), targets}, 2, DType::i64)});
  return c.b.where(is_it, c.b.reshape(mine, {rows, count, Expr(1)}), c.b.scalar(dtype, nothing));
}

}  // namespace

Value* tree_scores(OpContext& c, const TreeEnsemble& read, Value* x, Aggregate aggregate) {
  if (x->type.rank() == 1) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  if (x->type.rank() != 2) c.fail("rows of features", x->type.text());
  if (read.roots.empty()) c.fail("one tree or more", "none");
  if (read.targets < 1) c.fail("one target or more", std::to_string(read.targets));
  if (x->type.dtype != DType::f64) x = c.b.cast(x, DType::f32);
  for (const auto& node : read.nodes) {
    if (node.feature < 0 || (x->type.shape[1].is_constant() && node.feature >= x->type.shape[1].value()))
      c.fail(fmt::format("features of {}", x->type.text()), std::to_string(node.feature));
  }
  const std::int64_t depth = depth_of(c, read);
  TreeEnsemble trees = read;
  auto target = targets_of(trees);
  if (target) sort_by_target(trees, *target);
  const double infinite = std::numeric_limits<double>::infinity();
  const double nothing = aggregate == Aggregate::min ? infinite : aggregate == Aggregate::max ? -infinite : 0;
  // A leaf's value is what it says of its tree's target, or the number of its row among those of all leaves.
  std::int64_t row = 0;
  const auto targets = static_cast<std::size_t>(trees.targets);
  Value* values = table(c, trees, x->type.dtype, [&](std::size_t i) {
    if (!trees.nodes[i].leaf) return trees.nodes[i].value;
    if (!target) return static_cast<double>(row++);
    const auto begin = trees.weights.begin() + static_cast<std::ptrdiff_t>(i * targets), end = begin + trees.targets;
    const auto weight = std::find_if(begin, end, [](double w) { return !std::isnan(w); });
    return weight == end ? nothing : *weight;
  });
  if (row > kMostRows)
    c.unsupported(fmt::format("at most {} leaves that speak of several targets", kMostRows), std::to_string(row));
  Value* spoken = said(c, trees, target, values, leaves(c, trees, x, values, depth), nothing);
  if (aggregate == Aggregate::min || aggregate == Aggregate::max) {
    Value* y = c.b.reduce(aggregate == Aggregate::min ? "reduce_min" : "reduce_max", spoken, {1}, false);
    // A target of which no tree says anything is 0.
    return c.b.where(c.b.call("equal", {y, c.b.scalar(y->type.dtype, nothing)}), c.b.scalar(y->type.dtype, 0), y);
  }
  Value* sum = c.b.reduce("reduce_sum", spoken, {1}, false);
  return aggregate == Aggregate::sum ? sum : c.b.mul(sum, 1.0 / static_cast<double>(trees.roots.size()));
}

}  // namespace oclc::onnx
