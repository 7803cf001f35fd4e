// One kernel that computes all kernels of a ragged group: a table tells each tile which member it belongs to, where that lies
// and how large it is.
#pragma once
#include "compiler/codegen/launches/loop_kernel.h"

namespace oclc {

// Its arguments are the memory objects of the group (kernels/ragged_objects.h), as operands numbered by `buffers`, then the
// table. A row has the member's first tile, the place of each operand in its memory object, and which object that is where
// there are several; then sizes and numbers that differ. No work-group is beyond the last tile of its member.
SeveralKernels generate_ragged(const std::string& name, const RaggedStep& group, const Schedule& schedule,
                               const Target& target);

// "nef.Voltage x 3".
std::string title_of(const RaggedStep& group, const Schedule& schedule);

}  // namespace oclc
