// Convolutions, pooling, matrix products.
#include <fmt/format.h>

#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kLargestStep = 1 << 20;  // of kernels, strides, dilations, pads

struct Window {
  Ints kernel, strides, dilations, pads;
};

Ints checked_list(OpContext& c, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
  const Ints list = c.integers(name, Ints(count, otherwise));
  if (list.size() != count) c.fail(fmt::format("{} numbers as attribute '{}'", count, name), std::to_string(list.size()));
  for (const std::int64_t v : list) {
    if (v < least || v > kLargestStep)
      c.fail(fmt::format("numbers from {} to {} as attribute '{}'", least, kLargestStep, name), std::to_string(v));
  }
  return list;
}

// Pads that give ceil(size / stride) positions, with the odd one at the front or the back.
Ints same_pads(OpContext& c, const Window& w, bool extra_in_front) {
  const std::size_t axes = w.kernel.size();
  Ints pads(2 * axes, 0);
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr& size = c.shape(0)[i + 2];
    const std::int64_t span = w.dilations[i] * (w.kernel[i] - 1) + 1;
    Expr total = span - 1;  // for stride 1, whatever the size
    if (w.strides[i] > 1)
      total = max((ceil_div(size, Expr(w.strides[i])) - 1) * Expr(w.strides[i]) + Expr(span) - size, Expr(0));
    if (!total.is_constant()) {
      c.unsupported("a size known when compiling for auto_pad with a stride", c.input(0)->type.text(),
                    "give it with --shape or --dim");
    }
    const std::int64_t less = total.value() / 2, more = total.value() - less;
    pads[i] = extra_in_front ? more : less;
    pads[i + axes] = extra_in_front ? less : more;
  }
  return pads;
}

Window window(OpContext& c, const Ints& kernel) {
  const std::size_t axes = kernel.size();
  Window w{kernel, checked_list(c, "strides", axes, 1, 1), checked_list(c, "dilations", axes, 1, 1), {}};
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic.empty()) {
    w.pads = checked_list(c, "pads", 2 * axes, 0, 0);
    return w;
  }
  c.ignore({"pads"});
  if (automatic == "VALID") {
    w.pads.assign(2 * axes, 0);
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    w.pads = same_pads(c, w, automatic == "SAME_LOWER");
  } else {
    c.fail("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", printable(automatic));
  }
  return w;
}

std::size_t spatial_axes(OpContext& c) {
  if (c.rank(0) < 3 || c.rank(0) > 5) c.fail("an input of rank 3 to 5", c.input(0)->type.text());
  return c.rank(0) - 2;
}

Outputs convolution(OpContext& c) {
  const std::size_t axes = spatial_axes(c);
  const Shape& weights = c.shape(1);
  if (weights.size() != axes + 2) c.fail(fmt::format("weights of rank {}", axes + 2), c.input(1)->type.text());
  Ints kernel;
  for (std::size_t i = 2; i < weights.size(); ++i) {
    if (!weights[i].is_constant()) c.unsupported("weights of known size", c.input(1)->type.text());
    kernel.push_back(weights[i].value());
  }
  if (c.has("kernel_shape") && c.integers("kernel_shape") != kernel) {
    c.fail(fmt::format("attribute 'kernel_shape' as the weights have it, [{}]", fmt::join(kernel, ", ")),
           fmt::format("[{}]", fmt::join(c.integers("kernel_shape"), ", ")));
  }
  const Window w = window(c, kernel);
  const std::int64_t group = c.integer("group", 1);
  if (group < 1) c.fail("a group of at least 1", std::to_string(group));
  return {c.b.conv(c.input(0), c.input(1), c.optional_input(2), {w.strides, w.dilations, w.pads, group})};
}

Outputs pooling(OpContext& c) {
  const std::size_t axes = spatial_axes(c);
  c.ignore({"storage_order"});  // of the indices
  if (!c.has("kernel_shape")) c.integers("kernel_shape");
  const Window w = window(c, checked_list(c, "kernel_shape", axes, 1, 1));
  PoolOptions options{w.kernel, w.strides, w.dilations, w.pads, c.flag("ceil_mode"), false};
  if (c.core() == "max_pool") return {c.b.max_pool(c.input(0), options)};
  options.count_include_pad = c.flag("count_include_pad");
  return {c.b.avg_pool(c.input(0), options)};
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

constexpr OpRow kRows[] = {
    {"AveragePool", 7, 1, 1, pooling, "avg_pool"},
    {"Conv", 1, 2, 3, convolution},
    {"Gemm", 7, 2, 3, gemm},
    {"GlobalAveragePool", 1, 1, 1, global_pooling, "reduce_mean"},
    {"GlobalMaxPool", 1, 1, 1, global_pooling, "reduce_max"},
    {"MatMul", 1, 2, 2, matmul},
    {"MaxPool", 1, 1, 1, pooling, "max_pool"},
};

}  // namespace

std::span<const OpRow> convolution_rows() { return kRows; }

}  // namespace oclc::onnx
