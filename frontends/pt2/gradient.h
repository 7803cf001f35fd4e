// Backward operators, made of the forward ones by the core's own differentiation.
#pragma once
#include <functional>
#include <vector>

#include "frontends/pt2/context.h"

namespace oclc::pt2 {

// Of the sum of `gradient` times the result of `forward`: the gradients of its operands. `forward` adds the operator on values
// that stand for `operands`; what of it the gradients do not need is removed with the graph's dead nodes.
std::vector<Value*> gradients_of(AtenContext& c, const std::vector<Value*>& operands, Value* gradient,
                                 const std::function<Value*(const std::vector<Value*>&)>& forward);

}  // namespace oclc::pt2
