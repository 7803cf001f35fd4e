// Graphs of any size, each of a kind that once grew out of proportion.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc::test {

struct GraphKind {
  std::string_view name;
  int most;  // nodes of the largest that the compiler is to take; beyond, the kind ends with an error of its own
  std::shared_ptr<Module> (*make)(int nodes);
};

const std::vector<GraphKind>& graph_kinds();

}  // namespace oclc::test
