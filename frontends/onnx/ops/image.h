// What operators that read an image at computed positions share.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

// A size, or a number, of the element type of x.
Value* size_like(OpContext& c, Value* x, const Expr& size);
Value* like(OpContext& c, Value* x, double v);
// x, or the nearer of the two where it lies outside of them.
Value* between(OpContext& c, Value* x, Value* low, Value* high);
// v[..] as [.., 1], beside elements of all channels.
Value* with_channel(OpContext& c, Value* v);

}  // namespace oclc::onnx
