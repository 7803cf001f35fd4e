// A random graph with inputs and what it computes on them: the subject of one step of a property test.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "tests/support/random_graph.h"

namespace oclc {

struct RandomCase {
  std::uint64_t seed = 0;
  std::unique_ptr<Graph> graph;
  SymbolValues symbols;
  std::vector<HostTensor> inputs, wanted;
  double tolerance = 0;  // absolute: rounding errors are relative to the largest number that the graph computes

  // The first difference between `found` and `wanted`, or an empty string.
  std::string problem(const std::vector<HostTensor>& found) const;
};

// The case of a seed. Nothing if its graph cannot run with these sizes: a window larger than a symbolic dimension's value, say.
std::optional<RandomCase> random_case(std::uint64_t seed, const RandomGraphOptions& options = {});

// `count` seeds from 0 on; the environment variables OCLC_RANDOM_GRAPHS and OCLC_RANDOM_SEED replace count and first seed.
std::vector<std::uint64_t> random_seeds(std::uint64_t count);

}  // namespace oclc
