#include "frontends/onnx/ml/tree_ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace oclc::onnx {
namespace {

constexpr std::int64_t kDeepestTree = 4096;
constexpr std::int64_t kMostWeights = std::int64_t{1} << 27;

std::optional<Relation> relation_of(std::string_view mode) {
  static constexpr std::pair<std::string_view, Relation> kModes[] = {
      {"BRANCH_LEQ", Relation::less_equal}, {"BRANCH_LT", Relation::less},  {"BRANCH_GTE", Relation::greater_equal},
      {"BRANCH_GT", Relation::greater},     {"BRANCH_EQ", Relation::equal}, {"BRANCH_NEQ", Relation::not_equal}};
  for (const auto& [name, relation] : kModes)
    if (name == mode) return relation;
  return std::nullopt;
}

// A list that is an attribute of floats, or of the same name and "_as_tensor" one of doubles.
std::vector<double> number_list(OpContext& c, const std::string& name) {
  if (!c.has(name + "_as_tensor")) return c.reals(name, std::vector<double>{});
  const HostTensor& t = c.tensor(name + "_as_tensor");
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.at(i));
  return out;
}

template <class T>
void require_size(OpContext& c, const std::vector<T>& list, std::size_t count, std::string_view name,
                  bool may_be_empty = false) {
  if (list.size() != count && !(may_be_empty && list.empty()))
    c.fail(fmt::format("{} elements of '{}'", count, name), std::to_string(list.size()));
}

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

// A table of a number of each node.
template <class Get>
Value* table(OpContext& c, const TreeEnsemble& trees, DType dtype, Get&& get) {
  HostTensor t(dtype, {static_cast<std::int64_t>(trees.nodes.size())});
  for (std::size_t i = 0; i < trees.nodes.size(); ++i) {
    const double value = static_cast<double>(get(trees.nodes[i]));
    t.set(static_cast<std::int64_t>(i), value);
  }
  return c.b.constant(std::move(t));
}

// The tables that a step of the way down reads, and which of them there are.
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
  Value *mine = b.gather_elements(x, b.cast(of(t.feature), DType::i32), 1), *value = of(t.value);
  Value* yes = relation_holds(b, relations[0], mine, value);
  for (std::size_t i = 1; i < relations.size(); ++i) {
    Value* is_it = b.call("equal", {of(t.relation), b.scalar(DType::i32, static_cast<double>(relations[i]))});
    yes = b.where(is_it, relation_holds(b, relations[i], mine, value), yes);
  }
  if (t.missing) yes = b.call("or", {yes, b.call("and", {b.unary("is_nan", mine), of(t.missing)})});
  return b.where(yes, of(t.yes), of(t.no));
}

// The nodes where the rows x[N, features] come to, [N, trees].
Value* leaves(OpContext& c, const TreeEnsemble& trees, Value* x, std::int64_t depth) {
  using Node = TreeEnsemble::Node;
  const std::vector<Relation> relations = relations_in(trees);
  const auto count = static_cast<std::int64_t>(trees.roots.size());
  // Tables as narrow as they may be: they are most of a plan.
  constexpr std::int64_t kMostOfByte = 255;
  const bool few = std::all_of(trees.nodes.begin(), trees.nodes.end(), [](const Node& n) { return n.feature <= kMostOfByte; });
  Value* roots = c.b.cast(c.b.ints(trees.roots), DType::i32);
  Value* at = c.b.expand(c.b.reshape(roots, {Expr(1), Expr(count)}), {x->type.shape[0], Expr(count)});
  if (depth == 0) return at;
  Tables t{table(c, trees, few ? DType::u8 : DType::i32, [](const Node& n) { return n.feature; }),
           table(c, trees, DType::i32, [](const Node& n) { return n.yes; }),
           table(c, trees, DType::i32, [](const Node& n) { return n.no; }),
           table(c, trees, x->type.dtype, [](const Node& n) { return n.value; })};
  if (relations.size() > 1)
    t.relation = table(c, trees, DType::i32, [](const Node& n) { return static_cast<int>(n.relation); });
  if (std::any_of(trees.nodes.begin(), trees.nodes.end(), [](const Node& n) { return n.missing_is_yes; }))
    t.missing = table(c, trees, DType::boolean, [](const Node& n) { return n.missing_is_yes; });
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

}  // namespace

TreeEnsemble classic_trees(OpContext& c, const std::string& prefix, std::int64_t targets) {
  c.ignore({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  const Ints tree = c.integers("nodes_treeids"), id = c.integers("nodes_nodeids"), feature = c.integers("nodes_featureids"),
             yes = c.integers("nodes_truenodeids"), no = c.integers("nodes_falsenodeids"),
             missing = c.integers("nodes_missing_value_tracks_true", Ints{});
  const std::vector<std::string> modes = c.texts("nodes_modes");
  const std::vector<double> values = number_list(c, "nodes_values");
  const std::size_t count = tree.size();
  for (const Ints* list : {&id, &feature, &yes, &no}) require_size(c, *list, count, "nodes_*");
  require_size(c, modes, count, "nodes_modes");
  require_size(c, values, count, "nodes_values");
  require_size(c, missing, count, "nodes_missing_value_tracks_true", true);
  TreeEnsemble out;
  out.targets = targets;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> place;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (!place.emplace(std::pair{tree[i], id[i]}, at).second)
      c.fail("different nodes of a tree", fmt::format("node {} of tree {} twice", id[i], tree[i]));
    if (i == 0 || tree[i] != tree[i - 1]) out.roots.push_back(at);
  }
  const auto find = [&](std::int64_t in, std::int64_t node) {
    const auto at = place.find({in, node});
    if (at == place.end()) c.fail(fmt::format("a node {} of tree {}", node, in), "none");
    return at->second;
  };
  for (std::size_t i = 0; i < count; ++i) {
    TreeEnsemble::Node node;
    if (modes[i] == "LEAF") {
      node.leaf = true;
      node.yes = node.no = static_cast<std::int64_t>(i);
    } else {
      const auto relation = relation_of(modes[i]);
      if (!relation) c.fail("modes BRANCH_LEQ, LT, GTE, GT, EQ and NEQ, and LEAF", printable(modes[i]));
      node = {
          feature[i], find(tree[i], yes[i]), find(tree[i], no[i]), values[i], *relation, !missing.empty() && missing[i] != 0,
          false};
    }
    out.nodes.push_back(node);
  }
  const Ints of_tree = c.integers(prefix + "_treeids"), of_node = c.integers(prefix + "_nodeids"),
             of_target = c.integers(prefix + "_ids");
  const std::vector<double> weights = number_list(c, prefix + "_weights");
  if (static_cast<std::int64_t>(count) > kMostWeights / std::max<std::int64_t>(targets, 1))
    c.unsupported(fmt::format("at most {} weights of leaves", kMostWeights),
                  fmt::format("{} nodes, {} targets", count, targets));
  out.weights.assign(count * static_cast<std::size_t>(targets), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    require_size(c, of_tree, weights.size(), prefix + "_treeids");
    require_size(c, of_node, weights.size(), prefix + "_nodeids");
    require_size(c, of_target, weights.size(), prefix + "_ids");
    if (of_target[i] < 0 || of_target[i] >= targets)
      c.fail(fmt::format("targets from 0 to {}", targets - 1), std::to_string(of_target[i]));
    double& weight = out.weights[static_cast<std::size_t>(find(of_tree[i], of_node[i]) * targets + of_target[i])];
    weight = std::isnan(weight) ? weights[i] : weight + weights[i];
  }
  return out;
}

TreeEnsemble trees_of_arrays(OpContext& c) {
  c.ignore({"nodes_hitrates"});
  const Ints feature = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"), yes_leaf = c.integers("nodes_trueleafs"),
             no_leaf = c.integers("nodes_falseleafs"), roots = c.integers("tree_roots"),
             missing = c.integers("nodes_missing_value_tracks_true", Ints{}), of_target = c.integers("leaf_targetids");
  const HostTensor &modes = c.tensor("nodes_modes"), &splits = c.tensor("nodes_splits"), &weights = c.tensor("leaf_weights");
  const std::size_t count = feature.size(), leaf_count = of_target.size();
  for (const Ints* list : {&yes, &no, &yes_leaf, &no_leaf}) require_size(c, *list, count, "nodes_*");
  require_size(c, missing, count, "nodes_missing_value_tracks_true", true);
  if (modes.elements() != static_cast<std::int64_t>(count) || splits.elements() != modes.elements())
    c.fail(fmt::format("{} modes and splits", count), fmt::format("{} and {}", modes.elements(), splits.elements()));
  if (weights.elements() != static_cast<std::int64_t>(leaf_count))
    c.fail(fmt::format("{} weights of leaves", leaf_count), std::to_string(weights.elements()));
  // Sets that members are looked up in follow each other, apart by NaN.
  std::vector<std::vector<double>> sets(1);
  if (c.has("membership_values")) {
    const HostTensor& all = c.tensor("membership_values");
    for (std::int64_t i = 0; i < all.elements(); ++i) {
      if (std::isnan(all.at(i))) {
        sets.emplace_back();
      } else {
        sets.back().push_back(all.at(i));
      }
    }
  }
  TreeEnsemble out;
  out.targets = c.integer("n_targets", 1);
  const auto leaf_at = [&](std::int64_t leaf) { return static_cast<std::int64_t>(count) + leaf; };
  std::vector<TreeEnsemble::Node> extra;
  std::size_t set = 0;
  const auto first_extra = static_cast<std::int64_t>(count + leaf_count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t mode = modes.int_at(static_cast<std::int64_t>(i));
    if (mode < 0 || mode > static_cast<int>(Relation::member)) c.fail("modes from 0 to 6", std::to_string(mode));
    TreeEnsemble::Node node{feature[i],
                            yes_leaf[i] != 0 ? leaf_at(yes[i]) : yes[i],
                            no_leaf[i] != 0 ? leaf_at(no[i]) : no[i],
                            splits.at(static_cast<std::int64_t>(i)),
                            static_cast<Relation>(mode),
                            !missing.empty() && missing[i] != 0,
                            false};
    if (node.relation == Relation::member) {
      // A chain of comparisons: where one fails the next is made.
      if (set >= sets.size() || sets[set].empty()) c.fail("a set of values for each node of mode 6", "none");
      const std::vector<double>& members = sets[set++];
      const std::int64_t no_member = node.no;
      for (std::size_t k = 0; k < members.size(); ++k) {
        node.value = members[k];
        const bool last = k + 1 == members.size();
        node.no = last ? no_member : first_extra + static_cast<std::int64_t>(extra.size()) + (k == 0 ? 0 : 1);
        if (k == 0) {
          out.nodes.push_back(node);
        } else {
          extra.push_back(node);
        }
      }
      continue;
    }
    out.nodes.push_back(node);
  }
  for (std::size_t i = 0; i < leaf_count; ++i) {
    TreeEnsemble::Node leaf;
    leaf.leaf = true;
    leaf.yes = leaf.no = leaf_at(static_cast<std::int64_t>(i));
    out.nodes.push_back(leaf);
  }
  out.nodes.insert(out.nodes.end(), extra.begin(), extra.end());
  out.weights.assign(out.nodes.size() * static_cast<std::size_t>(out.targets), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < leaf_count; ++i) {
    if (of_target[i] < 0 || of_target[i] >= out.targets)
      c.fail(fmt::format("targets from 0 to {}", out.targets - 1), std::to_string(of_target[i]));
    out.weights[(count + i) * static_cast<std::size_t>(out.targets) + static_cast<std::size_t>(of_target[i])] =
        weights.at(static_cast<std::int64_t>(i));
  }
  // A root that is the leaf on both of its sides is that leaf.
  out.roots = roots;
  return out;
}

Value* tree_scores(OpContext& c, const TreeEnsemble& trees, Value* x, Aggregate aggregate) {
  if (x->type.rank() == 1) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  if (x->type.rank() != 2) c.fail("rows of features", x->type.text());
  if (trees.roots.empty()) c.fail("one tree or more", "none");
  if (x->type.dtype != DType::f64) x = c.b.cast(x, DType::f32);
  for (const auto& node : trees.nodes) {
    if (node.feature < 0 || (x->type.shape[1].is_constant() && node.feature >= x->type.shape[1].value()))
      c.fail(fmt::format("features of {}", x->type.text()), std::to_string(node.feature));
  }
  Value* at = leaves(c, trees, x, depth_of(c, trees));
  const double infinite = std::numeric_limits<double>::infinity();
  const double nothing = aggregate == Aggregate::min ? infinite : aggregate == Aggregate::max ? -infinite : 0;
  HostTensor weights(x->type.dtype, {static_cast<std::int64_t>(trees.nodes.size()), trees.targets});
  for (std::size_t i = 0; i < trees.weights.size(); ++i)
    weights.set(static_cast<std::int64_t>(i), std::isnan(trees.weights[i]) ? nothing : trees.weights[i]);
  Value* said = c.b.gather(c.b.constant(std::move(weights)), at, 0);  // [N, trees, targets]
  if (aggregate == Aggregate::min || aggregate == Aggregate::max) {
    Value* y = c.b.reduce(aggregate == Aggregate::min ? "reduce_min" : "reduce_max", said, {1}, false);
    // A target of which no tree says anything is 0.
    return c.b.where(c.b.call("equal", {y, c.b.scalar(y->type.dtype, nothing)}), c.b.scalar(y->type.dtype, 0), y);
  }
  Value* sum = c.b.reduce("reduce_sum", said, {1}, false);
  return aggregate == Aggregate::sum ? sum : c.b.mul(sum, 1.0 / static_cast<double>(trees.roots.size()));
}

}  // namespace oclc::onnx
