// Reductions of few results cut into pieces of an axis that more work-groups sum up, and the sum of the pieces: see
// split_k.h.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

struct Split {
  int reduction = -1;  // index into Kernel::reduction
  std::int64_t parts = 1;
  // Where one axis is too short: each of its parts is so many parts of this one, which `parts` counts.
  int inner = -1;
  std::int64_t inner_parts = 1;
};

// How a reduction with few results is cut, whose groups are too few or read too little of each line of memory; nothing where
// that takes longer.
std::optional<Split> best_cut(const Kernel& kernel, const Target& target);
// Makes kernel `index` the one that adds up the pieces and does what follows; those before it are appended to `steps`.
void split_reductions(Schedule& schedule, std::size_t index, const Split& split, std::vector<Step>& steps);

// The axis of the parts, outermost among those of the kernel that computes them.
Axis axis_of_parts(std::int64_t parts);
// Gives the axis that is cut its shorter extent, and returns what its variable becomes.
Substitution cut_axis(Kernel& kernel, const Split& split);
// Elements of the results, and one of the partial sums: [part][axes...].
Expr points_of(const Kernel& kernel);
Expr place_of_part(const Kernel& whole, const Expr& part);
// A new buffer for as many results.
int add_parts_buffer(Schedule& schedule, const Kernel& kernel, std::int64_t parts);

}  // namespace oclc
