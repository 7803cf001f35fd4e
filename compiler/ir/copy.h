// Deep copies of graphs.
#pragma once
#include <memory>
#include <unordered_map>

#include "compiler/ir/graph.h"

namespace oclc {

struct GraphCopy {
  std::unique_ptr<Graph> graph;
  std::unordered_map<const Value*, Value*> values;  // of the original to those of the copy; bodies are not listed

  // Equal in all, numbers of values and nodes too. Tensors share their bytes.
  static GraphCopy of(const Graph& graph);
};

inline std::unique_ptr<Graph> copy_graph(const Graph& graph) { return std::move(GraphCopy::of(graph).graph); }

}  // namespace oclc
