// Products and convolutions of integers of 8 bits. Single precision holds all integers below 2^24, so sums of products that
// stay below that are exact there, in any order, and run as products of floats do. Longer sums are cut into blocks of terms,
// which are added up as i32.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/ops/window.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kExactSums = std::int64_t{1} << 24;
// Blocks begin at whole steps of matrix units.
constexpr std::int64_t kStepOfTerms = 64;

// The largest magnitude of x - zero.
std::int64_t largest_difference(OpContext& c, const Value* x, const Value* zero) {
  const std::int64_t low = is_signed(x->type.dtype) ? -128 : 0, high = low + 255;
  if (!zero) return std::max(-low, high);
  const auto known = c.known_value(zero);
  if (!known) return high - low;
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < known->elements(); ++i)
    largest = std::max({largest, std::abs(low - known->int_at(i)), std::abs(high - known->int_at(i))});
  return largest;
}

// Of the magnitudes of a constant right operand, the largest sum over `count` terms from `first` on.
using LargestSum = std::function<std::int64_t(std::int64_t first, std::int64_t count)>;

// So many of `terms` at a time keep sums exact: all, or equal blocks; nothing where one term is too much.
std::optional<std::int64_t> terms_of_block(std::int64_t terms, std::int64_t left, const LargestSum& sum) {
  for (std::int64_t blocks = 1;; blocks *= 2) {
    std::int64_t block = (terms + blocks - 1) / blocks;
    if (blocks > 1 && block > kStepOfTerms) block = (block + kStepOfTerms - 1) / kStepOfTerms * kStepOfTerms;
    bool exact = true;
    for (std::int64_t first = 0; first < terms && exact; first += block)
      exact = left * sum(first, std::min(block, terms - first)) < kExactSums;
    if (exact) return block;
    if (block == 1) return std::nullopt;
  }
}

// Of |w[outer, term, inner] - zero| over the terms, for w as [outer, terms, inner]. `zero_of` gives what is subtracted of an
// element at (outer, inner).
LargestSum sums_of(const HostTensor& w, std::int64_t terms, std::int64_t inner,
                   std::function<std::int64_t(std::int64_t, std::int64_t)> zero_of) {
  const std::int64_t outer = terms * inner == 0 ? 0 : w.elements() / (terms * inner);
  return [w, terms, inner, outer, zero_of = std::move(zero_of)](std::int64_t first, std::int64_t count) {
    std::int64_t largest = 0;
    std::vector<std::int64_t> sums(static_cast<std::size_t>(inner));
    for (std::int64_t o = 0; o < outer; ++o) {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t t = first; t < first + count; ++t) {
        for (std::int64_t i = 0; i < inner; ++i)
          sums[static_cast<std::size_t>(i)] += std::abs(w.int_at((o * terms + t) * inner + i) - zero_of(o, i));
      }
      for (const std::int64_t sum : sums) largest = std::max(largest, sum);
    }
    return largest;
  };
}

// The same of any numbers of that type.
LargestSum sums_of_any(std::int64_t largest) {
  return [largest](std::int64_t, std::int64_t count) { return largest * count; };
}

Value* as_integers(Value* product) {
  product->producer->attributes["integers"] = std::int64_t{1};
  return product;
}

Value* difference(OpContext& c, Value* x, Value* zero, DType dtype) {
  Value* wide = c.b.cast(x, dtype);
  return zero ? c.b.sub(wide, c.b.cast(zero, dtype)) : wide;
}

void require_bytes(OpContext& c, const Value* x, const Value* zero) {
  if (x->type.dtype != DType::i8 && x->type.dtype != DType::u8)
    c.unsupported("integers of 8 bits", std::string(name_of(x->type.dtype)));
  require_zero_of(c, zero, x->type.dtype);
}

std::int64_t zero_at(const std::optional<HostTensor>& zero, std::int64_t i) {
  return !zero ? 0 : zero->int_at(zero->elements() == 1 ? 0 : i);
}

// Zero points that are known, or none: what sums of a constant can be told with.
bool is_told(const Value* zero, const std::optional<HostTensor>& known) { return !zero || known; }

LargestSum sums_of_columns(OpContext& c, const Value* b, const Value* zero) {
  const HostTensor* constant = constant_of(b);
  const auto known = zero ? c.known_value(zero) : std::nullopt;
  const Shape& shape = b->type.shape;
  if (!constant || !is_told(zero, known) || (known && zero->type.rank() > 1))
    return sums_of_any(largest_difference(c, b, zero));
  return sums_of(*constant, shape[shape.size() - 2].value(), shape.back().value(),
                 [known](std::int64_t, std::int64_t column) { return zero_at(known, column); });
}

// A zero point a feature of the weights [features, channels, taps..].
LargestSum sums_of_channels(OpContext& c, const Value* w, const Value* zero) {
  const HostTensor* constant = constant_of(w);
  const auto known = zero ? c.known_value(zero) : std::nullopt;
  const Expr taps = product(std::span<const Expr>(w->type.shape).subspan(2));
  const std::int64_t any = largest_difference(c, w, zero) * taps.value();
  if (!constant || !is_told(zero, known)) return sums_of_any(any);
  // Of a feature all taps are summed: their sums add up.
  const LargestSum of_taps = sums_of(*constant, w->type.shape[1].value() * taps.value(), 1,
                                     [known](std::int64_t feature, std::int64_t) { return zero_at(known, feature); });
  return [of_taps, count = taps.value()](std::int64_t first, std::int64_t channels) {
    return of_taps(first * count, channels * count);
  };
}

// Channels `first` .. `first + count` - 1 of each group.
Value* channels_of_groups(OpContext& c, Value* x, std::int64_t group, std::int64_t first, std::int64_t count) {
  const Shape shape = x->type.shape;
  if (group == 1) return c.b.slice_axis(x, 1, Expr(first), Expr(count));
  Shape apart = shape, joined = shape;
  apart[1] = floor_div(shape[1], Expr(group));
  apart.insert(apart.begin() + 1, Expr(group));
  joined[1] = Expr(group * count);
  return c.b.reshape(c.b.slice_axis(c.b.reshape(x, apart), 2, Expr(first), Expr(count)), joined);
}

}  // namespace

void require_zero_of(OpContext& c, const Value* zero, DType dtype) {
  if (zero && zero->type.dtype != dtype)
    c.fail(fmt::format("a zero point of type {}, as its numbers are", name_of(dtype)), zero->type.text());
}

Value* of_rows(OpContext& c, Value* v, bool rows) {
  if (!v) return nullptr;
  if (v->type.elements() == Expr(1) && v->type.rank() <= 1) return c.b.reshape(v, {});
  return rows && v->type.rank() == 1 ? c.b.reshape(v, {v->type.shape[0], Expr(1)}) : v;
}

Value* per_feature(OpContext& c, Value* v, std::size_t axis, std::size_t rank) {
  if (v->type.elements() == Expr(1)) return c.b.reshape(v, {});
  if (v->type.rank() != 1) c.fail("one number, or one of each feature", v->type.text());
  Shape shape{v->type.shape[0]};
  shape.resize(rank - axis, Expr(1));
  return c.b.reshape(v, std::move(shape));
}

Value* integer_product(OpContext& c, Value* a, Value* b, Value* zero_a, Value* zero_b) {
  if (a->type.rank() < 2 || b->type.rank() < 2) c.unsupported("operands of rank 2 or more", a->type.text());
  require_bytes(c, a, zero_a);
  require_bytes(c, b, zero_b);
  zero_a = of_rows(c, zero_a, true);
  zero_b = of_rows(c, zero_b, false);
  const Expr inner = a->type.shape.back();
  const bool open = !inner.is_constant() || inner == Expr(0) || !(b->type.shape[b->type.rank() - 2] == inner) ||
                    !b->type.shape.back().is_constant();
  const auto block =
      open ? std::nullopt : terms_of_block(inner.value(), largest_difference(c, a, zero_a), sums_of_columns(c, b, zero_b));
  if (!block) return c.b.matmul(difference(c, a, zero_a, DType::i32), difference(c, b, zero_b, DType::i32));
  Value *left = difference(c, a, zero_a, DType::f32), *right = difference(c, b, zero_b, DType::f32), *sum = nullptr;
  const auto terms_of_a = static_cast<std::int64_t>(left->type.rank()) - 1,
             terms_of_b = static_cast<std::int64_t>(right->type.rank()) - 2;
  for (std::int64_t first = 0; first < inner.value(); first += *block) {
    const std::int64_t count = std::min(*block, inner.value() - first);
    const auto part = [&](Value* x, std::int64_t axis) {
      return count == inner.value() ? x : c.b.slice_axis(x, axis, Expr(first), Expr(count));
    };
    Value* product = c.b.cast(as_integers(c.b.matmul(part(left, terms_of_a), part(right, terms_of_b))), DType::i32);
    sum = sum ? c.b.add(sum, product) : product;
  }
  return sum;
}

Value* integer_convolution(OpContext& c, Value* x, Value* w, Value* zero_x, Value* zero_w) {
  const std::size_t rank = spatial_axes(c) + 2;
  const Window window = window_of_weights(c, w);
  const std::int64_t group = c.integer("group", 1);
  require_bytes(c, x, zero_x);
  require_bytes(c, w, zero_w);
  const Shape &sx = x->type.shape, &sw = w->type.shape;
  const Expr features = floor_div(sw[0], Expr(std::max<std::int64_t>(1, group)));
  if (group < 1 || !(sw[1] * Expr(group) == sx[1]) || !(features * Expr(group) == sw[0]))
    c.fail("channels and features that the groups divide", fmt::format("{} and {}, group {}", text_of(sx), text_of(sw), group));
  zero_x = zero_x ? c.b.reshape(zero_x, {}) : nullptr;
  Value* zeros = zero_w ? per_feature(c, zero_w, 0, rank) : nullptr;
  const std::int64_t channels = sw[1].constant().value_or(0);
  const auto block =
      channels < 1 ? std::nullopt : terms_of_block(channels, largest_difference(c, x, zero_x), sums_of_channels(c, w, zero_w));
  const DType dtype = block ? DType::f32 : DType::f64;
  Value *image = difference(c, x, zero_x, dtype), *weights = difference(c, w, zeros, dtype), *sum = nullptr;
  const ConvOptions options{window.strides, window.dilations, window.pads, group};
  // The taps of a single channel are more terms than an exact sum may have.
  if (!block) return c.b.cast(c.b.conv(image, weights, nullptr, options), DType::i32);
  for (std::int64_t first = 0; first < channels; first += *block) {
    const std::int64_t count = std::min(*block, channels - first);
    const bool all = count == channels;
    Value* y = c.b.conv(all ? image : channels_of_groups(c, image, group, first, count),
                        all ? weights : c.b.slice_axis(weights, 1, Expr(first), Expr(count)), nullptr, options);
    y = c.b.cast(as_integers(y), DType::i32);
    sum = sum ? c.b.add(sum, y) : y;
  }
  return sum;
}

}  // namespace oclc::onnx
