#include "frontends/onnx/ml/tree_ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace oclc::onnx {
namespace {

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

}  // namespace oclc::onnx
