// Operators on the bits of floating-point numbers.
#include <cmath>

#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// How a type lays out its numbers: sign, exponent, fraction.
struct Layout {
  DType bits;  // the integers of its width
  int fraction, bias;
};

Layout layout_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {DType::i64, 52, 1023};
    case DType::f32:
      return {DType::i32, 23, 127};
    case DType::f16:
      return {DType::i16, 10, 15};
    default:
      return {DType::i16, 7, 127};
  }
}

Value* as_bits(AtenContext& c, Value* x) { return c.b.call("bitcast", {x}, {{"dtype", layout_of(x->type.dtype).bits}}); }

Value* whole_number(AtenContext& c, DType dtype, std::int64_t value) {
  HostTensor number(dtype, {});
  number.set_int(0, value);
  return c.b.constant(std::move(number));
}

// x = mantissa * 2^exponent with 0.5 <= |mantissa| < 1; of 0, infinities and NaN the number itself and 0.
Outputs frexp(AtenContext& c) {
  const DType dtype = c.tensor("self")->type.dtype;
  // Numbers of 16 bits are exact in 32.
  Value* x = c.b.cast(c.tensor("self"), dtype == DType::f64 ? DType::f64 : DType::f32);
  const Layout layout = layout_of(x->type.dtype);
  const double scale = std::ldexp(1.0, layout.fraction + 1);
  Value* tiny = c.b.call("less", {c.b.unary("abs", x), c.b.scalar(x->type.dtype, std::ldexp(1.0, 1 - layout.bias))});
  Value* normal = c.b.where(tiny, c.b.mul(x, scale), x);  // without leading zeros in its fraction
  Value* bits = as_bits(c, normal);
  const auto number = [&](std::int64_t value) { return whole_number(c, layout.bits, value); };
  const std::int64_t ones = 2 * layout.bias + 1;
  Value* field = c.b.call("bit_and", {c.b.call("shift_right", {bits, number(layout.fraction)}), number(ones)});
  Value* exponent = c.b.sub(field, number(layout.bias - 1));
  exponent = c.b.where(tiny, c.b.sub(exponent, number(layout.fraction + 1)), exponent);
  Value* kept = c.b.call("bit_and", {bits, c.b.unary("bit_not", number(ones << layout.fraction))});
  Value* mantissa = c.b.call("bit_or", {kept, number(std::int64_t{layout.bias - 1} << layout.fraction)});
  mantissa = c.b.call("bitcast", {mantissa}, {{"dtype", x->type.dtype}});
  Value* odd = c.b.call("or", {c.b.call("equal", {field, number(ones)}), c.b.call("equal", {x, c.b.scalar(x->type.dtype, 0)})});
  return {c.b.cast(c.b.where(odd, x, mantissa), dtype), c.b.cast(c.b.where(odd, number(0), exponent), DType::i32)};
}

// The next number of the type on the way to the other operand: magnitudes are in the order of their bits.
Outputs next_number(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value *x = c.operand("self", dtype), *to = c.operand("other", dtype);
  const Layout layout = layout_of(dtype);
  Value *bits = as_bits(c, x), *zero = c.b.scalar(dtype, 0);
  const auto number = [&](std::int64_t value) { return whole_number(c, layout.bits, value); };
  const auto from_bits = [&](Value* value) { return c.b.call("bitcast", {value}, {{"dtype", dtype}}); };
  Value *up = c.b.call("less", {x, to}), *positive = c.b.call("greater", {x, zero});
  Value* step = c.b.where(c.b.call("equal", {up, positive}), number(1), number(-1));
  Value* next = from_bits(c.b.add(bits, step));
  Value* smallest = from_bits(number(1));
  next = c.b.where(c.b.call("equal", {x, zero}), c.b.where(up, smallest, c.b.unary("neg", smallest)), next);
  next = c.b.where(c.b.call("equal", {x, to}), to, next);
  next = c.b.where(c.b.unary("is_nan", x), x, next);
  return {c.b.where(c.b.unary("is_nan", to), to, next)};
}

constexpr OpRow kBitRows[] = {
    {"prims.frexp.default", frexp},
    {"prims.nextafter.default", next_number},
};

}  // namespace

std::span<const OpRow> bit_rows() { return kBitRows; }

}  // namespace oclc::pt2
