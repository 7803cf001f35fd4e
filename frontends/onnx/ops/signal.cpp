// Fourier transforms, windows and filter banks. Transforms are products with a matrix of cosines and sines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/support/integer_of.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kLongestTransform = 1 << 13;

Expr one_of(OpContext& c, std::size_t i, std::string_view what) {
  const std::vector<Expr> values = c.content(i, what);
  if (values.size() != 1) c.fail(fmt::format("one number as {}", what), std::to_string(values.size()));
  return values[0];
}

// The matrix [rows, columns] of f(2 pi row * column / period).
template <class F>
Value* waves(OpContext& c, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t period, F&& f) {
  HostTensor m(dtype, {rows, columns});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const auto turns = static_cast<double>(i * k % period) / static_cast<double>(period);
      m.set(i * columns + k, f(i, 2 * std::numbers::pi * turns));
    }
  }
  return c.b.constant(std::move(m));
}

void check_length(OpContext& c, std::int64_t length) {
  if (length < 1 || length > kLongestTransform)
    c.unsupported(fmt::format("a length from 1 to {}", kLongestTransform), std::to_string(length));
}

// Real or imaginary parts of x[.., length, 1 or 2], as rows [.., 1, length].
Value* rows_of_part(OpContext& c, Value* x, std::int64_t part) {
  const Shape& shape = x->type.shape;
  Shape row(shape.begin(), shape.end() - 2);
  row.insert(row.end(), {Expr(1), shape[shape.size() - 2]});
  return c.b.reshape(c.b.slice_axis(x, static_cast<std::int64_t>(shape.size()) - 1, Expr(part), Expr(1)), std::move(row));
}

Shape with_last(const Shape& shape, std::int64_t length, std::int64_t parts) {
  Shape result(shape.begin(), shape.end() - 2);
  result.insert(result.end(), {Expr(length), Expr(parts)});
  return result;
}

// The real signal y[.., length, 1] whose transform begins with x[.., length / 2 + 1, 2]; the other half of it is conjugate.
Value* inverse_of_half(OpContext& c, Value* x, std::int64_t length) {
  if (!(x->type.shape.back() == Expr(2))) c.fail("2 numbers along the last axis", x->type.text());
  check_length(c, length);
  const std::int64_t bins = length / 2 + 1;
  const auto weight = [&](std::int64_t bin) {
    const bool once = bin == 0 || 2 * bin == length;
    return (once ? 1.0 : 2.0) / static_cast<double>(length);
  };
  const DType dtype = x->type.dtype;
  Value* cosines = waves(c, dtype, bins, length, length, [&](std::int64_t k, double a) { return weight(k) * std::cos(a); });
  Value* sines = waves(c, dtype, bins, length, length, [&](std::int64_t k, double a) { return weight(k) * std::sin(a); });
  Value* y = c.b.sub(c.b.matmul(rows_of_part(c, x, 0), cosines), c.b.matmul(rows_of_part(c, x, 1), sines));
  return c.b.reshape(y, with_last(x->type.shape, length, 1));
}

// The transform of x[.., length, 1 or 2] (real, or real and imaginary parts) along the last axis but one.
Value* transform(OpContext& c, Value* x, std::int64_t bins, bool inverse) {
  const Shape& shape = x->type.shape;
  const std::size_t rank = shape.size();
  const Expr& parts = shape.back();
  if (!(parts == Expr(1)) && !(parts == Expr(2))) c.fail("1 or 2 numbers along the last axis", x->type.text());
  if (!shape[rank - 2].is_constant()) c.unsupported("a length known when compiling", x->type.text());
  const std::int64_t length = shape[rank - 2].value();
  check_length(c, length);
  const double factor = inverse ? 1 / static_cast<double>(length) : 1, sign = inverse ? factor : -factor;
  const DType dtype = x->type.dtype;
  Value* cosines = waves(c, dtype, length, bins, length, [&](std::int64_t, double a) { return factor * std::cos(a); });
  Value* sines = waves(c, dtype, length, bins, length, [&](std::int64_t, double a) { return sign * std::sin(a); });
  // (a + ib)(cos + i sin), sin with its sign
  Value *re = c.b.matmul(rows_of_part(c, x, 0), cosines), *im = c.b.matmul(rows_of_part(c, x, 0), sines);
  if (parts == Expr(2)) {
    Value* b = rows_of_part(c, x, 1);
    re = c.b.sub(re, c.b.matmul(b, sines));
    im = c.b.add(im, c.b.matmul(b, cosines));
  }
  const Shape column = with_last(shape, bins, 1);
  return c.b.concat({c.b.reshape(re, column), c.b.reshape(im, column)}, static_cast<std::int64_t>(rank) - 1);
}

Ints swapped(std::size_t rank, std::size_t a, std::size_t b) {
  Ints perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[a], perm[b]);
  return perm;
}

Outputs dft(OpContext& c, std::int64_t axis_value) {
  Value* x = c.input(0);
  const std::size_t rank = x->type.rank();
  if (rank < 2) c.fail("an input of rank 2 or more", x->type.text());
  const std::size_t axis = c.axis(axis_value, rank);
  if (axis + 1 >= rank) c.fail("an axis before the last", std::to_string(axis));
  const bool inverse = c.flag("inverse"), one_sided = c.flag("onesided"), half = inverse && one_sided;
  Expr length = x->type.shape[axis];
  if (half) length = Expr(2) * (length - 1);
  if (c.optional_input(1)) length = one_of(c, 1, "the length");
  if (!length.is_constant()) c.unsupported("a length known when compiling", length.text());
  // Of the operand as much as the transform reads, with zeros behind it.
  const Expr given = x->type.shape[axis], wanted = half ? Expr(length.value() / 2 + 1) : length;
  if (known_less(wanted, given)) x = c.b.slice_axis(x, static_cast<std::int64_t>(axis), Expr(0), wanted);
  if (known_less(given, wanted)) {
    std::vector<Expr> before(rank, Expr(0)), after = before;
    after[axis] = wanted - given;
    x = c.b.pad(x, before, after);
  }
  if (axis != rank - 2) x = c.b.transpose(x, swapped(rank, axis, rank - 2));
  Value* y = half ? inverse_of_half(c, x, length.value())
                  : transform(c, x, one_sided ? length.value() / 2 + 1 : length.value(), inverse);
  return {axis != rank - 2 ? c.b.transpose(y, swapped(rank, axis, rank - 2)) : y};
}

Outputs dft_attribute(OpContext& c) { return dft(c, c.integer("axis", 1)); }

Outputs dft_input(OpContext& c) {
  if (!c.optional_input(2)) return dft(c, -2);
  const Ints axis = c.numbers(2, "the axis");
  if (axis.size() != 1) c.fail("one axis", std::to_string(axis.size()));
  return dft(c, axis[0]);
}

Outputs stft(OpContext& c) {
  Value* x = c.input(0);
  if (x->type.rank() == 2) x = c.b.reshape(x, {x->type.shape[0], x->type.shape[1], Expr(1)});
  if (x->type.rank() != 3) c.fail("a signal of rank 3", x->type.text());
  const Expr step = one_of(c, 1, "the frame step");
  Value* window = c.optional_input(2);
  Expr length = window ? window->type.elements() : Expr(0);
  if (c.optional_input(3)) length = one_of(c, 3, "the frame length");
  const Expr& total = x->type.shape[1];
  if (!length.is_constant() || !step.is_constant() || !total.is_constant())
    c.unsupported("lengths known when compiling", x->type.text());
  if (step.value() < 1 || length.value() < 1 || length.value() > total.value())
    c.fail(fmt::format("a positive frame step, and a frame length from 1 to {}", total.text()),
           fmt::format("{} and {}", step.text(), length.text()));
  const std::int64_t frames = (total.value() - length.value()) / step.value() + 1;
  // Element i of frame f is f * step + i.
  Value* begin = c.b.iota({Expr(frames), Expr(1)}, 0, DType::i64, 0, step);
  Value* at = c.b.add(begin, c.b.iota({Expr(1), length}, 1, DType::i64));
  Value* cut = c.b.gather(x, at, 1);  // [batch, frames, length, parts]
  if (window) cut = c.b.mul(cut, c.b.reshape(window, {length, Expr(1)}));
  const std::int64_t bins = c.flag("onesided", true) ? length.value() / 2 + 1 : length.value();
  return {transform(c, cut, bins, false)};
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
Outputs cosine_window(OpContext& c, double a0, double a1, double a2) {
  const Expr size = one_of(c, 0, "the size");
  const DType dtype = c.dtype("output_datatype", DType::f32);
  const bool periodic = c.flag("periodic", true);
  const DType inner = dtype == DType::f64 ? DType::f64 : DType::f32;
  Value* i = c.b.cast(c.b.iota({size}, 0, DType::i64), inner);
  Value* n = c.b.cast(c.b.exprs({periodic ? size : size - 1}, {}), inner);
  Value* angle = c.b.div(c.b.mul(i, 2 * std::numbers::pi), n);
  Value* y = c.b.add(c.b.mul(c.b.unary("cos", angle), -a1), a0);
  if (a2 != 0) y = c.b.add(y, c.b.mul(c.b.unary("cos", c.b.mul(angle, 2)), a2));
  return {c.b.cast(y, dtype)};
}

Outputs hann(OpContext& c) { return cosine_window(c, 0.5, 0.5, 0); }
Outputs hamming(OpContext& c) { return cosine_window(c, 25.0 / 46, 1 - 25.0 / 46, 0); }
Outputs blackman(OpContext& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

// Triangles between neighbouring ones of `count` + 2 frequencies that are evenly apart on the mel scale, sampled at the bins
// of a transform: [length / 2 + 1, count].
Outputs mel_weights(OpContext& c) {
  const Expr count_expr = one_of(c, 0, "the number of bins"), length_expr = one_of(c, 1, "the transform's length"),
             rate_expr = one_of(c, 2, "the sample rate");
  const double low = c.number(3, "the lowest frequency"), high = c.number(4, "the highest frequency");
  if (!count_expr.is_constant() || !length_expr.is_constant() || !rate_expr.is_constant())
    c.unsupported("sizes known when compiling", count_expr.text());
  const DType dtype = c.dtype("output_datatype", DType::f32);
  const std::int64_t count = count_expr.value(), bins = length_expr.value() / 2 + 1, rate = rate_expr.value();
  if (count < 1 || bins < 1 || rate < 1)
    c.fail("positive sizes", fmt::format("{}, {} and {}", count, length_expr.text(), rate));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low), step = (mel(high) - mel(low)) / static_cast<double>(count + 2);
  Ints corner;
  for (std::int64_t i = 0; i < count + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (first + step * static_cast<double>(i)) / 2595) - 1);
    corner.push_back(
        integer_of(std::floor((static_cast<double>(length_expr.value()) + 1) * hertz / static_cast<double>(rate))));
  }
  const auto corners = [&](std::ptrdiff_t from) {
    Value* v = c.b.ints(Ints(corner.begin() + from, corner.begin() + from + static_cast<std::ptrdiff_t>(count)));
    return c.b.cast(v, DType::f32);
  };
  Value* bin = c.b.cast(c.b.iota({Expr(bins), Expr(1)}, 0, DType::i64), DType::f32);
  Value *left = corners(0), *centre = corners(1), *right = corners(2);
  const auto inside = [&](Value* a, Value* b, const char* second) {
    return c.b.call("and", {c.b.call("greater_equal", {bin, a}), c.b.call(second, {bin, b})});
  };
  Value* zero = c.b.scalar(DType::f32, 0);
  Value *rise = c.b.sub(centre, left), *fall = c.b.sub(right, centre);
  Value* up = c.b.where(c.b.call("equal", {rise, zero}), c.b.scalar(DType::f32, 1), c.b.div(c.b.sub(bin, left), rise));
  Value* down = c.b.div(c.b.sub(right, bin), fall);
  Value* y = c.b.where(inside(left, centre, "less_equal"), up, c.b.where(inside(centre, right, "less"), down, zero));
  return {c.b.cast(y, dtype)};
}

constexpr OpRow kSignalRows[] = {
    {"BlackmanWindow", 17, 1, 1, blackman},
    {"DFT", 17, 1, 2, dft_attribute},
    {"DFT", 20, 1, 3, dft_input},
    {"HammingWindow", 17, 1, 1, hamming},
    {"HannWindow", 17, 1, 1, hann},
    {"MelWeightMatrix", 17, 5, 5, mel_weights},
    {"STFT", 17, 2, 4, stft},
};

}  // namespace

std::span<const OpRow> signal_rows() { return kSignalRows; }

}  // namespace oclc::onnx
