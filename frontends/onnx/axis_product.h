// A product with a known matrix along one axis: resizing and pooling whose windows differ in size.
#pragma once
#include "compiler/ops/builder.h"

namespace oclc::onnx {

// y[.., i, ..] = sum(k: shares[i, k] x[.., k, ..]) with shares [out, in]; `in` is the size of the axis.
Value* axis_product(Builder& b, Value* x, std::size_t axis, HostTensor shares);

}  // namespace oclc::onnx
