// Reverse-mode differentiation of a graph.
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

// One gradient per `wrt` of the scalar value `loss`, added to the graph (zeros where loss does not depend on it). CompileError
// (stage autodiff, unsupported) listing every node on a path that has no gradient, all at once; the graph is then as before.
// New nodes are named after the node whose gradient they are part of: "<source>/grad".
std::vector<Value*> add_gradients(Graph& graph, Value* loss, std::span<Value* const> wrt);

}  // namespace oclc
