// C text of a reduction's start, step and combination.
#pragma once
#include <set>
#include <string>

#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"
#include "compiler/targets/costs.h"

namespace oclc {

// Value that an accumulator starts with.
std::string initial_text(Stage::Combine combine, DType dtype);
// Two partial results, or vectors of them, as one.
std::string combine_text(Stage::Combine combine, DType dtype, const std::string& a, const std::string& b);
// Prelude function that combines the lanes of a vector.
std::string lane_function(Stage::Combine combine);
// Name of what stands beside a sum: s0_rest beside s0, s0_rest[u] beside s0[u].
std::string beside_sum(const std::string& sum, const std::string& suffix);
// Statement that adds `term` to a sum, and what rounding takes from it to the _rest beside it.
std::string carry_text(const std::string& sum, const std::string& term);
// Adds the stage's next term to `name`; with `carry`, carrying.
void accumulate_term(Emitter& e, const Kernel& kernel, const Stage& stage, const std::string& name, bool vector, bool carry);
// Takes the stage's next term, the largest or smallest so far, to `name` and its position to the _at beside it.
void compare_term(Emitter& e, const Stage& stage, const std::string& name);

// One past the last stage that may share the loops of stage `first`: same axes, and no need of a result from among them.
int end_of_shared_loops(const Emitter& e, const Kernel& kernel, int first);

// Whether what is summed up has loads side by side along the axis, rather than what is done with sums.
bool sums_along(const Kernel& kernel, const std::string& axis);
// Operands of one term that are loaded: what the sums' axes do not change is loaded before.
int loads_of_term(const Kernel& kernel);

// Lines that ask for what a vector of columns loads some rows ahead: rows lie apart from each other, some lines each, of which
// the processor guesses few. None for few rows.
std::set<std::string> rows_ahead(Emitter& e, const Kernel& kernel, const Axis& columns, const Axis& rows);

}  // namespace oclc
