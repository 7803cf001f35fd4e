// State that is written while its old value is still wanted.
#pragma once
#include <set>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// State buffers of which a step writes elements that another step reads later, or that the same kernel reads at other points of
// its iteration space. Elements are told apart by the bounds of the index expressions.
std::set<int> overwritten_too_early(const Schedule& schedule, const std::vector<Step>& steps);

}  // namespace oclc
