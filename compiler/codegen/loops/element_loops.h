// What a loop nest does for one point of the parallel axes, or a vector of them: the stages' loops, then the stores.
#pragma once
#include <string>
#include <vector>

#include "compiler/codegen/loops/vector_axis.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// In the vector mode that `e` is in; `vector` is the kernel's.
void emit_element(Emitter& e, const Kernel& kernel, const VectorAxis& vector);

// Several vectors of the parallel axis side by side: what the stages' loops read of them is one piece of memory, and their
// guards and places are found once. `axis`: the vector axis; `begins`: C texts of where each vector begins. Wants has_strips():
// few sums.
bool has_strips(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis);
void emit_strip(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis,
                const std::vector<std::string>& begins);

}  // namespace oclc
