// From a contraction and its choice to code: one emitter for each strategy.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"

namespace oclc {

GeneratedKernel emit_contraction(const Kernel& kernel, const Choice& choice, const std::vector<Buffer>& buffers,
                                 const Target& target);

}  // namespace oclc
