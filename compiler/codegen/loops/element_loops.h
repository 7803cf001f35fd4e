// What a loop nest does for one point of the parallel axes, or a vector of them: the stages' loops, then the stores.
#pragma once
#include <string>

#include "compiler/codegen/loops/vector_axis.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// In the vector mode that `e` is in; `vector` is the kernel's.
void emit_element(Emitter& e, const Kernel& kernel, const VectorAxis& vector);

struct StripVectors {
  int count = 1;
  std::string begin;  // C text of where vector `u` begins
};
// A register tile of several vectors of the parallel axis, in unrolled loops: the stages' loops read contiguous memory, and
// guards and addresses are computed once. `axis`: the vector axis. Wants has_strips(): few sums.
bool has_strips(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis);
void emit_strip(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis, const StripVectors& vectors);

}  // namespace oclc
