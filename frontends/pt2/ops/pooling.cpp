// Pooling and its gradients.
#include <algorithm>
#include <functional>
#include <optional>

#include "frontends/onnx/axis_product.h"
#include "frontends/pt2/gradient.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"
#include "frontends/pt2/windows.h"

namespace oclc::pt2 {
namespace {

std::size_t spatial_axes(AtenContext& c) {
  const std::string_view kind = c.core();
  return kind.ends_with("1") ? 1 : kind.ends_with("3") ? 3 : 2;
}

// An input without the batch is one of a batch of 1.
Outputs pooled_with_batch(AtenContext& c, Value* x, std::size_t axes, const std::function<Outputs(Value*)>& pool) {
  if (x->type.rank() == axes + 2) return pool(x);
  Shape shape = x->type.shape;
  shape.insert(shape.begin(), Expr(1));
  Outputs out = pool(c.b.reshape(x, shape));
  for (Value*& y : out)
    if (y) y = c.b.reshape(y, Shape(y->type.shape.begin() + 1, y->type.shape.end()));
  return out;
}

PoolOptions window_of(AtenContext& c, std::size_t axes) {
  PoolOptions o;
  o.kernel = c.repeated("kernel_size", axes, 1);
  o.strides = c.integers("stride").empty() ? o.kernel : c.repeated("stride", axes, 1);
  o.dilations = c.repeated("dilation", axes, 1);
  o.pads = c.repeated("padding", axes, 0);
  o.pads.insert(o.pads.end(), o.pads.begin(), o.pads.begin() + static_cast<std::ptrdiff_t>(axes));
  o.ceil_mode = c.flag("ceil_mode");
  o.count_include_pad = c.flag("count_include_pad", true);
  return o;
}

Outputs max_with_places(AtenContext& c, Value* x, const PoolOptions& o) {
  if (!c.wants(1)) return {c.b.max_pool(x, o), nullptr};
  Outputs out = onnx_call(c, "MaxPool", {x},
                          {{"kernel_shape", o.kernel},
                           {"strides", o.strides},
                           {"dilations", o.dilations},
                           {"pads", o.pads},
                           {"ceil_mode", std::int64_t{o.ceil_mode}}},
                          2);
  // torch counts within a plane.
  const Expr plane = product(std::span<const Expr>(x->type.shape).subspan(2));
  out[1] = c.b.call("mod", {out[1], c.b.exprs({plane}, {})});
  return out;
}

Outputs max_pool(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  const PoolOptions o = window_of(c, axes);
  return pooled_with_batch(c, c.tensor("self"), axes, [&](Value* x) { return max_with_places(c, x, o); });
}

Outputs max_pool_backward(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  const PoolOptions o = window_of(c, axes);
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad_output"), [&](const std::vector<Value*>& own) {
    return pooled_with_batch(c, own[0], axes, [&](Value* x) -> Outputs { return {c.b.max_pool(x, o)}; })[0];
  });
}

// Elements at their places in planes of zeros: places count within a plane.
Outputs max_unpool(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  Value *x = c.tensor("self"), *places = c.tensor("indices");
  const Shape& result = c.result().shape;
  const auto planes = static_cast<std::ptrdiff_t>(result.size() - axes);
  const auto in_planes = [&](const Shape& shape) {
    Shape flat(shape.begin(), shape.begin() + planes);
    flat.push_back(product(std::span<const Expr>(shape).subspan(static_cast<std::size_t>(planes))));
    return flat;
  };
  Value* zeros = c.b.expand(c.b.scalar(x->type.dtype, 0), in_planes(result));
  Value* y = onnx_call(c, "ScatterElements",
                       {zeros, c.b.reshape(places, in_planes(places->type.shape)), c.b.reshape(x, in_planes(x->type.shape))},
                       {{"axis", std::int64_t{planes}}})[0];
  return {c.b.reshape(y, result)};
}

// Of integers: the sum divided towards 0 by the number of places that count.
Value* averaged_integers(AtenContext& c, Value* x, const PoolOptions& o) {
  const std::size_t axes = o.kernel.size();
  const Shape& result = c.result().shape;
  Windows w{o.kernel, o.strides, Ints(axes, 1), {}, {}};
  Ints window_axes;
  Value* places = c.b.scalar(x->type.dtype, 1);
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr &in = x->type.shape[i + 2], &out = result[result.size() - axes + i];
    if (!in.is_constant() || !out.is_constant()) c.refuse("sizes known when compiling for means of integers", x->type.text());
    const std::int64_t pad = o.pads[i], size = in.value(), count = out.value();
    w.before.push_back(pad);
    w.after.push_back((count - 1) * o.strides[i] + o.kernel[i] - size - pad);
    window_axes.push_back(static_cast<std::int64_t>(2 + axes + i));
    HostTensor counts(x->type.dtype, {count});
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t begin = k * o.strides[i] - pad, end = std::min(begin + o.kernel[i], size + pad);
      counts.set_int(k, o.count_include_pad ? end - begin : std::min(end, size) - std::max<std::int64_t>(begin, 0));
    }
    Shape line(2 + axes, Expr(1));
    line[2 + i] = count;
    places = c.b.mul(places, c.b.reshape(c.b.constant(std::move(counts)), line));
  }
  Value* sum = c.b.reduce("reduce_sum", windows_of(c, x, w), window_axes, false);
  return c.b.div(sum, c.has("divisor_override") ? c.operand("divisor_override", x->type.dtype) : places);
}

Value* averaged(AtenContext& c, Value* x, std::size_t axes) {
  PoolOptions o = window_of(c, axes);
  if (!is_float(x->type.dtype)) return averaged_integers(c, x, o);
  double count = 1;
  for (const std::int64_t k : o.kernel) count *= static_cast<double>(k);
  if (!c.has("divisor_override")) return c.b.avg_pool(x, o);
  o.count_include_pad = true;
  if (o.ceil_mode) {  // zeros behind, so that the last windows are whole
    std::vector<Expr> before(x->type.rank(), Expr(0)), after = before;
    for (std::size_t i = 0; i < axes; ++i) {
      const Expr in = x->type.shape[i + 2] + 2 * o.pads[i];
      if (!in.is_constant()) c.refuse("sizes known when compiling with divisor_override and ceil_mode", x->type.text());
      std::int64_t count_of_windows = (in.value() - o.kernel[i] + o.strides[i] - 1) / o.strides[i] + 1;
      if ((count_of_windows - 1) * o.strides[i] >= in.value() - o.pads[i])
        --count_of_windows;  // none begins behind the elements
      before[i + 2] = o.pads[i];
      after[i + 2] = std::max((count_of_windows - 1) * o.strides[i] + o.kernel[i] - in.value(), std::int64_t{0}) + o.pads[i];
    }
    x = c.b.pad(x, before, after);
    o.pads.clear();
    o.ceil_mode = false;
  }
  return c.b.mul(c.b.avg_pool(x, o), count / c.real("divisor_override"));
}

Outputs average_pool(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  return pooled_with_batch(c, c.tensor("self"), axes, [&](Value* x) -> Outputs { return {averaged(c, x, axes)}; });
}

Outputs average_pool_backward(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad_output"), [&](const std::vector<Value*>& own) {
    return pooled_with_batch(c, own[0], axes, [&](Value* x) -> Outputs { return {averaged(c, x, axes)}; })[0];
  });
}

// Window i of `out` of them over `in` elements: from floor(i * in / out) to ceil((i + 1) * in / out). As a product with the
// matrix [out, in] of the shares.
Value* adapted_axis(AtenContext& c, Value* x, std::size_t axis, std::int64_t in, std::int64_t out) {
  HostTensor shares(x->type.dtype, {out, in});
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (std::int64_t k = begin; k < end; ++k) shares.set(i * in + k, 1 / static_cast<double>(end - begin));
  }
  return onnx::axis_product(c.b, x, axis, std::move(shares));
}

Value* adapted(AtenContext& c, Value* x, const Shape& sizes) {
  const std::size_t first = x->type.rank() - sizes.size();
  PoolOptions even;
  bool ones = true, divides = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Expr &in = x->type.shape[first + i], &out = sizes[i];
    ones = ones && out == Expr(1);
    divides = divides && in.is_constant() && out.is_constant() && in.value() % out.value() == 0;
    if (divides) even.kernel.push_back(in.value() / out.value());
  }
  if (ones) {
    Ints axes;
    for (std::size_t i = first; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    return c.b.reduce("reduce_mean", x, axes, true);
  }
  if (divides && first == 2) {
    even.strides = even.kernel;
    return c.b.avg_pool(x, even);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Expr &in = x->type.shape[first + i], &out = sizes[i];
    if (!in.is_constant() || !out.is_constant()) c.refuse("sizes known when compiling for adaptive pooling", x->type.text());
    if (!(in == out)) x = adapted_axis(c, x, first + i, in.value(), out.value());
  }
  return x;
}

Outputs adaptive_average(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  const Shape& shape = c.result().shape;
  return {adapted(c, c.tensor("self"), Shape(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end()))};
}

Outputs adaptive_average_backward(AtenContext& c) {
  const std::size_t axes = spatial_axes(c);
  Value* g = c.tensor("grad_output");
  const Shape& shape = g->type.shape;
  const Shape sizes(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
  return gradients_of(c, {c.tensor("self")}, g, [&](const std::vector<Value*>& own) { return adapted(c, own[0], sizes); });
}

// Windows of an axis as rows of positions [out, widest]; those of narrower windows repeat their last.
Value* adaptive_windows(AtenContext& c, std::int64_t in, std::int64_t out, std::int64_t& widest) {
  widest = 0;
  const auto end = [&](std::int64_t i) { return ((i + 1) * in + out - 1) / out; };
  for (std::int64_t i = 0; i < out; ++i) widest = std::max(widest, end(i) - i * in / out);
  HostTensor places(DType::i64, {out, widest});
  for (std::int64_t i = 0; i < out; ++i)
    for (std::int64_t k = 0; k < widest; ++k) places.set_int(i * widest + k, std::min(i * in / out + k, end(i) - 1));
  return c.b.constant(std::move(places));
}

// The windows as those of an ordinary pooling, where the sizes divide; else nothing.
std::optional<PoolOptions> even_windows(const Shape& in, const Shape& out, std::size_t axes) {
  PoolOptions o;
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr &from = in[in.size() - axes + i], &to = out[out.size() - axes + i];
    if (!from.is_constant() || !to.is_constant() || from.value() % to.value() != 0) return std::nullopt;
    o.kernel.push_back(from.value() / to.value());
  }
  o.strides = o.kernel;
  o.dilations.assign(axes, 1);
  o.pads.assign(2 * axes, 0);
  return o;
}

// The largest of each window, and its place in the plane: the first of equal ones.
Outputs adaptive_max(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::size_t axes = spatial_axes(c);
  const Shape result = c.result().shape;
  if (const auto even = even_windows(x->type.shape, result, axes))
    return pooled_with_batch(c, x, axes, [&](Value* y) { return max_with_places(c, y, *even); });
  const std::size_t first = x->type.rank() - axes;
  // [.., out0, k0, out1, k1, ..] of values, and of places in the plane.
  Value *y = x, *place = c.b.scalar(DType::i64, 0);
  Ints perm, window_axes;
  Shape windows(result.begin(), result.end());
  Expr widest = 1;
  for (std::size_t i = 0; i < first; ++i) perm.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr in = x->type.shape[first + i], out = result[first + i];
    if (!in.is_constant() || !out.is_constant()) c.refuse("sizes known when compiling for adaptive pooling", x->type.text());
    std::int64_t wide = 0;
    Value* places = adaptive_windows(c, in.value(), out.value(), wide);
    y = c.b.gather(y, places, static_cast<std::int64_t>(first + 2 * i));
    Shape line(2 * axes, Expr(1));
    line[2 * i] = out;
    line[2 * i + 1] = wide;
    place = c.b.add(c.b.mul(place, c.b.exprs({in}, {})), c.b.reshape(places, line));
    perm.push_back(static_cast<std::int64_t>(first + 2 * i));
    window_axes.push_back(static_cast<std::int64_t>(first + 2 * i + 1));
    widest = widest * wide;
  }
  perm.insert(perm.end(), window_axes.begin(), window_axes.end());
  windows.push_back(widest);
  const auto last = static_cast<std::int64_t>(windows.size()) - 1;
  Shape all = y->type.shape;
  y = c.b.reshape(c.b.transpose(y, perm), windows);
  Outputs out{c.b.reduce("reduce_max", y, {last}, false), nullptr};
  if (!c.wants(1)) return out;
  place = c.b.reshape(c.b.transpose(c.b.expand(place, all), perm), windows);
  Value* winner = c.b.arg("argmax", y, last, true);
  out[1] = c.b.reshape(c.b.gather_elements(place, winner, last), result);
  return out;
}

// Gradients go to the places that the forward pass chose.
Outputs adaptive_max_backward(AtenContext& c) {
  Value *g = c.tensor("grad_output"), *x = c.tensor("self"), *places = c.tensor("indices");
  const std::size_t axes = spatial_axes(c);
  const auto planes_of = [&](Value* v) {
    const Shape& s = v->type.shape;
    const std::span<const Expr> all(s);
    return c.b.reshape(v, {product(all.first(s.size() - axes)), product(all.subspan(s.size() - axes))});
  };
  Value* zeros = c.b.expand(c.b.scalar(g->type.dtype, 0), planes_of(x)->type.shape);
  Value* y = onnx_call(c, "ScatterElements", {zeros, planes_of(places), planes_of(g)},
                       {{"axis", std::int64_t{1}}, {"reduction", std::string("add")}})[0];
  return {c.b.reshape(y, x->type.shape)};
}

constexpr OpRow kPoolingRows[] = {
    {"aten.max_pool1d.default", max_pool, "1"},
    {"aten.max_pool2d.default", max_pool, "2"},
    {"aten.max_pool3d.default", max_pool, "3"},
    {"aten.max_pool2d_with_indices.default", max_pool, "2"},
    {"aten.max_unpool2d.default", max_unpool, "2"},
    {"aten.max_unpool3d.default", max_unpool, "3"},
    {"aten.max_pool1d_with_indices.default", max_pool, "1"},
    {"aten.max_pool3d_with_indices.default", max_pool, "3"},
    {"aten.max_pool2d_with_indices_backward.default", max_pool_backward, "2"},
    {"aten.max_pool3d_with_indices_backward.default", max_pool_backward, "3"},
    {"aten.avg_pool1d.default", average_pool, "1"},
    {"aten.avg_pool2d.default", average_pool, "2"},
    {"aten.avg_pool3d.default", average_pool, "3"},
    {"aten.avg_pool2d_backward.default", average_pool_backward, "2"},
    {"aten.avg_pool3d_backward.default", average_pool_backward, "3"},
    {"aten.adaptive_avg_pool1d.default", adaptive_average, "1"},
    {"aten.adaptive_avg_pool2d.default", adaptive_average, "2"},
    {"aten.adaptive_avg_pool3d.default", adaptive_average, "3"},
    {"aten._adaptive_avg_pool2d.default", adaptive_average, "2"},
    {"aten._adaptive_avg_pool3d.default", adaptive_average, "3"},
    {"aten._adaptive_avg_pool2d_backward.default", adaptive_average_backward, "2"},
    {"aten._adaptive_avg_pool3d_backward.default", adaptive_average_backward, "3"},
    {"aten.adaptive_max_pool1d.default", adaptive_max, "1"},
    {"aten.adaptive_max_pool2d.default", adaptive_max, "2"},
    {"aten.adaptive_max_pool3d.default", adaptive_max, "3"},
    {"aten.adaptive_max_pool2d_backward.default", adaptive_max_backward, "2"},
    {"aten.adaptive_max_pool3d_backward.default", adaptive_max_backward, "3"},
};

}  // namespace

std::span<const OpRow> pooling_rows() { return kPoolingRows; }

}  // namespace oclc::pt2
