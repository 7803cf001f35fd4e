// Contractions, windows, reductions, rows and scans as iteration spaces with a stage per reduction.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr std::array<std::string_view, 3> kSpatial = {"z", "y", "x"};

// Attribute list of one number per spatial dimension.
std::int64_t spatial(const Node& node, std::string_view name, std::size_t i, std::int64_t fallback) {
  const Ints list = node.get_or<Ints>(name, {});
  return list.empty() ? fallback : list.at(i);
}

std::vector<int> indices_from(std::size_t first, std::size_t count) {
  std::vector<int> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(static_cast<int>(first + i));
  return list;
}

std::vector<int> all_reductions(const KernelBuilder& b) { return indices_from(0, b.kernel.reduction.size()); }

Ints reduced_axes(const Node& node) {
  if (node.has("axes")) return node.get<Ints>("axes");
  return {node.get<std::int64_t>("axis")};
}

// Whether a window may have no tap in the data along an axis.
bool may_lie_in_padding(const Node& node, std::size_t i, std::int64_t taps) {
  const std::size_t rank = node.get<Ints>("kernel").size();
  const std::int64_t before = spatial(node, "pads", i, 0), after = spatial(node, "pads", i + rank, 0);
  return (before > 0 || after > 0) && (spatial(node, "dilations", i, 1) > 1 || before >= taps || after >= taps);
}

}  // namespace

std::string spatial_name(std::size_t i, std::size_t rank) { return std::string(kSpatial.at(i + 3 - rank)); }

Expr window_position(const Node& node, std::size_t i, const Expr& o, const Expr& k, const Expr& extent,
                     std::vector<Expr>& guard) {
  const Expr at =
      o * Expr(spatial(node, "strides", i, 1)) + k * Expr(spatial(node, "dilations", i, 1)) - Expr(spatial(node, "pads", i, 0));
  add_condition(guard, at);
  add_condition(guard, extent - 1 - at);
  return at;
}

int add_stage(KernelBuilder& b, Stage::Combine combine, NodeId body, DType accumulator) {
  Stage stage;
  stage.combine = combine;
  stage.axes = all_reductions(b);
  stage.body = body;
  stage.accumulator = computed_as(accumulator);
  b.kernel.stages.push_back(std::move(stage));
  return static_cast<int>(b.kernel.stages.size()) - 1;
}

// What a pass made of a product or convolution.
StrategyId asked_of(const Node& node, const char* usual) {
  const auto asked = strategy_named(node.get_or<std::string>("strategy", usual));
  OCLC_CHECK(asked, "a strategy without a name in the table");
  return *asked;
}

void lower_matmul(KernelBuilder& b, const Node& node) {
  const Value *left = node.inputs[0], *right = node.inputs[1], *result = node.output();
  const bool trans_a = node.get_or<std::int64_t>("trans_a", 0) != 0, trans_b = node.get_or<std::int64_t>("trans_b", 0) != 0;
  const Shape &sa = left->type.shape, &sb = right->type.shape, &shape = result->type.shape;
  const std::size_t batch = shape.size() - 2;
  bool right_has_batch = false;
  for (std::size_t i = 0; i + 2 < sb.size(); ++i) right_has_batch = right_has_batch || sb[i] != Expr(1);
  Contraction c;
  c.asked = asked_of(node, "gemm");
  c.integers = node.get_or<std::int64_t>("integers", 0) != 0;
  std::vector<Expr> coords;
  for (std::size_t i = 0; i < batch; ++i) {
    (right_has_batch ? c.batch : c.m).push_back(static_cast<int>(i));
    coords.push_back(b.add_axis(fmt::format("batch{}", i), shape[i]));
  }
  c.m.push_back(static_cast<int>(batch));
  c.n.push_back(static_cast<int>(batch) + 1);
  const Expr m = b.add_axis("out_row", shape[batch]), n = b.add_axis("out_col", shape[batch + 1]);
  const Expr k = b.add_reduction("inner", sa[sa.size() - (trans_a ? 2 : 1)]);
  c.k = {0};
  const auto operand_coords = [&](const Shape& s, const Expr& first, const Expr& second) {
    std::vector<Expr> full = coords;
    full.push_back(first);
    full.push_back(second);
    return broadcast_coords(full, s);
  };
  c.a = b.element(left, trans_a ? operand_coords(sa, k, m) : operand_coords(sa, m, k));
  c.b = b.element(right, trans_b ? operand_coords(sb, n, k) : operand_coords(sb, k, n));
  const int stage = add_stage(b, Stage::Combine::sum, b.apply("mul", {c.a, c.b}), result->type.dtype);
  b.kernel.contraction = std::move(c);
  coords.push_back(m);
  coords.push_back(n);
  b.bind(result, coords, b.reduced(stage, result->type.dtype));
}

// A depthwise convolution whose points are positions of planes.
void lower_conv_planes(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *w = node.inputs[1], *result = node.output();
  const Shape &sx = x->type.shape, &sw = w->type.shape, &shape = result->type.shape;
  const Expr features = floor_div(sw[0], Expr(node.get<std::int64_t>("group")));
  std::vector<Expr> coords(4), xc(4), wc(4), guard;
  coords[0] = b.add_axis("image", shape[0]);
  coords[1] = b.add_axis("channel", shape[1]);
  xc[0] = coords[0];
  xc[1] = floor_div(coords[1], features);
  wc[0] = coords[1];
  wc[1] = Expr(0);
  for (std::size_t i = 0; i < 2; ++i) {
    coords[i + 2] = b.add_axis("out_" + spatial_name(i, 2), shape[i + 2]);
    wc[i + 2] = b.add_reduction("tap_" + spatial_name(i, 2), sw[i + 2]);
    xc[i + 2] = window_position(node, i, coords[i + 2], wc[i + 2], sx[i + 2], guard);
  }
  const NodeId a = b.guarded(b.element(x, xc, guard), {}, guard, 0);
  const DType dtype = result->type.dtype;
  NodeId value = b.reduced(add_stage(b, Stage::Combine::sum, b.apply("mul", {a, b.element(w, wc)}), dtype), dtype);
  if (node.inputs.size() > 2 && node.inputs[2]) value = b.apply("add", {value, b.element(node.inputs[2], {coords[1]})});
  b.bind(result, coords, value);
}

void lower_conv(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *w = node.inputs[1], *result = node.output();
  const Shape &sx = x->type.shape, &sw = w->type.shape, &shape = result->type.shape;
  const std::size_t spatial_rank = shape.size() - 2;
  const Expr groups(node.get_or<std::int64_t>("group", 1));
  const Expr in_group = sw[1], out_group = floor_div(sw[0], groups);
  const auto strategy = node.get_or<std::string>("strategy", "conv_implicit");
  if (strategy == "conv_planes") return lower_conv_planes(b, node);
  if (strategy == "conv_direct" || (in_group == Expr(1) && groups != Expr(1))) return lower_conv_direct(b, node);
  std::vector<Expr> coords(shape.size());
  coords[0] = b.add_axis("image", shape[0]);
  const bool grouped = groups != Expr(1);
  const Expr g = grouped ? b.add_axis("group", groups) : Expr(0);
  for (std::size_t i = 0; i < spatial_rank; ++i)
    coords[i + 2] = b.add_axis("out_" + spatial_name(i, spatial_rank), shape[i + 2]);
  const Expr o = b.add_axis("out_c", grouped ? out_group : shape[1]);
  coords[1] = grouped ? g * out_group + o : o;

  std::vector<Expr> xc(sx.size()), wc(sw.size()), guard;
  xc[0] = coords[0];
  wc[0] = coords[1];
  for (std::size_t i = 0; i < spatial_rank; ++i) {
    const Expr k = b.add_reduction("tap_" + spatial_name(i, spatial_rank), sw[i + 2]);
    wc[i + 2] = k;
    xc[i + 2] = window_position(node, i, coords[i + 2], k, sx[i + 2], guard);
  }
  const Expr c = b.add_reduction("in_c", in_group);
  wc[1] = c;
  xc[1] = g * in_group + c;
  const NodeId a = b.guarded(b.element(x, xc, guard), {}, guard, 0);
  const NodeId weight = b.element(w, wc);
  const DType dtype = result->type.dtype;
  const int stage = add_stage(b, Stage::Combine::sum, b.apply("mul", {a, weight}), dtype);
  Contraction contraction;
  contraction.asked = asked_of(node, "conv_implicit");
  contraction.integers = node.get_or<std::int64_t>("integers", 0) != 0;
  contraction.a = a;
  contraction.b = weight;
  if (grouped) contraction.batch = {1};
  contraction.m = {0};
  for (std::size_t i = 0; i < spatial_rank; ++i) contraction.m.push_back(static_cast<int>(i + (grouped ? 2 : 1)));
  contraction.n = {static_cast<int>(b.kernel.axes.size()) - 1};
  contraction.k = all_reductions(b);
  b.kernel.contraction = std::move(contraction);
  NodeId value = b.reduced(stage, dtype);
  if (node.inputs.size() > 2 && node.inputs[2]) value = b.apply("add", {value, b.element(node.inputs[2], {coords[1]})});
  b.bind(result, coords, value);
}

void lower_pool(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Shape &sx = x->type.shape, &shape = result->type.shape;
  const std::size_t spatial_rank = shape.size() - 2;
  const auto& window = node.get<Ints>("kernel");
  const bool is_max = node.op->name == "max_pool";
  std::vector<Expr> coords(shape.size()), xc(sx.size()), guard;
  const bool planes = node.get_or<std::string>("strategy", "") == "planes";
  coords[0] = b.add_axis("image", shape[0]);
  if (planes) coords[1] = b.add_axis("channel", shape[1]);
  for (std::size_t i = 0; i < spatial_rank; ++i)
    coords[i + 2] = b.add_axis("out_" + spatial_name(i, spatial_rank), shape[i + 2]);
  if (!planes) coords[1] = b.add_axis("channel", shape[1]);
  xc[0] = coords[0];
  xc[1] = coords[1];
  Expr count(1);
  bool is_never_0 = true;
  const bool count_pads = node.get_or<std::int64_t>("count_include_pad", 0) != 0;
  for (std::size_t i = 0; i < spatial_rank; ++i) {
    const Expr k = b.add_reduction("tap_" + spatial_name(i, spatial_rank), Expr(window[i]));
    xc[i + 2] = window_position(node, i, coords[i + 2], k, sx[i + 2], guard);
    // Taps of this output that lie in the input, or in the padded input.
    const Expr stride(spatial(node, "strides", i, 1)), dilation(spatial(node, "dilations", i, 1)),
        before(spatial(node, "pads", i, 0));
    const Expr first = coords[i + 2] * stride - before;
    const Expr low = count_pads ? Expr(0) : oclc::max(Expr(0), ceil_div(-first, dilation));
    const Expr limit = count_pads ? sx[i + 2] + Expr(spatial(node, "pads", i + spatial_rank, 0)) : sx[i + 2];
    const Expr high = min(Expr(window[i]), ceil_div(limit - first, dilation));
    const bool may_be_none = !count_pads && may_lie_in_padding(node, i, window[i]);
    count *= may_be_none ? oclc::max(high - low, Expr(0)) : high - low;
    is_never_0 = is_never_0 && !may_be_none;
  }
  if (!is_never_0) count = oclc::max(count, Expr(1));  // the mean of nothing is 0
  const DType dtype = result->type.dtype;
  const double lowest = is_float(dtype)      ? -std::numeric_limits<double>::infinity()
                        : dtype == DType::u8 ? 0.0
                        : dtype == DType::i8 ? -128.0
                                             : -2147483648.0;
  const NodeId element = b.guarded(b.element(x, xc, guard), {}, guard, is_max ? lowest : 0.0);
  const int stage = add_stage(b, is_max ? Stage::Combine::max : Stage::Combine::sum, element, dtype);
  NodeId value = b.reduced(stage, dtype);
  if (!is_max) value = b.apply("div", {value, b.cast(b.index(count, DType::i64), dtype)});
  b.bind(result, coords, value);
}

void lower_reduction(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Shape& sx = x->type.shape;
  const Ints axes = reduced_axes(node);
  const bool keep = node.get_or<std::int64_t>("keepdims", 1) != 0;
  std::vector<Expr> xc(sx.size()), coords;
  Expr count(1), position(0);
  for (std::size_t i = 0; i < sx.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end()) {
      xc[i] = b.add_axis(fmt::format("i{}", i), sx[i]);
      coords.push_back(xc[i]);
      continue;
    }
    xc[i] = b.add_reduction(fmt::format("r{}", i), sx[i]);
    position = xc[i];
    count *= sx[i];
    if (keep) coords.emplace_back(0);
  }
  b.row_coords = xc;
  const std::string_view name = node.op->name;
  const bool arg = name == "argmax" || name == "argmin";
  const bool last = node.get_or<std::int64_t>("select_last", 0) != 0;
  const DType dtype = result->type.dtype;
  // A mean of integers is their true sum, divided.
  const bool wide_mean = name == "reduce_mean" && is_integer(dtype) && dtype != DType::u64;
  const NodeId element = wide_mean ? b.cast(b.element(x, xc), DType::i64) : b.element(x, xc);
  const Stage::Combine combine = name == "reduce_max"    ? Stage::Combine::max
                                 : name == "reduce_min"  ? Stage::Combine::min
                                 : name == "reduce_prod" ? Stage::Combine::product
                                 : name == "argmax"      ? (last ? Stage::Combine::argmax_last : Stage::Combine::argmax_first)
                                 : name == "argmin"      ? (last ? Stage::Combine::argmin_last : Stage::Combine::argmin_first)
                                                         : Stage::Combine::sum;
  OCLC_CHECK(combine != Stage::Combine::sum || name == "reduce_sum" || name == "reduce_mean", "reduction " + std::string(name));
  const DType accumulator = arg ? x->type.dtype : wide_mean ? DType::i64 : dtype;
  const int stage = add_stage(b, combine, element, accumulator);
  if (arg) b.kernel.stages.back().arg_index = b.index(position, DType::i64);
  NodeId value = b.reduced(stage, arg ? DType::i64 : accumulator);
  if (name == "reduce_mean") value = b.apply("div", {value, b.cast(b.index(count, DType::i64), accumulator)});
  b.bind(result, coords, b.cast(value, dtype));
}

void lower_row(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Shape& sx = x->type.shape;
  const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  const std::string_view name = node.op->name;
  const bool softmax = name == "softmax" || name == "log_softmax";
  std::vector<Expr> coords(sx.size()), parameter_coords;
  Expr count(1);
  for (std::size_t i = 0; i < sx.size(); ++i) {
    const bool in_row = softmax ? i == axis : i >= axis;
    coords[i] = in_row ? b.add_reduction(fmt::format("r{}", i), sx[i]) : b.add_axis(fmt::format("i{}", i), sx[i]);
    if (in_row) {
      count *= sx[i];
      parameter_coords.push_back(coords[i]);
    }
  }
  const DType dtype = result->type.dtype;
  const NodeId element = b.element(x, coords);
  const auto parameter = [&](const Value* v) { return b.element(v, broadcast_coords(parameter_coords, v->type.shape)); };
  NodeId value = -1;
  if (softmax) {
    const NodeId largest = b.reduced(add_stage(b, Stage::Combine::max, element, dtype), dtype);
    const NodeId shifted = b.apply("sub", {element, largest});
    const NodeId power = b.apply("exp", {shifted});
    const NodeId sum = b.reduced(add_stage(b, Stage::Combine::sum, power, dtype), dtype);
    value = name == "softmax" ? b.apply("mul", {power, b.apply("reciprocal", {sum})})
                              : b.apply("sub", {shifted, b.apply("log", {sum})});
  } else {
    const NodeId n = b.cast(b.index(count, DType::i64), dtype);
    const NodeId epsilon = b.number(dtype, node.get<double>("epsilon"));
    NodeId centred = element;
    if (name == "layer_norm") {
      const NodeId mean = b.apply("div", {b.reduced(add_stage(b, Stage::Combine::sum, element, dtype), dtype), n});
      centred = b.apply("sub", {element, mean});
    } else {
      OCLC_CHECK(name == "rms_norm", "row operator " + std::string(name));
    }
    const NodeId squares = b.reduced(add_stage(b, Stage::Combine::sum, b.apply("mul", {centred, centred}), dtype), dtype);
    const NodeId scale = b.apply("rsqrt", {b.apply("add", {b.apply("div", {squares, n}), epsilon})});
    value = b.apply("mul", {centred, scale});
    if (node.inputs.size() > 1 && node.inputs[1]) value = b.apply("mul", {value, parameter(node.inputs[1])});
    if (node.inputs.size() > 2 && node.inputs[2]) value = b.apply("add", {value, parameter(node.inputs[2])});
  }
  b.bind(result, coords, value);
}

void lower_cumsum(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Shape& sx = x->type.shape;
  const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  const bool exclusive = node.get_or<std::int64_t>("exclusive", 0) != 0, reverse = node.get_or<std::int64_t>("reverse", 0) != 0;
  // The prefix sum as a guarded sum over the whole axis: quadratic in its length, parallel in its elements.
  std::vector<Expr> coords(sx.size());
  for (std::size_t i = 0; i < sx.size(); ++i) coords[i] = b.add_axis(fmt::format("i{}", i), sx[i]);
  std::vector<Expr> xc = coords, guard;
  xc[axis] = b.add_reduction("prefix", sx[axis]);
  add_condition(guard, (reverse ? xc[axis] - coords[axis] : coords[axis] - xc[axis]) - Expr(exclusive ? 1 : 0));
  const DType dtype = result->type.dtype;
  const NodeId element = b.guarded(b.element(x, xc, guard), {}, guard, 0);
  b.bind(result, coords, b.reduced(add_stage(b, Stage::Combine::sum, element, dtype), dtype));
}

}  // namespace oclc
