// Resizing and sampling, distances, folds.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/axis_product.h"
#include "frontends/pt2/gradient.h"
#include "frontends/pt2/norms.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// Sizes as torch found them; scales, where they are given, place the samples.
Value* resized(AtenContext& c, Value* x, const Shape& result) {
  const std::size_t rank = x->type.rank();
  Ints sizes;
  for (const Expr& e : result) {
    if (!e.is_constant()) c.refuse("sizes known when compiling for a resize", text_of(result));
    sizes.push_back(e.value());
  }
  const bool nearest = c.core().starts_with("nearest"), cubic = c.core() == "cubic";
  const bool corners = !nearest && c.flag("align_corners");
  std::vector<double> scales = c.reals("scale_factors");
  if (scales.empty())
    for (const char* name : {"scales_d", "scales_h", "scales_w", "scales"})
      if (c.has(name)) scales.push_back(c.real(name));
  std::vector<OnnxAttribute> attributes = {
      {"mode", std::string(nearest ? "nearest"
                           : cubic ? "cubic"
                                   : "linear")},
      {"coordinate_transformation_mode", std::string(corners                 ? "align_corners"
                                                     : c.core() == "nearest" ? "asymmetric"
                                                     : nearest               ? "half_pixel"
                                                                             : "pytorch_half_pixel")},
  };
  if (nearest) attributes.push_back({"nearest_mode", std::string(c.core() == "nearest" ? "floor" : "round_prefer_ceil")});
  if (cubic) attributes.push_back({"cubic_coeff_a", -0.75});
  if (scales.size() == rank - 2 && !corners) {
    // ONNX rounds sizes down as torch does.
    std::vector<float> all(2, 1.0F);
    for (const double s : scales) all.push_back(static_cast<float>(s));
    const auto count = static_cast<std::int64_t>(all.size());
    Value* y = onnx_call(c, "Resize", {x, nullptr, c.b.floats(all, {count})}, attributes)[0];
    if (y->type.shape == result) return y;
  }
  return onnx_call(c, "Resize", {x, nullptr, nullptr, c.b.ints(sizes)}, attributes)[0];
}

Outputs resize(AtenContext& c) { return {resized(c, c.tensor(c.has("self") ? "self" : "input"), c.result().shape)}; }

// `input_size` is the shape of what was resized.
Outputs resize_backward(AtenContext& c) {
  Value* g = c.tensor("grad_output");
  Value* x = c.b.expand(c.b.scalar(g->type.dtype, 0), c.sizes("input_size"));
  return gradients_of(c, {x}, g, [&](const std::vector<Value*>& own) { return resized(c, own[0], g->type.shape); });
}

// The weights [out, in] of a resize whose filter grows with the factor by which it shrinks, of a triangle or of a cubic.
HostTensor antialiased_shares(DType dtype, std::int64_t in, std::int64_t out, double step, bool cubic) {
  const double width = std::max(step, 1.0), reach = (cubic ? 2 : 1) * width;
  HostTensor shares(dtype, {out, in});
  const auto weight = [&](double at) {
    const double x = std::fabs(at);
    constexpr double kSharpness = -0.5;
    if (!cubic) return std::max(1 - x, 0.0);
    if (x < 1) return ((kSharpness + 2) * x - (kSharpness + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * kSharpness : 0.0;
  };
  for (std::int64_t i = 0; i < out; ++i) {
    const double center = step * (static_cast<double>(i) + 0.5);
    const auto begin = std::max(static_cast<std::int64_t>(center - reach + 0.5), std::int64_t{0}),
               end = std::min(static_cast<std::int64_t>(center + reach + 0.5), in);
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += weight((static_cast<double>(k) - center + 0.5) / width);
    for (std::int64_t k = begin; k < end; ++k)
      shares.set(i * in + k, weight((static_cast<double>(k) - center + 0.5) / width) / sum);
  }
  return shares;
}

Value* resized_without_aliases(AtenContext& c, Value* x, const Shape& result) {
  for (std::size_t i = 2; i < result.size(); ++i) {
    const Expr &in = x->type.shape[i], &out = result[i];
    if (!in.is_constant() || !out.is_constant()) c.refuse("sizes known when compiling for a resize", text_of(result));
    const char* name = i == 2 ? "scales_h" : "scales_w";
    const auto from = static_cast<double>(in.value()), to = static_cast<double>(out.value());
    double step = c.has(name) ? 1 / c.real(name) : from / to;
    if (c.flag("align_corners")) step = to > 1 ? (from - 1) / (to - 1) : 0;
    if (in == out && step == 1) continue;
    x = onnx::axis_product(c.b, x, i, antialiased_shares(x->type.dtype, in.value(), out.value(), step, c.core() == "cubic"));
  }
  return x;
}

Outputs resize_without_aliases(AtenContext& c) { return {resized_without_aliases(c, c.tensor("self"), c.result().shape)}; }

Outputs resize_without_aliases_backward(AtenContext& c) {
  Value* g = c.tensor("grad_output");
  Value* x = c.b.expand(c.b.scalar(g->type.dtype, 0), c.sizes("input_size"));
  return gradients_of(c, {x}, g,
                      [&](const std::vector<Value*>& own) { return resized_without_aliases(c, own[0], g->type.shape); });
}

Value* sampled(AtenContext& c, Value* x, Value* grid) {
  const std::int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) c.refuse("a known mode of interpolation and padding");
  const char* modes[] = {"linear", "nearest", "cubic"};
  const char* paddings[] = {"zeros", "border", "reflection"};
  return onnx_call(c, "GridSample", {x, grid},
                   {{"mode", std::string(modes[mode])},
                    {"padding_mode", std::string(paddings[padding])},
                    {"align_corners", std::int64_t{c.flag("align_corners")}}})[0];
}

Outputs grid_sample(AtenContext& c) { return {sampled(c, c.tensor("input"), c.tensor("grid"))}; }

Outputs grid_sample_backward(AtenContext& c) {
  return gradients_of(c, {c.tensor("input"), c.tensor("grid")}, c.tensor("grad_output"),
                      [&](const std::vector<Value*>& own) { return sampled(c, own[0], own[1]); });
}

// x[.., P, D] and y[.., R, D]: [.., P, R]. By products where p is 2 would lose digits of near points: by differences.
Value* between(AtenContext& c, Value* x, Value* y) {
  const auto apart = [&](Value* v, std::size_t behind) {
    Shape shape = v->type.shape;
    shape.insert(shape.end() - static_cast<std::ptrdiff_t>(behind), Expr(1));
    return c.b.reshape(v, std::move(shape));
  };
  return norms(c, c.b.sub(apart(x, 1), apart(y, 2)), c.real("p", 2));
}

Outputs distances(AtenContext& c) { return {between(c, c.tensor("x1"), c.tensor("x2"))}; }

// The gradient of x1; autograd asks for that of x2 as that of x1 of the transposed distances.
Outputs distances_backward(AtenContext& c) {
  Value* y = c.tensor("x2");
  return gradients_of(c, {c.tensor("x1")}, c.tensor("grad"),
                      [&](const std::vector<Value*>& own) { return between(c, own[0], y); });
}

// Between all pairs of rows i < j.
Value* pairs_apart(AtenContext& c, Value* x) {
  const Expr rows = x->type.shape[0];
  if (!rows.is_constant()) c.refuse("a number of rows known when compiling", x->type.text());
  Ints first, second;
  for (std::int64_t i = 0; i < rows.value(); ++i)
    for (std::int64_t j = i + 1; j < rows.value(); ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  return norms(c, c.b.sub(c.b.gather(x, c.b.ints(first)), c.b.gather(x, c.b.ints(second))), c.real("p", 2));
}

Outputs pair_distances(AtenContext& c) { return {pairs_apart(c, c.tensor("self"))}; }

Outputs pair_distances_backward(AtenContext& c) {
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad"),
                      [&](const std::vector<Value*>& own) { return pairs_apart(c, own[0]); });
}

Outputs fold(AtenContext& c) {
  Value* x = c.tensor("self");
  const bool alone = x->type.rank() == 2;
  if (alone) x = c.b.reshape(x, {Expr(1), x->type.shape[0], x->type.shape[1]});
  const Ints padding = c.repeated("padding", 2, 0);
  Value* y = onnx_call(c, "Col2Im", {x, c.b.ints(c.integers("output_size")), c.b.ints(c.integers("kernel_size"))},
                       {{"dilations", c.repeated("dilation", 2, 1)},
                        {"pads", Ints{padding[0], padding[1], padding[0], padding[1]}},
                        {"strides", c.repeated("stride", 2, 1)}})[0];
  return {c.b.reshape(y, c.result().shape)};
}

// Positions [taps, windows] that windows along an axis of this size read, of padded elements.
Value* tap_places(AtenContext& c, const Expr& size, std::int64_t taps, std::int64_t dilation, std::int64_t stride) {
  const Expr count = floor_div(size - (dilation * (taps - 1) + 1), Expr(stride)) + 1;
  Value* tap = c.b.iota({Expr(taps), Expr(1)}, 0, DType::i64, Expr(0), Expr(dilation));
  return c.b.add(tap, c.b.iota({Expr(1), count}, 1, DType::i64, Expr(0), Expr(stride)));
}

// Windows of a plane as columns.
Outputs windows_as_columns(AtenContext& c) {
  Value* x = c.tensor("self");
  const auto first = static_cast<std::int64_t>(x->type.rank()) - 2;
  const Ints kernel = c.repeated("kernel_size", 2, 1), dilation = c.repeated("dilation", 2, 1),
             padding = c.repeated("padding", 2, 0), stride = c.repeated("stride", 2, 1);
  std::vector<Expr> beside(x->type.rank(), Expr(0));
  for (std::size_t i = 0; i < 2; ++i) beside[beside.size() - 2 + i] = padding[i];
  if (padding[0] > 0 || padding[1] > 0) x = c.b.pad(x, beside, beside);
  const Expr rows = x->type.shape[static_cast<std::size_t>(first)], columns = x->type.shape.back();
  x = c.b.gather(x, tap_places(c, rows, kernel[0], dilation[0], stride[0]), first);  // [.., taps, windows, columns]
  x = c.b.gather(x, tap_places(c, columns, kernel[1], dilation[1], stride[1]), first + 2);
  Ints perm;
  for (std::int64_t i = 0; i < first + 4; ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 3], perm[perm.size() - 2]);
  return {c.b.reshape(c.b.transpose(x, perm), c.result().shape)};
}

Outputs pixel_shuffle(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t r = c.integer("upscale_factor");
  const Shape& result = c.result().shape;
  const std::size_t rank = result.size();
  const Expr rows = x->type.shape[rank - 2], columns = x->type.shape[rank - 1], channels = result[rank - 3];
  const Expr batch = product(std::span<const Expr>(result).first(rank - 3));
  Value* y = c.b.transpose(c.b.reshape(x, {batch, channels, Expr(r), Expr(r), rows, columns}), {0, 1, 4, 2, 5, 3});
  return {c.b.reshape(y, result)};
}

constexpr OpRow kSamplingRows[] = {
    {"aten.upsample_nearest1d.vec", resize, "nearest"},
    {"aten.upsample_nearest2d.vec", resize, "nearest"},
    {"aten.upsample_nearest3d.vec", resize, "nearest"},
    {"aten.upsample_nearest1d.default", resize, "nearest"},
    {"aten.upsample_nearest2d.default", resize, "nearest"},
    {"aten.upsample_bilinear2d.vec", resize, "linear"},
    {"aten.upsample_bilinear2d.default", resize, "linear"},
    {"aten.upsample_linear1d.vec", resize, "linear"},
    {"aten.upsample_trilinear3d.vec", resize, "linear"},
    {"aten.upsample_bicubic2d.vec", resize, "cubic"},
    {"aten.upsample_bicubic2d.default", resize, "cubic"},
    {"aten._upsample_nearest_exact1d.vec", resize, "nearest_exact"},
    {"aten._upsample_nearest_exact2d.vec", resize, "nearest_exact"},
    {"aten._upsample_nearest_exact3d.vec", resize, "nearest_exact"},
    {"aten.upsample_nearest2d_backward.default", resize_backward, "nearest"},
    {"aten.upsample_nearest1d_backward.default", resize_backward, "nearest"},
    {"aten.upsample_nearest3d_backward.default", resize_backward, "nearest"},
    {"aten._upsample_nearest_exact1d_backward.default", resize_backward, "nearest_exact"},
    {"aten._upsample_nearest_exact2d_backward.default", resize_backward, "nearest_exact"},
    {"aten._upsample_nearest_exact3d_backward.default", resize_backward, "nearest_exact"},
    {"aten.upsample_linear1d_backward.default", resize_backward, "linear"},
    {"aten.upsample_trilinear3d_backward.default", resize_backward, "linear"},
    {"aten.upsample_bilinear2d_backward.default", resize_backward, "linear"},
    {"aten.upsample_bicubic2d_backward.default", resize_backward, "cubic"},
    {"aten._upsample_bilinear2d_aa.default", resize_without_aliases, "linear"},
    {"aten._upsample_bicubic2d_aa.default", resize_without_aliases, "cubic"},
    {"aten._upsample_bilinear2d_aa_backward.default", resize_without_aliases_backward, "linear"},
    {"aten._upsample_bicubic2d_aa_backward.default", resize_without_aliases_backward, "cubic"},
    {"aten.grid_sampler_2d.default", grid_sample},
    {"aten.grid_sampler.default", grid_sample},
    {"aten.grid_sampler_3d.default", grid_sample},
    {"aten.grid_sampler_2d_backward.default", grid_sample_backward},
    {"aten.grid_sampler_3d_backward.default", grid_sample_backward},
    {"aten._cdist_forward.default", distances},
    {"aten._cdist_backward.default", distances_backward},
    {"aten._pdist_forward.default", pair_distances},
    {"aten._pdist_backward.default", pair_distances_backward},
    {"aten.col2im.default", fold},
    {"aten.im2col.default", windows_as_columns},
    {"aten.pixel_shuffle.default", pixel_shuffle},
};

}  // namespace

std::span<const OpRow> sampling_rows() { return kSamplingRows; }

}  // namespace oclc::pt2
