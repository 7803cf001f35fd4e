// Operators of complex tensors.
#include "frontends/pt2/complex.h"

namespace oclc::pt2 {
namespace {

using Part = ComplexContext::Part;

// The same is done to both parts.
ComplexOutputs by_part(ComplexContext& c) {
  const Outputs re = c.read_part(Part::re), im = c.gives_complex() ? c.read_part(Part::im) : Outputs(re.size(), nullptr);
  ComplexOutputs out;
  for (std::size_t i = 0; i < re.size(); ++i) out.push_back({re[i], im[i]});
  return out;
}

// Numbers as they are, and no imaginary part: of what is made of a complex tensor's shape alone.
ComplexOutputs real_alone(ComplexContext& c) {
  Value* re = c.read_part(Part::re).at(0);
  return {{re, c.b.expand(c.b.scalar(re->type.dtype, 0), re->type.shape)}};
}

// Of two operands, each in its own right linear: the reader of real ones for each pair of parts.
ComplexOutputs bilinear(ComplexContext& c, std::string_view first, std::string_view second) {
  const auto read = [&](Part a, Part b) { return c.read_parts(first, a, second, b); };
  const bool left = c.has_im(first), right = c.has_im(second);
  Value* re = read(Part::re, Part::re);
  if (left && right) re = c.b.sub(re, read(Part::im, Part::im));
  Value* im = left ? read(Part::im, Part::re) : nullptr;
  if (right) {
    Value* more = read(Part::re, Part::im);
    im = im ? c.b.add(im, more) : more;
  }
  return {{re, im}};
}

ComplexOutputs matrix_product(ComplexContext& c) { return bilinear(c, "self", c.core()); }

Complex times(ComplexContext& c, const Complex& x, const Complex& y) {
  Builder& b = c.b;
  if (!y.im) return {b.mul(x.re, y.re), x.im ? b.mul(x.im, y.re) : nullptr};
  if (!x.im) return {b.mul(x.re, y.re), b.mul(x.re, y.im)};
  return {b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im)), b.add(b.mul(x.re, y.im), b.mul(x.im, y.re))};
}

ComplexOutputs product(ComplexContext& c) { return {times(c, c.operand("self"), c.operand("other"))}; }

// The larger of the parts' absolute values.
Value* largest_part(ComplexContext& c, const Complex& z) { return c.b.max(c.b.unary("abs", z.re), c.b.unary("abs", z.im)); }

// x * conj(y) / |y|^2, with y divided by its larger part before, so that no square leaves the range of numbers.
Complex over(ComplexContext& c, const Complex& x, const Complex& y) {
  Builder& b = c.b;
  if (!y.im) return {b.div(x.re, y.re), x.im ? b.div(x.im, y.re) : nullptr};
  Value* size = largest_part(c, y);
  const Complex unit{b.div(y.re, size), b.div(y.im, size)};
  Value* square = b.mul(b.add(b.mul(unit.re, unit.re), b.mul(unit.im, unit.im)), size);
  const Complex z = times(c, x, {unit.re, b.unary("neg", unit.im)});
  return {b.div(z.re, square), b.div(z.im, square)};
}

ComplexOutputs quotient(ComplexContext& c) { return {over(c, c.operand("self"), c.operand("other"))}; }

ComplexOutputs reciprocal(ComplexContext& c) {
  const Complex z = c.operand("self");
  return {over(c, {c.b.scalar(z.re->type.dtype, 1)}, z)};
}

Value* absolute_of(ComplexContext& c, const Complex& z) {
  Builder& b = c.b;
  Value* size = largest_part(c, z);
  Value* zero = b.scalar(size->type.dtype, 0);
  Value *re = b.div(z.re, size), *im = b.div(z.im, size);
  Value* y = b.mul(size, b.sqrt(b.add(b.mul(re, re), b.mul(im, im))));
  return b.where(b.call("equal", {size, zero}), zero, y);
}

ComplexOutputs absolute(ComplexContext& c) { return {{absolute_of(c, c.operand("self"))}}; }

Value* angle_of(ComplexContext& c, const Complex& z) { return c.call("aten.atan2.default", {{"self", z.im}, {"other", z.re}}); }

ComplexOutputs angle(ComplexContext& c) { return {{angle_of(c, c.operand("self"))}}; }

Complex from_polar(ComplexContext& c, Value* length, Value* angle) {
  return {c.b.mul(length, c.b.unary("cos", angle)), c.b.mul(length, c.b.unary("sin", angle))};
}

ComplexOutputs polar(ComplexContext& c) { return {from_polar(c, c.real_operand("abs"), c.real_operand("angle"))}; }

ComplexOutputs exponential(ComplexContext& c) {
  const Complex z = c.operand("self");
  return {from_polar(c, c.b.exp(z.re), z.im)};
}

ComplexOutputs logarithm(ComplexContext& c) {
  const Complex z = c.operand("self");
  return {{c.b.unary("log", absolute_of(c, z)), angle_of(c, z)}};
}

ComplexOutputs of_two(ComplexContext& c) {
  const Shape& shape = c.arguments().result().shape;
  return {{c.b.expand(c.real_operand("real"), shape), c.b.expand(c.real_operand("imag"), shape)}};
}

ComplexOutputs conjugate(ComplexContext& c) {
  const Complex z = c.operand("self");
  return {{z.re, c.b.unary("neg", z.im)}};
}

ComplexOutputs to_pairs(ComplexContext& c) { return {{pairs_of(c.b, c.operand("self"))}}; }

ComplexOutputs from_pairs(ComplexContext& c) { return {parts_of(c.b, c.real_operand("self"))}; }

ComplexOutputs real_part(ComplexContext& c) { return {{c.operand("self").re}}; }

ComplexOutputs imaginary_part(ComplexContext& c) { return {{c.operand("self").im}}; }

// To another element type. Of a complex number the real part is left where that is no complex one.
ComplexOutputs convert(ComplexContext& c) {
  const Complex z = c.operand(c.arguments().has("self") ? "self" : "a");
  if (!c.gives_complex()) return {{z.re}};
  return {{z.re, z.im ? z.im : c.b.expand(c.b.scalar(z.re->type.dtype, 0), z.re->type.shape)}};
}

ComplexOutputs equal(ComplexContext& c) {
  const auto same = [&](Part part) { return c.read_part(part).at(0); };
  return {{c.b.call("and", {same(Part::re), same(Part::im)})}};
}

constexpr ComplexRow kComplexRows[] = {
    {"aten.complex.default", of_two},
    {"aten.polar.default", polar},
    {"aten.view_as_complex.default", from_pairs},
    {"aten.view_as_real.default", to_pairs},
    {"aten._conj.default", conjugate},
    {"aten._conj_physical.default", conjugate},
    {"prims.real.default", real_part},
    {"prims.imag.default", imaginary_part},
    {"prims.conj.default", conjugate},
    {"prims.conj_physical.default", conjugate},
    {"aten._to_copy.default", convert},
    {"aten.to.dtype", convert},
    {"prims.convert_element_type.default", convert},
    {"aten.abs.default", absolute},
    {"prims.abs.default", absolute},
    {"aten.angle.default", angle},
    {"aten.exp.default", exponential},
    {"aten.log.default", logarithm},
    {"aten.reciprocal.default", reciprocal},
    {"aten.mul.Tensor", product},
    {"aten.mul.Scalar", product},
    {"prims.mul.default", product},
    {"aten.div.Tensor", quotient},
    {"aten.div.Scalar", quotient},
    {"prims.div.default", quotient},
    {"aten.mm.default", matrix_product, "mat2"},
    {"aten.bmm.default", matrix_product, "mat2"},
    {"aten.mv.default", matrix_product, "vec"},
    {"aten.dot.default", matrix_product, "tensor"},
    {"aten.eq.Tensor", equal},
    {"aten.add.Tensor", by_part},
    {"aten.add.Scalar", by_part},
    {"prims.add.default", by_part},
    {"aten.sub.Tensor", by_part},
    {"aten.sub.Scalar", by_part},
    {"prims.sub.default", by_part},
    {"aten.rsub.Scalar", by_part},
    {"aten.rsub.Tensor", by_part},
    {"aten.neg.default", by_part},
    {"aten._neg_view.default", by_part},
    {"prims.neg.default", by_part},
    {"aten.sum.default", by_part},
    {"aten.sum.dim_IntList", by_part},
    {"aten.mean.default", by_part},
    {"aten.mean.dim", by_part},
    {"aten.cumsum.default", by_part},
    {"aten.where.self", by_part},
    {"prims.where.default", by_part},
    {"aten.masked_fill.Scalar", by_part},
    {"aten.constant_pad_nd.default", by_part},
    {"aten.alias.default", by_part},
    {"aten.detach.default", by_part},
    {"aten.clone.default", by_part},
    {"aten.contiguous.default", by_part},
    {"aten.lift_fresh_copy.default", by_part},
    {"aten.copy.default", by_part},
    {"aten.view.default", by_part},
    {"aten._unsafe_view.default", by_part},
    {"aten._reshape_copy.default", by_part},
    {"aten.squeeze.default", by_part},
    {"aten.squeeze.dim", by_part},
    {"aten.squeeze.dims", by_part},
    {"aten.unsqueeze.default", by_part},
    {"aten.expand.default", by_part},
    {"aten.permute.default", by_part},
    {"aten.transpose.int", by_part},
    {"aten.t.default", by_part},
    {"aten.select.int", by_part},
    {"aten.slice.Tensor", by_part},
    {"aten.split.Tensor", by_part},
    {"aten.split_with_sizes.default", by_part},
    {"aten.unbind.int", by_part},
    {"aten.diagonal.default", by_part},
    {"aten.unfold.default", by_part},
    {"aten.cat.default", by_part},
    {"aten.stack.default", by_part},
    {"aten.flip.default", by_part},
    {"aten.roll.default", by_part},
    {"aten.fft_fftshift.default", by_part},
    {"aten.fft_ifftshift.default", by_part},
    {"aten.movedim.int", by_part},
    {"aten.movedim.intlist", by_part},
    {"aten.mT.default", by_part},
    {"aten.narrow.default", by_part},
    {"aten.pad.default", by_part},
    {"aten.reshape.default", by_part},
    {"aten.flatten.using_ints", by_part},
    {"aten.swapaxes.default", by_part},
    {"aten.repeat.default", by_part},
    {"aten.gather.default", by_part},
    {"aten.index.Tensor", by_part},
    {"aten.index_select.default", by_part},
    {"aten.slice_scatter.default", by_part},
    {"aten.select_scatter.default", by_part},
    {"aten.full.default", by_part},
    {"aten.full_like.default", by_part},
    {"aten.zeros.default", by_part},
    {"aten.zeros_like.default", by_part},
    {"aten.new_zeros.default", by_part},
    {"aten.empty.memory_format", by_part},
    {"aten.empty_like.default", by_part},
    {"aten.new_empty.default", by_part},
    {"aten.ones.default", real_alone},
    {"aten.ones_like.default", real_alone},
};

}  // namespace

std::span<const ComplexRow> complex_rows() { return kComplexRows; }

}  // namespace oclc::pt2
