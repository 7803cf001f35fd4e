// Running sums and products.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

struct Running {
  std::size_t axis = 0;
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the end
  bool product = false;    // of the elements, not their sum
};

// Of x along an axis, each element's with those before it. A long axis is cut into blocks, whose results are combined with the
// running results of the blocks before: work that grows with the length, not with its square.
Value* running(Builder& b, Value* x, const Running& of);

}  // namespace oclc::onnx
