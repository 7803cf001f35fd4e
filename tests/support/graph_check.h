// Comparing what graphs compute.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

// The symbols of the graph's inputs and attributes, not of loops' bodies, in order of appearance.
std::vector<Expr> symbols_of(const Graph& graph);

// Small values for these: 2, 3, 5, ... within their bounds.
SymbolValues small_symbols(const Graph& graph);

// Tensors for the graph's inputs: floats in [-1, 1), integers in [0, 3), truth values.
std::vector<HostTensor> random_inputs(const Graph& graph, const SymbolValues& symbols, std::uint64_t seed);

// The first difference between two lists of tensors, or an empty string: types and integers must be equal, floats within
// `tolerance` of the largest magnitude of the tensor (NaN equals NaN only, infinities themselves).
std::string difference(const std::vector<HostTensor>& found, const std::vector<HostTensor>& wanted, double tolerance = 2e-5);

}  // namespace oclc
