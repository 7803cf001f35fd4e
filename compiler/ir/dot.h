// A graph as Graphviz text, for people: boxes of operators with their attributes, edges with types.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace oclc {

// Constants are left out except as the words in the boxes of their users. Bodies of control operators are clusters.
std::string print_dot(const Graph& graph);

}  // namespace oclc
