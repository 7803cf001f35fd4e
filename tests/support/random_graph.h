// Random valid graphs for property tests.
#pragma once
#include <cstdint>
#include <memory>

#include "compiler/ir/graph.h"

namespace oclc {

struct RandomGraphOptions {
  int nodes = 24;            // calls that are tried; each may add a few nodes
  bool symbolic = true;      // dimensions N and T besides numbers
  bool contractions = true;  // matmul, conv
  bool integers = true;      // ranges, comparisons, casts, gathers at computed positions
  bool loops = true;
  std::int64_t largest_dim = 7;  // of dimensions that are numbers
};

// The same seed and options give the same graph. Values stay moderate and rounding is not amplified: functions with poles get
// operands away from them, and decisions (comparisons, rounding to integers) are made on exact numbers only.
std::unique_ptr<Graph> random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace oclc
