// Largest results of windows, taken in the launch of the product that computes them.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Where a maximum over windows that do not overlap alone reads the results of a product whose groups share terms (see
// split_k.h), the product stores the largest of each window instead (Contraction::windows): its groups read the sums of
// others anyway, in any order, so that a launch is saved and a store and load of all results. Comes behind split_k.
void pool_products(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc
