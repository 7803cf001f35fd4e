// What a loop nest does for one point of the parallel axes, or a vector of them: the stages' loops, then the stores.
#pragma once
#include "compiler/codegen/scope.h"
#include "compiler/codegen/vector_axis.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// In the vector mode that `e` is in; `vector` is the kernel's.
void emit_element(Emitter& e, const Kernel& kernel, const VectorAxis& vector);

}  // namespace oclc
