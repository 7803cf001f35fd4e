// Inference whose weights can change without compiling again.
#pragma once
#include "compiler/ir/graph.h"

namespace oclc {

// A module as ImportOptions::training leaves it, one entry over its weights as state, becomes inference: batch normalisation
// and dropout become arithmetic, and the weights stay state that runs read and leave as it is, of the model's names, shapes and
// types. So nothing of them is folded, packed or transformed when the plan is made; kernels do in each run what would have been
// done once. CompileError (usage) for a model without such weights, or whose outputs take their names.
void make_refittable(Module& module);

}  // namespace oclc
