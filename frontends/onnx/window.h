// Attributes of windows, as convolutions and pooling have them.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

struct Window {
  Ints kernel, strides, dilations, pads;
};

// `count` numbers of at least `least`.
Ints checked_list(OpContext& c, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least);
// Attributes strides, dilations, pads and auto_pad for a window of that size over input 0.
Window window_of(OpContext& c, const Ints& kernel);
// The same with the size that weights[O, C, k..] have.
Window window_of_weights(OpContext& c, const Value* weights);
// Number of spatial axes of input 0, which has a batch and channels before them.
std::size_t spatial_axes(OpContext& c);

}  // namespace oclc::onnx
