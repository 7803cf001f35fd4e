// What the readers of quantised operators share.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

// round(x / scale) + zero, within the integers of dtype. `zero` may be null.
Value* quantized(OpContext& c, Value* x, Value* scale, Value* zero, DType dtype);
// (x - zero) * scale, for scalars or numbers that broadcast against x. `zero` may be null.
Value* dequantized(OpContext& c, Value* x, Value* scale, Value* zero);
// x as integers of 8 bits with their scale and zero point, from the smallest and largest number.
Outputs dynamically_quantized(OpContext& c, Value* x);
// (a - zero_a) (b - zero_b) in i32; zero points of rows of a and of columns of b, or null.
Value* integer_product(OpContext& c, Value* a, Value* b, Value* zero_a, Value* zero_b);

}  // namespace oclc::onnx
