// The operator Gradient of ONNX's training domain: derivatives of a part of the graph it stands in.
#pragma once
#include <span>
#include <vector>

#include "compiler/ops/builder.h"

namespace oclc::onnx {

// Derivatives of the sum of `y` for the first `count` of `variables`, where the nodes between `variables` and `y` are taken as
// a function of `variables` that is evaluated at `points`. What `y` needs besides is held fixed. CompileError as from
// add_gradients.
std::vector<Value*> gradients_at(Builder& b, Value* y, std::span<Value* const> variables, std::span<Value* const> points,
                                 std::size_t count);

}  // namespace oclc::onnx
