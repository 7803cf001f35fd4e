// What of a kernel varies along which axis.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Axes each node varies along; a stage's result along all parallel axes that its body varies along.
std::vector<std::set<std::string>> find_dependencies(const Kernel& kernel);

// True if the nodes that vary along `axis` can be computed on vectors: 4-byte types, unit or zero strides, guards that are
// uniform in vectors which begin at multiples of `aligned`, a multiple of their width. Loads of `converted`, another integer
// type, as well, which casts alone read.
bool can_vectorize(const Kernel& kernel, const std::string& axis, int aligned = 1,
                   std::optional<DType> converted = std::nullopt);

}  // namespace oclc
