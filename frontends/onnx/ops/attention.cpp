// Operators of transformers: attention, rotary embedding and the normalisation by the root of the mean square.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/onnx/ops/attention.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs rms_normalization(OpContext& c) {
  c.ignore({"stash_type"});
  Value *x = c.input(0), *scale = c.input(1);
  const std::size_t axis = c.axis_attribute(-1);
  const Shape normalized(x->type.shape.begin() + static_cast<std::ptrdiff_t>(axis), x->type.shape.end());
  if (!(scale->type.shape == normalized)) scale = c.b.expand(scale, normalized);
  return {c.b.rms_norm(x, scale, static_cast<std::int64_t>(axis), c.real("epsilon", 1e-5))};
}

Outputs rotary_embedding(OpContext& c) {
  Value* given = c.input(0);
  const bool interleaved = c.flag("interleaved");
  const std::int64_t heads = c.integer("num_heads", 0), part = c.integer("rotary_embedding_dim", 0);
  Value* x = by_heads(c, given, heads);
  const Expr batch = x->type.shape[0], steps = x->type.shape[2], width = x->type.shape[3];
  if (!width.is_constant()) c.fail("heads of known width", x->type.text());
  const std::int64_t turned = part == 0 ? width.value() : part;
  if (turned < 2 || turned % 2 != 0 || turned > width.value())
    c.fail(fmt::format("an even rotary_embedding_dim from 2 to {}", width.value()), std::to_string(turned));
  const Expr half = turned / 2;
  // Caches [steps, half] at the positions, or [B, S, half] as they are; for all heads.
  const auto cache = [&](std::size_t i) {
    Value* v = c.optional_input(3) ? c.b.gather(c.input(i), c.b.cast(c.input(3), DType::i64), 0) : c.input(i);
    const Shape wanted{batch, steps, half};
    v = c.b.fit(v, wanted);
    if (!(v->type.shape == wanted)) c.fail(fmt::format("cosines and sines {}", text_of(wanted)), v->type.text());
    return c.b.reshape(v, {batch, Expr(1), steps, half});
  };
  Value *cosine = cache(1), *sine = cache(2);
  Value* y = rotated(c, x, cosine, sine, turned, interleaved);
  return {given->type.rank() == 3 ? merged_heads(c, y) : y};
}

// What the mask adds to the scores of `keys` keys.
Value* bias_of_mask(OpContext& c, const Expr& keys, DType dtype) {
  Value* mask = c.input(3);
  const double lowest = -std::numeric_limits<double>::infinity();
  if (mask->type.rank() == 0) c.fail("a mask of rank 1 or more", mask->type.text());
  if (mask->type.dtype == DType::boolean) mask = c.b.where(mask, c.b.scalar(dtype, 0), c.b.scalar(dtype, lowest));
  // A mask of fewer columns leaves out the keys after them.
  const Expr missing = keys - mask->type.shape.back();
  if (missing == Expr(0) || mask->type.shape.back() == Expr(1)) return mask;
  std::vector<Expr> before(mask->type.rank(), Expr(0)), after = before;
  after.back() = missing;
  return c.b.pad(mask, std::move(before), std::move(after), lowest);
}

// Which keys a query may look at, as a bool that broadcasts to [B, heads, queries, keys]; null: all of them. Queries stand at
// the positions after those of the cache.
Value* visible_keys(OpContext& c, const Expr& queries, const Expr& keys) {
  const std::int64_t left = c.integer("left_window_size", -1), right = c.integer("right_window_size", -1);
  for (const std::int64_t size : {left, right})
    if (size < -1) c.fail("window sizes of -1 or more", std::to_string(size));
  Value* used = c.optional_input(6);
  if (used && (c.optional_input(4) || c.optional_input(5))) c.fail("a past or the lengths of caches", "both");
  const Expr past = c.optional_input(4) ? c.input(4)->type.shape[2] : Expr(0);
  Value* row = c.b.iota({queries, Expr(1)}, 0, DType::i64, past);
  Value* column = c.b.iota({Expr(1), keys}, 1, DType::i64);
  if (used) {
    used = c.b.reshape(used, {c.shape(0)[0], Expr(1), Expr(1), Expr(1)});
    row = c.b.add(row, c.b.sub(used, c.b.exprs({queries}, {})));
  }
  Value* visible = nullptr;
  const auto limit = [&](std::string_view relation, Value* bound) {
    Value* holds = c.b.call(relation, {column, bound});
    visible = visible ? c.b.call("and", {visible, holds}) : holds;
  };
  if (c.flag("is_causal")) limit("less_equal", row);
  if (left >= 0) limit("greater_equal", c.b.add(row, c.b.exprs({Expr(-left)}, {})));
  if (right >= 0) limit("less_equal", c.b.add(row, c.b.exprs({Expr(right)}, {})));
  if (used) limit("less", used);
  return visible;
}

Outputs attention(OpContext& c) {
  c.ignore({"softmax_precision"});
  const std::int64_t query_heads = c.integer("q_num_heads", 0), key_heads = c.integer("kv_num_heads", 0);
  const bool flat = c.rank(0) == 3;
  Value* q = by_heads(c, c.input(0), query_heads);
  Value* k = by_heads(c, c.input(1), key_heads);
  Value* v = by_heads(c, c.input(2), key_heads);
  if (c.optional_input(4)) k = c.b.concat({c.input(4), k}, 2);
  if (c.optional_input(5)) v = c.b.concat({c.input(5), v}, 2);
  Outputs out{nullptr, k, v, nullptr};
  const Expr heads = q->type.shape[1], queries = q->type.shape[2], keys = k->type.shape[2];
  const DType dtype = q->type.dtype;
  k = repeated_heads(c, k, heads);
  v = repeated_heads(c, v, heads);
  Value* scores = c.b.mul(c.b.matmul(q, k, false, true), score_scale(c, q));
  const std::int64_t wanted = c.integer("qk_matmul_output_mode", 0);
  if (wanted < 0 || wanted > 3) c.fail("qk_matmul_output_mode 0 to 3", std::to_string(wanted));
  if (wanted == 0) out[3] = scores;
  // Before the mask: a key that it leaves out would get a share from a cap after it.
  const double cap = c.real("softcap", 0);
  if (cap > 0) scores = c.b.mul(c.b.tanh(c.b.mul(scores, 1 / cap)), cap);
  if (wanted == 1) out[3] = scores;
  Value* lowest = c.b.scalar(dtype, -std::numeric_limits<double>::infinity());
  Value* visible = visible_keys(c, queries, keys);
  const bool only_causal = c.integer("left_window_size", -1) < 0 && !c.optional_input(6);
  Value* bias = c.optional_input(3) ? bias_of_mask(c, keys, dtype) : nullptr;
  if (visible && (bias || !only_causal)) bias = c.b.where(visible, bias ? bias : c.b.scalar(dtype, 0), lowest);
  Value* dead = nullptr;  // queries that may look at no key
  if (bias) {
    scores = c.b.add(scores, bias);
    const auto last = static_cast<std::int64_t>(bias->type.rank()) - 1;
    dead = c.b.call("equal", {c.b.reduce("reduce_max", bias, {last}, true), lowest});
  } else if (visible) {
    scores = c.b.where(visible, scores, lowest);
  }
  if (wanted == 2) out[3] = scores;
  Value* shares = c.b.softmax(scores, 3);
  const auto without_dead = [&](Value* x) { return dead ? c.b.where(dead, c.b.scalar(dtype, 0), x) : x; };
  if (wanted == 3 && c.wants_output(3)) out[3] = without_dead(shares);
  Value* y = without_dead(c.b.matmul(shares, v));
  out[0] = flat ? merged_heads(c, y) : y;
  return out;
}

constexpr OpRow kAttentionRows[] = {
    {"Attention", 23, 3, 7, attention},
    {"SimplifiedLayerNormalization", 1, 2, 2, rms_normalization},
    {"RMSNormalization", 23, 2, 2, rms_normalization},
    {"RotaryEmbedding", 23, 3, 4, rotary_embedding},
};

}  // namespace

Value* by_heads(OpContext& c, Value* x, std::int64_t heads) {
  if (x->type.rank() == 4) return x;
  const Shape& s = x->type.shape;
  if (s.size() != 3) c.fail("tensors of rank 3 or 4", x->type.text());
  if (heads < 1 || !(floor_div(s[2], Expr(heads)) * Expr(heads) == s[2]))
    c.fail("a number of heads that divides the width", fmt::format("{} heads, {}", heads, x->type.text()));
  return c.b.transpose(c.b.reshape(x, {s[0], s[1], Expr(heads), floor_div(s[2], Expr(heads))}), {0, 2, 1, 3});
}

Value* merged_heads(OpContext& c, Value* x) {
  const Shape s = x->type.shape;
  return c.b.reshape(c.b.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Value* rotated(OpContext& c, Value* x, Value* cosine, Value* sine, std::int64_t turned, bool interleaved) {
  const Expr half = turned / 2, width = x->type.shape[3];
  const auto columns = [&](Value* v, const Expr& start, const Expr& size, std::int64_t step) {
    return c.b.slice(v, {Expr(0), Expr(0), Expr(0), start}, {v->type.shape[0], v->type.shape[1], v->type.shape[2], size},
                     {1, 1, 1, step});
  };
  Value* a = columns(x, 0, half, interleaved ? 2 : 1);
  Value* b = columns(x, interleaved ? Expr(1) : half, half, interleaved ? 2 : 1);
  Value* real = c.b.sub(c.b.mul(cosine, a), c.b.mul(sine, b));
  Value* imaginary = c.b.add(c.b.mul(sine, a), c.b.mul(cosine, b));
  Value* y = nullptr;
  if (interleaved) {
    const Shape s = real->type.shape;
    const auto apart = [&](Value* v) { return c.b.reshape(v, {s[0], s[1], s[2], s[3], Expr(1)}); };
    y = c.b.reshape(c.b.concat({apart(real), apart(imaginary)}, 4), {s[0], s[1], s[2], Expr(turned)});
  } else {
    y = c.b.concat({real, imaginary}, 3);
  }
  if (turned < width.value()) y = c.b.concat({y, columns(x, Expr(turned), width - turned, 1)}, 3);
  return y;
}

Value* repeated_heads(OpContext& c, Value* x, const Expr& heads) {
  const Shape s = x->type.shape;
  if (s[1] == heads) return x;
  if (!s[1].is_constant() || !heads.is_constant() || s[1].value() < 1 || heads.value() % s[1].value() != 0)
    c.fail("a number of query heads that is a multiple of that of key heads",
           fmt::format("{} and {}", heads.text(), s[1].text()));
  const Expr times = heads.value() / s[1].value();
  Value* wide = c.b.expand(c.b.reshape(x, {s[0], s[1], Expr(1), s[2], s[3]}), {s[0], s[1], times, s[2], s[3]});
  return c.b.reshape(wide, {s[0], heads, s[2], s[3]});
}

double score_scale(OpContext& c, const Value* q) {
  if (c.has("scale")) return c.real("scale");
  const Expr& width = q->type.shape[3];
  if (!width.is_constant()) c.fail("heads of known width", q->type.text());
  return 1 / std::sqrt(static_cast<double>(width.value()));
}

std::span<const OpRow> attention_rows() { return kAttentionRows; }

}  // namespace oclc::onnx
