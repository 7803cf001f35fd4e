// What the readers of quantised operators share.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

// round(x / scale) + zero, within the integers of dtype. `zero` may be null. `zero_first`: round(x / scale + zero), which
// differs where a number lies in the middle between two.
Value* quantized(OpContext& c, Value* x, Value* scale, Value* zero, DType dtype, bool zero_first = false);
// (x - zero) * scale, for scalars or numbers that broadcast against x. `zero` may be null.
Value* dequantized(OpContext& c, Value* x, Value* scale, Value* zero);
// x as integers of 8 bits with their scale and zero point, from the smallest and largest number.
Outputs dynamically_quantized(OpContext& c, Value* x);
// An error unless the zero point, which may be null, is of the type of what it is subtracted from.
void require_zero_of(OpContext& c, const Value* zero, DType dtype);
// (a - zero_a) (b - zero_b) in i32; zero points of rows of a and of columns of b, or null.
Value* integer_product(OpContext& c, Value* a, Value* b, Value* zero_a, Value* zero_b);
// The convolution that the node describes of (x - zero_x) with (w - zero_w), in i32; a zero point of each feature, or null.
Value* integer_convolution(OpContext& c, Value* x, Value* w, Value* zero_x, Value* zero_w);
// A scale or zero point of the rows of a left operand, or of the columns of a right one; null where it is.
Value* of_rows(OpContext& c, Value* v, bool rows);
// One number, or one of each feature along `axis` of a tensor with `rank` axes.
Value* per_feature(OpContext& c, Value* v, std::size_t axis, std::size_t rank);

}  // namespace oclc::onnx
