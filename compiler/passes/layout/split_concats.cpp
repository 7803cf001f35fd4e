#include "compiler/passes/layout/split_concats.h"

#include <algorithm>

#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

bool split_concat(Graph& graph, Node* node) {
  if (!is(node, "concat") || node->inputs.size() <= kMostPieces) return false;
  Rewriter rewrite(graph, node);
  std::vector<Value*> pieces = node->inputs;
  while (pieces.size() > kMostPieces) {
    std::vector<Value*> joined;
    for (std::size_t i = 0; i < pieces.size(); i += kMostPieces) {
      const auto from = pieces.begin() + static_cast<std::ptrdiff_t>(i);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(kMostPieces, pieces.size() - i));
      joined.push_back(to - from == 1 ? *from : rewrite.call("concat", std::vector<Value*>(from, to), node->attributes));
      if (joined.back() != *from) joined.back()->layout = node->output()->layout;
    }
    pieces = std::move(joined);
  }
  Value* whole = rewrite.call("concat", std::move(pieces), node->attributes);
  whole->layout = node->output()->layout;
  return rewrite.replace(whole);
}

}  // namespace

bool split_concats(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = split_concats(*body) || changed;
    changed = split_concat(graph, node) || changed;
  }
  return changed;
}

}  // namespace oclc
