// Runs graphs on the host through OpDef::eval: the oracle of the tests and the constant folder. Slow.
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

// The graph's outputs. `inputs` are in the order of graph.inputs(); symbols that stand alone as an input's dimension are bound
// from its shape, `symbols` gives the others. CompileError if inputs do not fit, or if an index is out of range. Frees
// intermediates after their last use.
std::vector<HostTensor> evaluate(const Graph& graph, std::span<const HostTensor> inputs, const SymbolValues& symbols = {});

// Output 0 of one node (all of them: node.op->eval). Absent optional inputs are tensors without elements.
HostTensor eval_node(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols = {});

// The bytes that the texts of the node's results have at most: each is made of all its operands' texts or of one number. 0 if
// the results are numbers.
std::int64_t most_text_bytes(const Node& node, std::span<const HostTensor> inputs);

// Sizes of `shape`; CompileError if a symbol has no value.
std::vector<std::int64_t> bind_shape(const Shape& shape, const SymbolValues& symbols);

}  // namespace oclc
