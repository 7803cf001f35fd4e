// Concatenations of many operands become concatenations of concatenations: a kernel takes so many operands only as devices have
// room for among the parameters of a launch, and chooses among them one after another.
#pragma once
#include "compiler/ir/graph.h"

namespace oclc {

// Operands of the largest concatenation that is left: those that no kernel stores in place are read by one kernel.
inline constexpr std::size_t kMostPieces = 64;

bool split_concats(Graph& graph);

}  // namespace oclc
