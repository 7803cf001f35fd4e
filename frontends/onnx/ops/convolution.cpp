// Convolutions, pooling, matrix products.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "compiler/ops/shape_rules.h"
#include "frontends/onnx/ops/activation.h"
#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs convolution(OpContext& c) {
  const Window w = window_of_weights(c, c.input(1), true);
  const std::int64_t group = c.integer("group", 1);
  if (group < 1) c.fail("a group of at least 1", std::to_string(group));
  Value* y = c.b.conv(padded(c, c.input(0), w, 0), c.input(1), c.optional_input(2), {w.strides, w.dilations, w.pads, group});
  return {same_positions(c, y, w)};
}

// A convolution, what is added to it, and an activation.
Outputs fused_convolution(OpContext& c) {
  const bool last = c.core() == "nhwc";
  if (last) c.set_input(0, channels_second(c, c.input(0)));
  Value* y = convolution(c).at(0);
  if (Value* more = c.optional_input(3)) y = c.b.add(y, last ? channels_second(c, more) : more);
  y = activated(c, y, c.text("activation", ""), c.reals("activation_params", std::vector<double>{}));
  return {last ? channels_last(c, y) : y};
}

Window pooling_window(OpContext& c, bool open_pads = false) {
  const std::size_t axes = spatial_axes(c);
  if (!c.has("kernel_shape")) c.integers("kernel_shape");
  return window_of(c, checked_list(c, "kernel_shape", axes, 1, 1), open_pads);
}

// Places of the maxima in the whole of x, from their taps in their windows.
Value* places(OpContext& c, Value* taps, const Window& w, bool column_major) {
  const Shape &x = c.shape(0), &shape = taps->type.shape;
  Value* tap = c.b.cast(taps, DType::i64);
  const auto number = [&](const Expr& e) { return c.b.exprs({e}, {}); };
  const auto ramp = [&](std::size_t axis, std::int64_t start, std::int64_t step) {
    Shape line(shape.size(), Expr(1));
    line[axis] = shape[axis];
    return c.b.iota(line, static_cast<std::int64_t>(axis), DType::i64, Expr(start), Expr(step));
  };
  Expr weight = 1;
  Value* place = nullptr;
  std::vector<Value*> positions;
  for (std::size_t i = w.kernel.size(); i-- > 0;) {
    Value* k = c.b.call("mod", {tap, number(Expr(w.kernel[i]))});
    tap = c.b.div(tap, number(Expr(w.kernel[i])));
    positions.insert(positions.begin(),
                     c.b.add(c.b.mul(k, number(Expr(w.dilations[i]))), ramp(i + 2, -w.pads[i], w.strides[i])));
  }
  const auto add = [&](std::size_t axis, Value* position) {
    Value* part = c.b.mul(position, number(weight));
    place = place ? c.b.add(place, part) : part;
    weight *= x[axis];
  };
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t at = column_major ? i : positions.size() - 1 - i;
    add(at + 2, positions[at]);
  }
  add(1, ramp(1, 0, 1));
  add(0, ramp(0, 0, 1));
  return place;
}

Outputs max_pooling(OpContext& c) {
  const bool column_major = c.flag("storage_order");
  const Window w = pooling_window(c, !c.wants_output(1));
  const PoolOptions options{w.kernel, w.strides, w.dilations, w.pads, c.flag("ceil_mode"), false};
  const DType dtype = c.input(0)->type.dtype;
  const double lowest = is_float(dtype) ? -std::numeric_limits<double>::infinity() : dtype == DType::i8 ? -128 : 0;
  if (!w.open_pads.empty() && !is_float(dtype) && dtype != DType::i8 && dtype != DType::u8)
    c.unsupported("numbers of 8 bits or real ones", c.input(0)->type.text());
  Outputs out{same_positions(c, c.b.max_pool(padded(c, c.input(0), w, lowest), options), w)};
  if (!c.wants_output(1)) return out;
  Value* taps = c.b.call("max_pool_index", {c.input(0)},
                         {{"kernel", w.kernel},
                          {"strides", w.strides},
                          {"dilations", w.dilations},
                          {"pads", w.pads},
                          {"ceil_mode", std::int64_t{options.ceil_mode}}});
  out.push_back(places(c, taps, w, column_major));
  return out;
}

Outputs average_pooling(OpContext& c) {
  const Window w = pooling_window(c, true);
  const bool all = c.flag("count_include_pad"), open = !w.open_pads.empty();
  const PoolOptions options{w.kernel, w.strides, w.dilations, w.pads, c.flag("ceil_mode"), all || open};
  Value* y = c.b.avg_pool(padded(c, c.input(0), w, 0), options);
  if (open && !all) {
    // By the part of each window that lies inside.
    Shape shape = c.shape(0);
    shape[0] = shape[1] = Expr(1);
    Value* ones = c.b.expand(c.b.scalar(c.input(0)->type.dtype, 1), std::move(shape));
    Value* part = c.b.avg_pool(padded(c, ones, w, 0), options);
    const std::int64_t taps = std::accumulate(w.kernel.begin(), w.kernel.end(), std::int64_t{1}, std::multiplies<>());
    // Of a window without any the mean is 0.
    y = c.b.div(y, c.b.call("max", {part, c.b.scalar(part->type.dtype, 0.5 / static_cast<double>(taps))}));
  }
  return {same_positions(c, y, w)};
}

Outputs max_pooling_nhwc(OpContext& c) {
  c.set_input(0, channels_second(c, c.input(0)));
  return {channels_last(c, max_pooling(c).at(0))};
}

Outputs qlinear_average_pooling(OpContext& c) {
  const auto scalar = [&](std::size_t i) { return c.optional_input(i) ? c.b.reshape(c.input(i), {}) : nullptr; };
  const DType dtype = c.input(0)->type.dtype;
  const bool last = c.flag("channels_last");
  Value* x = dequantized(c, c.input(0), scalar(1), scalar(2));
  c.set_input(0, last ? channels_second(c, x) : x);
  Value* y = average_pooling(c).at(0);
  // ONNX Runtime adds the zero point before it rounds.
  return {quantized(c, last ? channels_last(c, y) : y, scalar(3), scalar(4), dtype, true)};
}

// (sum of |x|^p over the window)^(1/p), by the average over all of the window.
Outputs lp_pooling(OpContext& c) {
  const Window w = pooling_window(c, true);
  const auto p = static_cast<double>(c.integer("p", 2));
  if (p < 1) c.fail("p of at least 1", fmt::format("{}", p));
  Value* x = c.b.unary("abs", c.input(0));
  const Shape sizes = x->type.shape;
  // Padding in front of the pool, so that each window has all of its taps.
  std::vector<Expr> before(sizes.size(), Expr(0)), after = before, positions(sizes.begin(), sizes.end());
  double count = 1;
  const std::size_t axes = w.kernel.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t k = w.kernel[i], stride = w.strides[i], dilation = w.dilations[i];
    count *= static_cast<double>(k);
    const bool open = !w.open_pads.empty();
    before[i + 2] = open ? w.open_pads[i] : Expr(w.pads[i]);
    const Expr padded = sizes[i + 2] + before[i + 2] + (open ? w.open_pads[i + axes] : Expr(w.pads[i + axes]));
    positions[i + 2] =
        open ? ceil_div(sizes[i + 2], Expr(stride))
             : window_positions(sizes[i + 2], k, stride, dilation, w.pads[i], w.pads[i + axes], c.flag("ceil_mode"), true);
    const Expr end = (positions[i + 2] - 1) * Expr(stride) + Expr(dilation * (k - 1) + 1);
    after[i + 2] = oclc::max(end, padded) - sizes[i + 2] - before[i + 2];
  }
  Value* powers = p == 1 ? x : p == 2 ? c.b.mul(x, x) : c.b.pow(x, c.b.scalar(x->type.dtype, p));
  Value* sum =
      c.b.mul(c.b.avg_pool(c.b.pad(powers, before, after), {w.kernel, w.strides, w.dilations, {}, false, true}), count);
  if (!(sum->type.shape == positions))
    sum = c.b.slice(sum, std::vector<Expr>(sizes.size(), Expr(0)), positions, Ints(sizes.size(), 1));
  return {c.b.norm_root(sum, p)};
}

Outputs global_lp_pooling(OpContext& c) {
  const auto p = static_cast<double>(c.integer("p", 2));
  Value* x = c.b.unary("abs", c.input(0));
  if (x->type.rank() < 3) c.fail("an input of rank 3 or more", x->type.text());
  Ints axes(x->type.rank() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  const DType dtype = x->type.dtype;
  Value* sum = c.b.reduce("reduce_sum", c.b.pow(x, c.b.scalar(dtype, p)), axes, true);
  return {c.b.norm_root(sum, p)};
}

// The place of each maximum is written down; the other elements are 0.
Outputs max_unpooling(OpContext& c) {
  const std::size_t axes = spatial_axes(c);
  const Window w = pooling_window(c);
  Value* x = c.input(0);
  Shape shape{x->type.shape[0], x->type.shape[1]};
  for (std::size_t i = 0; i < axes; ++i)
    shape.push_back((x->type.shape[i + 2] - 1) * Expr(w.strides[i]) + Expr(w.kernel[i] - w.pads[i] - w.pads[i + axes]));
  Value* places = c.b.reshape(c.input(1), {x->type.elements()});
  Value* flat = c.b.call("scatter_add", {places, c.b.reshape(x, {x->type.elements()})},
                         {{"axis", std::int64_t{0}}, {"size", std::vector<Expr>{product(shape)}}});
  Value* y = c.b.reshape(flat, shape);
  if (!c.optional_input(2)) return {y};
  // The places count in the tensor of the inferred shape; a larger one is filled up behind.
  const Shape wanted = c.content(2, "the output shape");
  std::vector<Expr> before(shape.size(), Expr(0)), after;
  for (std::size_t i = 0; i < shape.size() && wanted.size() == shape.size(); ++i) after.push_back(wanted[i] - shape[i]);
  if (after.size() != shape.size() ||
      std::any_of(after.begin(), after.end(), [](const Expr& e) { return !known_nonnegative(e); }))
    c.fail("an output shape of at least " + text_of(shape), text_of(wanted));
  return {c.b.pad(y, std::move(before), std::move(after))};
}

Outputs transposed_convolution(OpContext& c) {
  const std::size_t axes = spatial_axes(c);
  Value *x = c.input(0), *weights = c.input(1);
  const Shape& sw = weights->type.shape;
  if (sw.size() != axes + 2) c.fail(fmt::format("weights of rank {}", axes + 2), weights->type.text());
  Ints kernel;
  for (std::size_t i = 2; i < sw.size(); ++i) {
    if (!sw[i].is_constant()) c.unsupported("weights of known size", weights->type.text());
    kernel.push_back(sw[i].value());
  }
  c.ignore({"kernel_shape"});
  const Ints strides = checked_list(c, "strides", axes, 1, 1), dilations = checked_list(c, "dilations", axes, 1, 1),
             extra = checked_list(c, "output_padding", axes, 0, 0);
  const std::int64_t group = c.integer("group", 1);
  if (group < 1) c.fail("a group of at least 1", std::to_string(group));
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  Ints pads(2 * axes, 0);
  if (!same && automatic != "VALID" && !c.has("output_shape")) pads = checked_list(c, "pads", 2 * axes, 0, 0);
  c.ignore({"pads"});
  std::vector<Expr> sizes;
  Ints wanted = c.integers("output_shape", Ints{});
  if (wanted.size() > axes) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(axes));
  for (std::size_t i = 0; i < axes; ++i) {
    // Without padding the result has `whole` positions.
    const Expr whole = (x->type.shape[i + 2] - 1) * Expr(strides[i]) + Expr((kernel[i] - 1) * dilations[i] + 1 + extra[i]);
    if (wanted.empty() && !same) {
      sizes.push_back(whole - Expr(pads[i] + pads[i + axes]));
      continue;
    }
    const Expr size = wanted.empty() ? x->type.shape[i + 2] * Expr(strides[i]) : Expr(wanted.at(i));
    const Expr total = whole - size;
    if (!total.is_constant()) c.unsupported("a size known when compiling for output_shape or auto_pad", x->type.text());
    const std::int64_t cut = std::max<std::int64_t>(total.value(), 0), half = cut / 2;
    pads[i] = automatic == "SAME_UPPER" ? half : cut - half;
    pads[i + axes] = cut - pads[i];
    sizes.push_back(size);
  }
  Value* y =
      c.b.call("conv_transpose", {x, weights},
               {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}, {"output_shape", sizes}});
  Value* bias = c.optional_input(2);
  if (!bias) return {y};
  if (bias->type.rank() != 1 || !(bias->type.shape[0] == y->type.shape[1]))
    c.fail(fmt::format("a bias of {} numbers", y->type.shape[1].text()), bias->type.text());
  Shape column{bias->type.shape[0]};
  column.resize(axes + 1, Expr(1));
  return {c.b.add(y, c.b.reshape(bias, std::move(column)))};
}

Outputs global_pooling(OpContext& c) {
  Value* x = c.input(0);
  if (x->type.rank() < 2) c.fail("an input of rank 2 or more", x->type.text());
  Ints axes(x->type.rank() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return {axes.empty() ? x : c.b.reduce(c.core(), x, axes, true)};
}

Outputs gemm(OpContext& c) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.rank(i) != 2) c.fail(fmt::format("a matrix as input {}", i), c.input(i)->type.text());
  }
  const double alpha = c.real("alpha", 1.0), beta = c.real("beta", 1.0);
  const bool trans_a = c.flag("transA"), trans_b = c.flag("transB");
  Value* product = c.b.matmul(c.input(0), c.input(1), trans_a, trans_b);
  if (alpha != 1) product = c.b.mul(product, alpha);
  Value* bias = c.optional_input(2);
  if (!bias || beta == 0) return {product};
  if (beta != 1) bias = c.b.mul(bias, beta);
  Value* sum = c.b.add(product, bias);
  if (!(sum->type == product->type))
    c.fail(fmt::format("input 2 that broadcasts to {}", product->type.text()), c.input(2)->type.text());
  return {sum};
}

// Vectors take part as a row on the left and a column on the right.
Outputs matmul(OpContext& c) {
  Value *a = c.input(0), *b = c.input(1);
  const bool row = a->type.rank() == 1, column = b->type.rank() == 1;
  if (row) a = c.b.reshape(a, {Expr(1), a->type.shape[0]});
  if (column) b = c.b.reshape(b, {b->type.shape[0], Expr(1)});
  Value* product = c.b.matmul(a, b);
  if (!row && !column) return {product};
  Shape shape = product->type.shape;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return {c.b.reshape(product, std::move(shape))};
}

constexpr OpRow kConvolutionRows[] = {
    {"com.microsoft.FusedConv", 1, 2, 4, fused_convolution},
    {"com.microsoft.NhwcConv", 1, 2, 3, fused_convolution, "nhwc"},
    {"com.microsoft.NhwcFusedConv", 1, 2, 4, fused_convolution, "nhwc"},
    {"com.microsoft.NhwcMaxPool", 1, 1, 1, max_pooling_nhwc},
    {"com.microsoft.QLinearAveragePool", 1, 4, 5, qlinear_average_pooling},
    {"AveragePool", 1, 1, 1, average_pooling},
    {"Conv", 1, 2, 3, convolution},
    {"ConvTranspose", 1, 2, 3, transposed_convolution},
    {"Gemm", 7, 2, 3, gemm},
    {"GlobalAveragePool", 1, 1, 1, global_pooling, "reduce_mean"},
    {"GlobalLpPool", 2, 1, 1, global_lp_pooling},
    {"GlobalMaxPool", 1, 1, 1, global_pooling, "reduce_max"},
    {"MatMul", 1, 2, 2, matmul},
    {"LpPool", 2, 1, 1, lp_pooling},
    {"MaxPool", 1, 1, 1, max_pooling},
    {"MaxUnpool", 9, 2, 3, max_unpooling},
};

}  // namespace

std::span<const OpRow> convolution_rows() { return kConvolutionRows; }

}  // namespace oclc::onnx
