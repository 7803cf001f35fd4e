// The index maps of the movement operators, element by element: for the reference and for the content of small tensors.
#pragma once
#include <functional>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ops/reference/host_index.h"

namespace oclc {

// Calls visit(position in the result, operand, position in the operand) for each element of the result, in row-major order;
// positions that padding fills are left out. `shapes` are the operands' sizes.
using MovementVisit = std::function<void(std::int64_t, std::size_t, std::int64_t)>;
void visit_movement(const Node& node, const std::vector<Sizes>& shapes, const SymbolValues& symbols,
                    const MovementVisit& visit);

}  // namespace oclc
