// Filters of fused Winograd convolutions that are known only when the plan runs: training, and weights that are inputs.
#pragma once
#include <string_view>

#include "compiler/schedule/pass.h"

namespace oclc {

// Puts a kernel before each convolution that asks for Winograd with weights that are no constants, or before the loop that the
// convolution is in and that leaves its weights as they are: it writes their transforms in the panels of the template
// contraction_winograd_cpu.cl, which the convolution reads through an operand named kFilters. A convolution without that
// operand is an implicit product.
void transform_filters(Schedule& schedule, const ScheduleContext& context);
inline constexpr std::string_view kFilters = "filters";
// The operand of a convolution that has its transformed filters; -1 if there is none.
int filters_of(const Kernel& kernel);

}  // namespace oclc
