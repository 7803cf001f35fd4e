// Decision trees as tables of nodes, from the attributes of any of their operators.
#pragma once
#include <vector>

#include "frontends/onnx/context.h"

namespace oclc::onnx {

enum class Relation : std::uint8_t { less_equal, less, greater_equal, greater, equal, not_equal, member };

// Leaves are nodes that lead to themselves.
struct TreeEnsemble {
  struct Node {
    std::int64_t feature = 0, yes = 0, no = 0;  // `yes`: the node where the relation holds
    double value = 0;
    Relation relation = Relation::less_equal;
    bool missing_is_yes = false;
    bool leaf = false;
  };
  std::vector<Node> nodes;
  std::vector<std::int64_t> roots;
  std::vector<double> weights;  // [node, target]; NaN: the leaf says nothing of the target
  std::int64_t targets = 1;
};

// TreeEnsembleRegressor and TreeEnsembleClassifier: `prefix` target or class names the attributes of the leaves.
TreeEnsemble classic_trees(OpContext& c, const std::string& prefix, std::int64_t targets);
// TreeEnsemble.
TreeEnsemble trees_of_arrays(OpContext& c);

enum class Aggregate { average, sum, min, max };

// What the trees say of the rows x[N, features], [N, targets].
Value* tree_scores(OpContext& c, const TreeEnsemble& trees, Value* x, Aggregate aggregate);

}  // namespace oclc::onnx
