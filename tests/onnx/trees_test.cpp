// Trees of all shapes, as tables and loops of kernels, against a walk from node to node.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::trees_test {

struct TreeNode {
  std::int64_t tree, id, feature = 0, yes = 0, no = 0;
  float value = 0;
  std::string mode = "LEAF";
  bool missing = false;
};

struct Said {
  std::int64_t tree, node, target;
  float weight;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<Said> said;
  std::int64_t targets = 1;

  // Adds a tree of about `size` branches; `targets_of(leaf)` says of which targets a leaf speaks.
  template <class TargetsOf>
  void grow(std::int64_t tree, int size, const std::vector<std::string>& modes, unsigned seed, TargetsOf&& targets_of) {
    std::mt19937 random(seed);
    std::vector<TreeNode> mine{{tree, 0}};
    for (int i = 0; i < size; ++i) {
      const std::size_t at = random() % mine.size();
      if (mine[at].mode != "LEAF") continue;
      const auto next = static_cast<std::int64_t>(mine.size());
      mine[at] = {tree,
                  mine[at].id,
                  static_cast<std::int64_t>(random() % 5),
                  next,
                  next + 1,
                  static_cast<float>(static_cast<int>(random() % 9) - 4) / 2,
                  modes[random() % modes.size()],
                  random() % 3 == 0};
      // The file has the other child first.
      mine.push_back({tree, next + 1});
      mine.push_back({tree, next});
    }
    for (const TreeNode& node : mine) {
      nodes.push_back(node);
      if (node.mode != "LEAF") continue;
      for (const std::int64_t target : targets_of(node.id))
        said.push_back({tree, node.id, target, static_cast<float>(static_cast<int>(random() % 64)) / 8});
    }
  }

  Writer model(const char* aggregate) const {
    Writer w;
    w.model.add_opset_import()->set_domain("ai.onnx.ml");
    w.model.mutable_opset_import(1)->set_version(3);
    w.input("x", {"n", 5}).output("y");
    NodeProto& node = w.node("TreeEnsembleRegressor", {"x"}, {"y"}, "trees");
    node.set_domain("ai.onnx.ml");
    set_int(node, "n_targets", targets);
    set_text(node, "aggregate_function", aggregate);
    const auto whole = [&](const char* name, auto&& list, auto&& get) {
      std::vector<std::int64_t> values;
      for (const auto& one : list) values.push_back(get(one));
      set_list(node, name, values);
    };
    const auto real = [&](const char* name, auto&& list, auto&& get) {
      AttributeProto& a = attribute(node, name, AttributeProto::FLOATS);
      for (const auto& one : list) a.add_floats(get(one));
    };
    whole("nodes_treeids", nodes, [](const TreeNode& n) { return n.tree; });
    whole("nodes_nodeids", nodes, [](const TreeNode& n) { return n.id; });
    whole("nodes_featureids", nodes, [](const TreeNode& n) { return n.feature; });
    whole("nodes_truenodeids", nodes, [](const TreeNode& n) { return n.yes; });
    whole("nodes_falsenodeids", nodes, [](const TreeNode& n) { return n.no; });
    whole("nodes_missing_value_tracks_true", nodes, [](const TreeNode& n) { return n.missing ? 1 : 0; });
    real("nodes_values", nodes, [](const TreeNode& n) { return n.value; });
    AttributeProto& modes = attribute(node, "nodes_modes", AttributeProto::STRINGS);
    for (const TreeNode& n : nodes) modes.add_strings(n.mode);
    whole("target_treeids", said, [](const Said& s) { return s.tree; });
    whole("target_nodeids", said, [](const Said& s) { return s.node; });
    whole("target_ids", said, [](const Said& s) { return s.target; });
    real("target_weights", said, [](const Said& s) { return s.weight; });
    return w;
  }

  std::int64_t leaf(std::int64_t tree, const HostTensor& x, std::int64_t row) const {
    const auto find = [&](std::int64_t id) {
      for (const TreeNode& n : nodes)
        if (n.tree == tree && n.id == id) return &n;
      return static_cast<const TreeNode*>(nullptr);
    };
    const TreeNode* at = find(0);
    while (at->mode != "LEAF") {
      const auto v = static_cast<float>(x.at(row * 5 + at->feature));
      const bool holds = at->mode == "BRANCH_LEQ"   ? v <= at->value
                         : at->mode == "BRANCH_LT"  ? v < at->value
                         : at->mode == "BRANCH_GT"  ? v > at->value
                         : at->mode == "BRANCH_NEQ" ? v != at->value
                                                    : v == at->value;
      at = find(holds || (std::isnan(v) && at->missing) ? at->yes : at->no);
    }
    return at->id;
  }
};

void check(const Forest& forest) {
  std::int64_t trees = 0;
  for (const TreeNode& n : forest.nodes) trees = std::max(trees, n.tree + 1);
  HostTensor x = random_tensor(DType::f32, {40, 5}, 3, -3, 3);
  for (std::int64_t i = 0; i < 200; i += 3) x.set(i, i % 2 ? std::numeric_limits<double>::quiet_NaN() : std::round(x.at(i)));
  for (const char* aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    CAPTURE(aggregate);
    const std::string way = aggregate;
    PlanRunner runner(std::shared_ptr<Module>(forest.model(aggregate).import()), default_options());
    const HostTensor y = runner.run(std::vector<HostTensor>{x})[0];
    REQUIRE(y.shape() == std::vector<std::int64_t>{40, forest.targets});
    for (std::int64_t row = 0; row < 40; ++row) {
      std::vector<std::vector<double>> of(static_cast<std::size_t>(forest.targets));
      for (std::int64_t tree = 0; tree < trees; ++tree) {
        const std::int64_t leaf = forest.leaf(tree, x, row);
        for (const Said& s : forest.said)
          if (s.tree == tree && s.node == leaf) of[static_cast<std::size_t>(s.target)].push_back(s.weight);
      }
      for (std::int64_t t = 0; t < forest.targets; ++t) {
        const auto& all = of[static_cast<std::size_t>(t)];
        double sum = 0, least = INFINITY, most = -INFINITY;
        for (const double v : all) sum += v, least = std::min(least, v), most = std::max(most, v);
        const double wanted = way == "MIN" && !all.empty()   ? least
                              : way == "MAX" && !all.empty() ? most
                              : way == "AVERAGE"             ? sum / static_cast<double>(trees)
                                                             : sum;
        CHECK(y.at(row * forest.targets + t) == doctest::Approx(wanted).epsilon(1e-6));  // eighths: the sums are exact
      }
    }
  }
}

using Targets = std::vector<std::int64_t>;
const std::vector<std::string> kLess{"BRANCH_LEQ"}, kMixed{"BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_LT"};

TEST_CASE("Trees of one target, of a target each, and of as many for each target or not") {
  for (const int trees : {1, 6, 7}) {
    CAPTURE(trees);
    for (const std::int64_t targets : {1, 3}) {
      Forest forest;
      forest.targets = targets;
      for (int t = 0; t < trees; ++t)
        forest.grow(t, 12, t % 2 ? kMixed : kLess, static_cast<unsigned>(t),
                    [&](std::int64_t) { return Targets{t % targets}; });
      check(forest);
    }
  }
}

TEST_CASE("Leaves that speak of several targets, of none, and trees that are a leaf") {
  Forest forest;
  forest.targets = 4;
  for (int t = 0; t < 3; ++t)
    forest.grow(t, 20, kMixed, static_cast<unsigned>(9 + t), [](std::int64_t leaf) {
      return leaf % 3 == 0 ? Targets{} : leaf % 3 == 1 ? Targets{0, 2} : Targets{2};
    });
  forest.grow(3, 0, kLess, 1, [](std::int64_t) { return Targets{1}; });
  check(forest);
  Forest leaf;
  leaf.grow(0, 0, kLess, 1, [](std::int64_t) { return Targets{0}; });
  check(leaf);
}

TEST_CASE("A tree whose children lie far apart") {
  Forest forest;
  forest.grow(0, 40000, kLess, 5, [](std::int64_t) { return Targets{0}; });
  PlanRunner runner(std::shared_ptr<Module>(forest.model("SUM").import()), default_options());
  const HostTensor x = random_tensor(DType::f32, {3, 5}, 3, -3, 3);
  const HostTensor y = runner.run(std::vector<HostTensor>{x})[0];
  for (std::int64_t row = 0; row < 3; ++row) {
    double wanted = 0;
    const std::int64_t leaf = forest.leaf(0, x, row);
    for (const Said& s : forest.said) wanted = s.node == leaf ? s.weight : wanted;
    CHECK(y.at(row) == wanted);
  }
}

TEST_CASE("What is no forest is refused") {
  Forest forest;
  forest.grow(0, 3, kLess, 1, [](std::int64_t) { return Targets{0}; });
  const auto failure = [](const Forest& f) {
    try {
      f.model("SUM").import();
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Forest circle = forest;
  for (TreeNode& n : circle.nodes) n.yes = 0;
  CHECK(failure(circle).find("trees whose nodes have one parent each") != std::string::npos);
  Forest none = forest;
  none.targets = 0;
  none.said.clear();
  CHECK(failure(none).find("one target or more") != std::string::npos);
  Forest beyond = forest;
  beyond.nodes[0].feature = 5;
  CHECK(failure(beyond).find("wanted features of f32[n, 5], found 5") != std::string::npos);
}

}  // namespace oclc::test::trees_test
