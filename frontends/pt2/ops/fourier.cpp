// Fourier transforms, by ONNX's reader of DFT.
#include <cmath>

#include "frontends/pt2/complex.h"
#include "frontends/pt2/onnx_call.h"

namespace oclc::pt2 {
namespace {

Expr size_along(const Value* x, std::int64_t axis) { return x->type.shape[static_cast<std::size_t>(axis)]; }

// Along one axis, of tensors [.., 1 or 2]. Backwards the result is divided by its length.
Value* transform(AtenContext& c, Value* x, std::int64_t axis, bool backwards, bool half, const Expr& length) {
  return onnx_call(c, "DFT", {x, c.b.exprs({length}, {}), c.b.ints({axis})},
                   {{"inverse", std::int64_t{backwards}}, {"onesided", std::int64_t{half}}})[0];
}

// The normalization of a transform of n = count elements: torch's modes none, by 1/sqrt(n) and by 1/n.
double factor(AtenContext& c, double count) {
  switch (c.integer("normalization")) {
    case 0:
      return 1;
    case 1:
      return 1 / std::sqrt(count);
    case 2:
      return 1 / count;
    default:
      c.refuse("a normalization 0, 1 or 2", std::to_string(c.integer("normalization")));
  }
}

struct Axes {
  Ints list;
  double count = 1;  // elements along all of them
};

// `last`: the size of the last axis where it is not the operand's.
Axes axes_of(AtenContext& c, const Value* x, std::optional<std::int64_t> last = std::nullopt) {
  Axes axes;
  for (const std::int64_t given : c.integers("dim")) axes.list.push_back(c.axis(given, x->type.rank()));
  if (axes.list.empty()) c.refuse("dimensions to transform along", "none");
  for (std::size_t i = 0; i < axes.list.size(); ++i) {
    const Expr size = last && i + 1 == axes.list.size() ? Expr(*last) : size_along(x, axes.list[i]);
    if (!size.is_constant()) c.refuse("lengths of transforms that are known when compiling", size.text());
    axes.count *= static_cast<double>(size.value());
  }
  return axes;
}

Value* scaled(AtenContext& c, Value* x, double by) { return by == 1 ? x : c.b.mul(x, by); }

ComplexOutputs of_complex(ComplexContext& z) {
  AtenContext& c = z.arguments();
  const Complex operand = z.operand("self");
  const Axes axes = axes_of(c, operand.re);
  const bool backwards = !c.flag("forward");
  Value* x = pairs_of(z.b, operand);
  for (const std::int64_t axis : axes.list) x = transform(c, x, axis, backwards, false, size_along(x, axis));
  return {parts_of(z.b, scaled(c, x, factor(c, axes.count) * (backwards ? axes.count : 1)))};
}

ComplexOutputs of_real(ComplexContext& z) {
  AtenContext& c = z.arguments();
  Value* real = z.real_operand("self");
  const Axes axes = axes_of(c, real);
  Shape column = real->type.shape;
  column.emplace_back(1);
  const std::int64_t last = axes.list.back();
  Value* x = transform(c, z.b.reshape(real, column), last, false, c.flag("onesided"), size_along(real, last));
  for (std::size_t i = 0; i + 1 < axes.list.size(); ++i)
    x = transform(c, x, axes.list[i], false, false, size_along(x, axes.list[i]));
  return {parts_of(z.b, scaled(c, x, factor(c, axes.count)))};
}

// Of the first half of what a real tensor's transform is, back to the real tensor.
ComplexOutputs to_real(ComplexContext& z) {
  AtenContext& c = z.arguments();
  const Complex operand = z.operand("self");
  const std::int64_t length = c.integer("last_dim_size");
  const Axes axes = axes_of(c, operand.re, length);
  Value* x = pairs_of(z.b, operand);
  for (std::size_t i = 0; i + 1 < axes.list.size(); ++i)
    x = transform(c, x, axes.list[i], true, false, size_along(x, axes.list[i]));
  x = transform(c, x, axes.list.back(), true, true, Expr(length));
  Shape shape = x->type.shape;
  shape.pop_back();
  return {{z.b.reshape(scaled(c, x, factor(c, axes.count) * axes.count), shape)}};
}

constexpr ComplexRow kFourierRows[] = {
    {"aten._fft_c2c.default", of_complex},
    {"aten._fft_r2c.default", of_real},
    {"aten._fft_c2r.default", to_real},
};

}  // namespace

std::span<const ComplexRow> fourier_rows() { return kFourierRows; }

}  // namespace oclc::pt2
