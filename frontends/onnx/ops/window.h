// Attributes of windows, as convolutions and pooling have them.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

struct Window {
  Ints kernel, strides, dilations, pads;
  std::vector<Expr> open_pads;  // not empty: pads that depend on open sizes; `pads` are zeros then
};

// `count` numbers of at least `least`.
Ints checked_list(OpContext& c, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least);
// Attributes strides, dilations, pads and auto_pad for a window of that size over input 0.
// `open_pads`: the reader pads the operand itself where pads depend on open sizes; else those are refused.
Window window_of(OpContext& c, const Ints& kernel, bool open_pads = false);
// The same with the size that weights[O, C, k..] have.
Window window_of_weights(OpContext& c, const Value* weights, bool open_pads = false);
// x with the window's open pads around it.
Value* padded(OpContext& c, Value* x, const Window& w, double value);
// The result y of a window over a padded operand, under the number of positions that auto_pad is defined by.
Value* same_positions(OpContext& c, Value* y, const Window& w);
// [n, positions.., c] as [n, c, positions..], and back.
Value* channels_second(OpContext& c, Value* x);
Value* channels_last(OpContext& c, Value* x);
// Number of spatial axes of input 0, which has a batch and channels before them.
std::size_t spatial_axes(OpContext& c);

}  // namespace oclc::onnx
