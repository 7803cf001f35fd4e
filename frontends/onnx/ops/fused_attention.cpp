// Attention as operators of com.microsoft have it: with its projections, packed operands, masks of several forms and caches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/onnx/ops/attention.h"
#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Value* size_value(OpContext& c, const Expr& e) { return c.b.exprs({e}, {}); }

// x[.., begin : begin + size].
Value* last_columns(OpContext& c, Value* x, const Expr& begin, const Expr& size) { return c.b.slice_axis(x, -1, begin, size); }

// [B, S, heads, parts, width] as `parts` tensors [B, heads, S, width].
std::vector<Value*> unpacked_heads(OpContext& c, Value* x, std::int64_t parts) {
  const Shape s = x->type.shape;
  if (!(s[3] == Expr(parts))) c.fail(fmt::format("{} packed tensors", parts), x->type.text());
  std::vector<Value*> out;
  for (std::int64_t i = 0; i < parts; ++i) {
    Value* one = c.b.reshape(c.b.slice_axis(x, 3, Expr(i), Expr(1)), {s[0], s[1], s[2], s[4]});
    out.push_back(c.b.transpose(one, {0, 2, 1, 3}));
  }
  return out;
}

// What to add to the scores of keys that a mask leaves out: `filter` where it is 0. Masks are the number of keys of each batch
// [B], ends and begins [2 B], or say it of each key [B, T] or of each query and key [B, S, T].
Value* filter_of_mask(OpContext& c, Value* mask, const Expr& batch, const Expr& keys, double filter, DType dtype) {
  Value* column = c.b.iota({Expr(1), keys}, 1, DType::i64);
  Value* kept = nullptr;
  const auto row = [&](Value* v, const Expr& begin) {
    return c.b.cast(c.b.reshape(c.b.slice_axis(v, 0, begin, batch), {batch, Expr(1)}), DType::i64);
  };
  const std::size_t rank = mask->type.rank();
  if (rank == 1 && mask->type.shape[0] == batch) {
    kept = c.b.call("less", {column, row(mask, Expr(0))});
  } else if (rank == 1 && mask->type.shape[0] == batch * Expr(2)) {
    kept = c.b.call("and",
                    {c.b.call("less", {column, row(mask, Expr(0))}), c.b.call("greater_equal", {column, row(mask, batch)})});
  } else if (rank == 2 || rank == 3) {
    kept = c.b.unary("not", c.b.call("equal", {mask, c.b.scalar(mask->type.dtype, 0)}));
  } else {
    c.unsupported("a mask [B], [2 B], [B, T] or [B, S, T]", mask->type.text());
  }
  Shape shape = kept->type.shape;
  if (shape.size() == 2) shape.insert(shape.begin() + 1, Expr(1));
  shape.insert(shape.begin() + 1, Expr(1));
  return c.b.where(c.b.reshape(kept, shape), c.b.scalar(dtype, 0), c.b.scalar(dtype, filter));
}

struct Scores {
  double scale = 0;          // 0: by the width of the heads
  double cap = 0;            // 0: none
  Value* bias = nullptr;     // added
  Value* visible = nullptr;  // where keys may be looked at
  Value* sink = nullptr;     // [heads or 1, 1, 1]: what is in the denominator beside the keys
};

// softmax(q k^T) v for q[B, N, S, H], k[B, N or fewer, T, H], v[B, .., T, V], as [B, S, N V].
Value* attended(OpContext& c, Value* q, Value* k, Value* v, const Scores& s) {
  const Expr heads = q->type.shape[1], width = q->type.shape[3];
  k = repeated_heads(c, k, heads);
  v = repeated_heads(c, v, heads);
  if (s.scale == 0 && !width.is_constant()) c.fail("heads of known width", q->type.text());
  const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(width.value()));
  Value* scores = c.b.mul(c.b.matmul(q, k, false, true), scale);
  if (s.cap > 0) scores = c.b.mul(c.b.tanh(c.b.mul(scores, 1 / s.cap)), s.cap);
  if (s.bias) scores = c.b.add(scores, s.bias);
  if (s.visible) scores = c.b.where(s.visible, scores, c.b.scalar(q->type.dtype, -std::numeric_limits<double>::infinity()));
  if (s.sink) {
    Shape one = scores->type.shape;
    const Expr keys = one[3];
    one[3] = Expr(1);
    scores = c.b.concat({scores, c.b.expand(s.sink, one)}, 3);
    return merged_heads(c, c.b.matmul(last_columns(c, c.b.softmax(scores, 3), Expr(0), keys), v));
  }
  return merged_heads(c, c.b.matmul(c.b.softmax(scores, 3), v));
}

// Keys up to the query's own place, which stands behind `past` others.
Value* up_to_query(OpContext& c, const Expr& queries, const Expr& keys, const Expr& past) {
  return c.b.call("less_equal", {c.b.iota({Expr(1), keys}, 1, DType::i64), c.b.iota({queries, Expr(1)}, 0, DType::i64, past)});
}

Outputs multi_head_attention(OpContext& c) {
  const std::int64_t heads = c.integer("num_heads");
  const double filter = c.real("mask_filter_value", -10000.0);
  for (const std::size_t i : {8u, 9u})
    if (c.optional_input(i)) c.unsupported("caches that are results of their own", fmt::format("input {}", i));
  Value *q = c.input(0), *k = c.optional_input(1), *v = c.optional_input(2);
  if (Value* bias = c.optional_input(3)) {
    if (q->type.rank() != 3 || !k || !v || k->type.rank() != 3 || v->type.rank() != 3)
      c.unsupported("a bias of operands of rank 3", q->type.text());
    const Expr first = q->type.shape[2], second = k->type.shape[2], third = v->type.shape[2];
    q = c.b.add(q, last_columns(c, bias, Expr(0), first));
    k = c.b.add(k, last_columns(c, bias, first, second));
    v = c.b.add(v, last_columns(c, bias, first + second, third));
  }
  if (q->type.rank() == 5) {
    const std::vector<Value*> parts = unpacked_heads(c, q, 3);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = by_heads(c, q, heads);
    if (!k) c.fail("keys", "none");
    if (k->type.rank() == 5) {
      const std::vector<Value*> parts = unpacked_heads(c, k, 2);
      k = parts[0], v = parts[1];
    } else {
      if (!v) c.fail("values", "none");
      k = by_heads(c, k, heads);
      v = by_heads(c, v, heads);
    }
  }
  Expr past = 0;
  if (Value* before = c.optional_input(6)) {
    past = before->type.shape.at(2);
    k = c.b.concat({before, k}, 2);
    v = c.b.concat({c.input(7), v}, 2);
  }
  const Expr keys = k->type.shape[2], queries = q->type.shape[2];
  Scores s;
  s.scale = c.real("scale", 0.0);
  if (Value* mask = c.optional_input(4)) s.bias = filter_of_mask(c, mask, q->type.shape[0], keys, filter, q->type.dtype);
  if (Value* more = c.optional_input(5)) s.bias = s.bias ? c.b.add(s.bias, more) : more;
  if (c.flag("unidirectional")) s.visible = up_to_query(c, queries, keys, past);
  return {attended(c, q, k, v, s), k, v};
}

// The projected operand [B, S, q + k + v] with what the node says of masks and of the past; gives the result and both caches.
Outputs self_attention(OpContext& c, Value* projected, Value* mask, Value* past, Value* bias) {
  const std::int64_t heads = c.integer("num_heads");
  const double filter = c.real("mask_filter_value", -10000.0);
  if (c.flag("do_rotary")) c.unsupported("attention without rotation of its own", "do_rotary");
  c.ignore({"rotary_embedding_dim"});
  if (c.flag("past_present_share_buffer")) c.unsupported("caches that are results of their own", "past_present_share_buffer");
  const Expr whole = projected->type.shape.back();
  Ints widths = c.integers("qkv_hidden_sizes", Ints{});
  if (widths.empty()) {
    if (!whole.is_constant() || whole.value() % 3 != 0) c.fail("weights of three equal parts", projected->type.text());
    widths.assign(3, whole.value() / 3);
  }
  if (widths.size() != 3 || !(Expr(widths[0] + widths[1] + widths[2]) == whole))
    c.fail(fmt::format("three sizes whose sum is {}", whole.text()), fmt::format("[{}]", fmt::join(widths, ", ")));
  Value* q = by_heads(c, last_columns(c, projected, Expr(0), Expr(widths[0])), heads);
  Value* k = by_heads(c, last_columns(c, projected, Expr(widths[0]), Expr(widths[1])), heads);
  Value* v = by_heads(c, last_columns(c, projected, Expr(widths[0] + widths[1]), Expr(widths[2])), heads);
  Expr before = 0;
  if (past) {
    if (past->type.rank() != 5) c.fail("a past [2, B, heads, steps, width]", past->type.text());
    before = past->type.shape[3];
    const Shape one(past->type.shape.begin() + 1, past->type.shape.end());
    k = c.b.concat({c.b.reshape(c.b.slice_axis(past, 0, Expr(0), Expr(1)), one), k}, 2);
    v = c.b.concat({c.b.reshape(c.b.slice_axis(past, 0, Expr(1), Expr(1)), one), v}, 2);
  }
  const Expr keys = k->type.shape[2], queries = q->type.shape[2];
  Scores s;
  s.scale = c.real("scale", 0.0);
  if (mask) s.bias = filter_of_mask(c, mask, q->type.shape[0], keys, filter, q->type.dtype);
  if (bias) s.bias = s.bias ? c.b.add(s.bias, bias) : bias;
  if (c.flag("unidirectional")) s.visible = up_to_query(c, queries, keys, before);
  Outputs out{attended(c, q, k, v, s)};
  if (!c.wants_output(1)) return out;
  const auto apart = [&](Value* x) {
    Shape shape = x->type.shape;
    shape.insert(shape.begin(), Expr(1));
    return c.b.reshape(x, std::move(shape));
  };
  out.push_back(c.b.concat({apart(k), apart(v)}, 0));
  return out;
}

Outputs packed_attention(OpContext& c) {
  if (c.optional_input(6)) c.unsupported("caches that are results of their own", "an input past_sequence_length");
  Value* projected = c.b.matmul(c.input(0), c.input(1));
  if (Value* bias = c.optional_input(2)) projected = c.b.add(projected, bias);
  return self_attention(c, projected, c.optional_input(3), c.optional_input(4), c.optional_input(5));
}

Outputs quantized_attention(OpContext& c) {
  Value* sum = integer_product(c, c.input(0), c.input(1), c.optional_input(6), c.optional_input(7));
  const auto factor = [&](Value* v) { return v->type.elements() == Expr(1) ? c.b.reshape(v, {}) : v; };
  Value* scale = c.b.mul(factor(c.input(3)), factor(c.input(4)));
  Value* projected = c.b.add(c.b.mul(c.b.cast(sum, DType::f32), scale), c.input(2));
  return self_attention(c, projected, c.optional_input(5), c.optional_input(8), nullptr);
}

// Rows of the caches of cosines and sines at `places`[B or 1, S], as [B or 1, 1, S, half].
Value* cache_rows(OpContext& c, Value* cache, Value* places) {
  Value* rows = c.b.gather(cache, places, 0);
  Shape shape = rows->type.shape;
  shape.insert(shape.begin() + 1, Expr(1));
  return c.b.reshape(rows, std::move(shape));
}

Outputs cached_rotary_embedding(OpContext& c) {
  Value *given = c.input(0), *places = c.b.cast(c.input(1), DType::i64), *cosines = c.input(2), *sines = c.input(3);
  if (c.flag("is_packed_batching")) c.unsupported("batches of one length", "is_packed_batching");
  c.ignore({"scale"});
  std::int64_t heads = c.integer("num_heads", 0);
  const std::int64_t part = c.integer("rotary_embedding_dim", 0);
  const Expr half = cosines->type.shape.back();
  if (!half.is_constant()) c.fail("caches of known width", cosines->type.text());
  if (given->type.rank() == 3 && heads == 0) {
    const Expr width = given->type.shape[2];
    if (part != 0 || !width.is_constant()) c.fail("attribute 'num_heads'", "none");
    heads = width.value() / (2 * half.value());
  }
  Value* x = by_heads(c, given, heads);
  if (places->type.rank() == 1)  // the place of the first step
    places = c.b.add(c.b.reshape(places, {Expr(1), Expr(1)}), c.b.iota({Expr(1), x->type.shape[2]}, 1, DType::i64));
  Value* y = rotated(c, x, cache_rows(c, cosines, places), cache_rows(c, sines, places), part != 0 ? part : 2 * half.value(),
                     c.flag("interleaved"));
  return {given->type.rank() == 3 ? merged_heads(c, y) : y};
}

// What a step of a decoder knows of its cache: how many keys each batch had before, and has then.
struct CacheLengths {
  Value *before, *after;  // [B, 1, 1, 1]
};

CacheLengths cache_lengths(OpContext& c, const Expr& batch, const Expr& steps) {
  Value* last = c.b.cast(c.b.reshape(c.input(5), {batch, Expr(1), Expr(1), Expr(1)}), DType::i64);
  Value* after = c.b.add(last, c.b.scalar(DType::i64, 1));
  return {c.b.max(c.b.sub(after, size_value(c, steps)), c.b.scalar(DType::i64, 0)), after};
}

// past[B, N, P, H] with fresh[B, N, S, H] behind what each batch had. P may be room for more than all: the result is as long as
// the longest sequence, `total`, but never shorter than the past.
Value* grown_cache(OpContext& c, Value* past, Value* fresh, const CacheLengths& n, const Expr& total) {
  if (!past) return fresh;
  const Expr steps = fresh->type.shape[2], had = past->type.shape[2], more = max(Expr(0), total - had), keys = had + more;
  std::vector<Expr> none(4, Expr(0)), behind = none;
  behind[2] = more;
  Value* wide = c.b.pad(past, none, behind);
  Value* at = c.b.sub(c.b.iota({Expr(1), Expr(1), keys, Expr(1)}, 2, DType::i64), n.before);
  Value* zero = c.b.scalar(DType::i64, 0);
  Value* inside = c.b.call("and", {c.b.call("greater_equal", {at, zero}), c.b.call("less", {at, size_value(c, steps)})});
  Value* from = c.b.expand(c.b.where(inside, at, zero), wide->type.shape);
  // Room behind the last step is zero.
  Value* kept = c.b.where(c.b.call("less", {at, zero}), wide, c.b.scalar(wide->type.dtype, 0));
  return c.b.where(inside, c.b.gather_elements(fresh, from, 2), kept);
}

void check_group_query(OpContext& c) {
  c.ignore({"qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon", "kv_cache_bit_width"});
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (c.text(name, "NONE") != "NONE") c.unsupported("caches of real numbers", c.text(name));
  if (c.flag("sliding_window_cache")) c.unsupported("caches that hold all keys", "sliding_window_cache");
  if (c.integer("qk_output", 0) != 0) c.unsupported("no use of the scores", "qk_output");
  for (std::size_t i = 12; i < 17; ++i)
    if (c.optional_input(i)) c.unsupported("attention without norms and scales of its own", fmt::format("input {}", i));
}

Outputs group_query_attention(OpContext& c) {
  check_group_query(c);
  const std::int64_t heads = c.integer("num_heads"), shared = c.integer("kv_num_heads");
  Value *q = c.input(0), *k = c.optional_input(1), *v = c.optional_input(2);
  if (!k) {
    const Expr whole = q->type.shape.back(), width = floor_div(whole, Expr(heads + 2 * shared));
    k = last_columns(c, q, width * Expr(heads), width * Expr(shared));
    v = last_columns(c, q, width * Expr(heads + shared), width * Expr(shared));
    q = last_columns(c, q, Expr(0), width * Expr(heads));
  }
  q = by_heads(c, q, heads);
  k = by_heads(c, k, shared);
  v = by_heads(c, v, shared);
  const Expr batch = q->type.shape[0], steps = q->type.shape[2];
  const CacheLengths n = cache_lengths(c, batch, steps);
  Value* own = c.b.add(n.before, c.b.iota({Expr(1), Expr(1), steps, Expr(1)}, 2, DType::i64));  // places of the queries
  const bool interleaved = c.flag("rotary_interleaved");
  if (c.flag("do_rotary")) {
    Value* places = c.optional_input(9) ? c.input(9) : c.b.reshape(own, {batch, steps});
    Value *cosine = cache_rows(c, c.input(7), places), *sine = cache_rows(c, c.input(8), places);
    const Expr half = c.shape(7).back();
    if (!half.is_constant()) c.fail("caches of known width", c.input(7)->type.text());
    q = rotated(c, q, cosine, sine, 2 * half.value(), interleaved);
    k = rotated(c, k, cosine, sine, 2 * half.value(), interleaved);
  }
  const Expr total = c.sizes(6, "the length of the longest sequence").at(0);
  k = grown_cache(c, c.optional_input(3), k, n, total);
  v = grown_cache(c, c.optional_input(4), v, n, total);
  const Expr keys = k->type.shape[2];
  Scores s;
  s.scale = c.real("scale", 0.0);
  s.cap = c.real("softcap", 0.0);
  s.bias = c.optional_input(10);
  Value* column = c.b.iota({Expr(1), Expr(1), Expr(1), keys}, 3, DType::i64);
  s.visible = c.b.call(c.flag("causal", true) ? "less_equal" : "less", {column, c.flag("causal", true) ? own : n.after});
  const std::int64_t window = c.integer("local_window_size", -1);
  if (window > 0)
    s.visible = c.b.call("and", {s.visible, c.b.call("greater", {column, c.b.sub(own, size_value(c, Expr(window)))})});
  if (c.optional_input(11)) {
    s.sink = c.b.reshape(c.input(11), {Expr(heads), Expr(1), Expr(1)});
  } else if (c.integer("smooth_softmax", 0) > 0) {
    s.sink = c.b.reshape(c.b.scalar(q->type.dtype, 0), {Expr(1), Expr(1), Expr(1)});
  }
  return {attended(c, q, k, v, s), k, v};
}

constexpr OpRow kFusedAttentionRows[] = {
    {"com.microsoft.Attention", 1, 2, 7, packed_attention},
    {"com.microsoft.GroupQueryAttention", 1, 7, 17, group_query_attention},
    {"com.microsoft.MultiHeadAttention", 1, 1, 10, multi_head_attention},
    {"com.microsoft.QAttention", 1, 5, 9, quantized_attention},
    {"com.microsoft.RotaryEmbedding", 1, 4, 4, cached_rotary_embedding},
};

}  // namespace

std::span<const OpRow> fused_attention_rows() { return kFusedAttentionRows; }

}  // namespace oclc::onnx
