// Depthwise convolutions and pooling between planes on a CPU: the template window_planes_cpu.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Nothing for what is no sum or maximum over windows of planes of known size, or whose rows are no vectors.
std::optional<GeneratedKernel> generate_window_planes(const Kernel& kernel, const Target& target);

}  // namespace oclc
