// Convolutions and their gradients.
#include "frontends/pt2/gradient.h"
#include "frontends/pt2/table.h"
#include "frontends/pt2/windows.h"

namespace oclc::pt2 {
namespace {

struct Convolution {
  Ints strides, pads, dilations, output_pads;  // one a spatial axis
  bool transposed = false;
  std::int64_t groups = 1;
};

Ints both_sides(const Ints& pads) {
  Ints list = pads;
  list.insert(list.end(), pads.begin(), pads.end());
  return list;
}

// x[N, C, ..] with weight[C, O / groups, ..]; the output's padding adds positions behind.
Value* transposed(AtenContext& c, Value* x, Value* weight, const Convolution& v) {
  std::vector<Expr> sizes;
  for (std::size_t i = 0; i < v.strides.size(); ++i) {
    const Expr& kernel = weight->type.shape[i + 2];
    sizes.push_back((x->type.shape[i + 2] - 1) * Expr(v.strides[i]) + (kernel - 1) * Expr(v.dilations[i]) + 1 +
                    Expr(v.output_pads[i] - 2 * v.pads[i]));
  }
  return c.b.call("conv_transpose", {x, weight},
                  {{"strides", v.strides},
                   {"dilations", v.dilations},
                   {"pads", both_sides(v.pads)},
                   {"group", v.groups},
                   {"output_shape", sizes}});
}

Value* bias_column(AtenContext& c, Value* bias, std::size_t rank) {
  Shape column{bias->type.shape[0]};
  column.resize(rank - 1, Expr(1));
  return c.b.reshape(bias, std::move(column));
}

Value* convolved_integers(AtenContext& c, Value* x, Value* weight, const Convolution& v) {
  Windows w{{}, v.strides, v.dilations, v.pads, v.pads};
  for (std::size_t i = 2; i < weight->type.rank(); ++i) {
    const Expr& taps = weight->type.shape[i];
    if (!taps.is_constant()) c.refuse("weights of known size", weight->type.text());
    w.kernel.push_back(taps.value());
  }
  if (!v.transposed) return convolved_by_windows(c, x, weight, w, v.groups);
  for (std::size_t i = 0; i < w.after.size(); ++i) w.after[i] -= v.output_pads[i];
  return convolved_back_by_windows(c, x, weight, w, v.groups);
}

Value* convolved(AtenContext& c, Value* x, Value* weight, Value* bias, const Convolution& v) {
  if (!is_float(x->type.dtype)) {
    Value* y = convolved_integers(c, x, weight, v);
    return bias ? c.b.add(y, bias_column(c, bias, y->type.rank())) : y;
  }
  if (!v.transposed) return c.b.conv(x, weight, bias, {v.strides, v.dilations, both_sides(v.pads), v.groups});
  Value* y = transposed(c, x, weight, v);
  return bias ? c.b.add(y, bias_column(c, bias, y->type.rank())) : y;
}

// An input without the batch is one of a batch of 1.
Outputs with_batch(AtenContext& c, Value* x, Value* weight, Value* bias, const Convolution& v) {
  const bool alone = x->type.rank() + 1 == weight->type.rank();
  if (alone) {
    Shape shape = x->type.shape;
    shape.insert(shape.begin(), Expr(1));
    x = c.b.reshape(x, shape);
  }
  Value* y = convolved(c, x, weight, bias, v);
  return {alone ? c.b.reshape(y, Shape(y->type.shape.begin() + 1, y->type.shape.end())) : y};
}

Outputs plain(AtenContext& c) {
  Value* weight = c.tensor("weight");
  const std::size_t axes = weight->type.rank() - 2;
  Convolution v{c.repeated("stride", axes, 1), {}, c.repeated("dilation", axes, 1), Ints(axes, 0), false,
                c.integer("groups", 1)};
  v.transposed = c.core() == "transposed";
  v.output_pads = v.transposed ? c.repeated("output_padding", axes, 0) : Ints(axes, 0);
  v.pads = c.repeated("padding", axes, 0);
  return with_batch(c, c.tensor("input"), weight, c.optional_tensor("bias"), v);
}

// padding="same" or "valid". An odd total puts the extra place behind.
Outputs named_padding(AtenContext& c) {
  Value *x = c.tensor("input"), *weight = c.tensor("weight");
  const std::size_t axes = weight->type.rank() - 2;
  const Ints strides = c.repeated("stride", axes, 1), dilations = c.repeated("dilation", axes, 1);
  Ints pads(2 * axes, 0);
  for (std::size_t i = 0; i < axes && c.text("padding") == "same"; ++i) {
    const Expr& kernel = weight->type.shape[i + 2];
    if (!kernel.is_constant()) c.refuse("weights of known size", weight->type.text());
    const std::int64_t total = dilations[i] * (kernel.value() - 1);
    pads[i] = total / 2;
    pads[i + axes] = total - total / 2;
  }
  return {c.b.conv(x, weight, c.optional_tensor("bias"), {strides, dilations, pads, c.integer("groups", 1)})};
}

Convolution general_form(AtenContext& c, const Value* weight) {
  const std::size_t axes = weight->type.rank() - 2;
  return {c.repeated("stride", axes, 1),         c.repeated("padding", axes, 0), c.repeated("dilation", axes, 1),
          c.repeated("output_padding", axes, 0), c.flag("transposed"),           c.integer("groups", 1)};
}

Outputs general(AtenContext& c) {
  Value* weight = c.tensor("weight");
  return with_batch(c, c.tensor("input"), weight, c.optional_tensor("bias"), general_form(c, weight));
}

Outputs backward(AtenContext& c) {
  Value *g = c.tensor("grad_output"), *x = c.tensor("input"), *weight = c.tensor("weight");
  const Convolution v = general_form(c, weight);
  Outputs out =
      gradients_of(c, {x, weight}, g, [&](const std::vector<Value*>& own) { return convolved(c, own[0], own[1], nullptr, v); });
  Ints axes{0};
  for (std::size_t i = 2; i < g->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  out.push_back(c.b.reduce("reduce_sum", g, axes, false));
  return out;
}

constexpr OpRow kConvolutionRows[] = {
    {"aten.conv1d.default", plain},
    {"aten.conv2d.default", plain},
    {"aten.conv3d.default", plain},
    {"aten.conv1d.padding", named_padding},
    {"aten.conv2d.padding", named_padding},
    {"aten.conv3d.padding", named_padding},
    {"aten.conv_transpose1d.default", plain, "transposed"},
    {"aten.conv_transpose2d.input", plain, "transposed"},
    {"aten.conv_transpose3d.input", plain, "transposed"},
    {"aten.convolution.default", general},
    {"aten.convolution_backward.default", backward},
};

}  // namespace

std::span<const OpRow> convolution_rows() { return kConvolutionRows; }

}  // namespace oclc::pt2
