// What the readers of attention operators share.
#pragma once
#include "frontends/onnx/context.h"

namespace oclc::onnx {

// x[B, S, heads * width] as [B, heads, S, width]; x of rank 4 as it is.
Value* by_heads(OpContext& c, Value* x, std::int64_t heads);
// [B, heads, S, width] as [B, S, heads * width].
Value* merged_heads(OpContext& c, Value* x);
// [B, heads, S, D] from [B, kv heads, S, D]: heads that share keys and values are neighbours.
Value* repeated_heads(OpContext& c, Value* x, const Expr& heads);
// The attribute `scale`, or 1 / sqrt of the heads' width.
double score_scale(OpContext& c, const Value* q);
// x[B, heads, S, width] turned by its position: cosines and sines of [B or 1, 1, S, turned / 2].
Value* rotated(OpContext& c, Value* x, Value* cosine, Value* sine, std::int64_t turned, bool interleaved);

}  // namespace oclc::onnx
