// Loop nests for pointwise, reduce and row kernels (and, as a fallback, for contractions without a template).
#pragma once
#include "compiler/codegen/codegen.h"

namespace oclc {

GeneratedKernel generate_loops(Kernel kernel, const Target& target);
// On a GPU: at most `groups` tiles, whose work-items go through the iteration space in steps of all of them, four neighbours at
// a time where those are vectors.
GeneratedKernel generate_strided_loops(Kernel kernel, const Target& target, std::int64_t groups);
// The whole iteration space as the body of one function: for one work-item on a CPU, shared among the `group` work-items of
// one work-group elsewhere.
std::string whole_loops(Kernel kernel, const Target& target, int group);

}  // namespace oclc
