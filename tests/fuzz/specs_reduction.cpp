// Reductions, running sums, reads and writes at positions, orders.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

// Reductions of nothing are left open for some operators.
Dims some(Draft& d, std::size_t least_rank, std::size_t most_rank = 4) {
  Dims shape = d.shape(least_rank, most_rank);
  for (std::int64_t& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  return shape;
}

void reduce(Draft& d) {
  const std::string& op = d.node.op_type();
  const bool sums = op == "ReduceSum" || op == "ReduceL1" || op == "ReduceSumSquare",
             picks = op == "ReduceMax" || op == "ReduceMin";
  const Dims shape = sums || op == "ReduceProd" ? d.shape() : some(d, 0);
  d.effect = picks ? Effect::moves : sums ? Effect::ring : Effect::smooth;
  DType dtype = d.floats();
  if (d.r.chance(0.3) && (sums || picks || op == "ReduceProd"))
    dtype = d.type({DType::i32, DType::i64, DType::u32, DType::u64});
  if (picks && d.opset >= 13 && d.r.chance(0.15)) dtype = d.type({DType::i8, DType::u8});
  if (picks && d.opset >= 20 && d.r.chance(0.15)) dtype = DType::boolean;
  Range range{-2, 2};
  if (op == "ReduceLogSum") range = {0.2, 3, true};
  if (op == "ReduceL2") range = {0.5, 3, true};
  if (op == "ReduceProd") range = {is_float(dtype) ? 0.7 : -2, is_float(dtype) ? 1.4 : 2, true};
  range.odd = picks && d.r.chance(0.3);
  d.tolerance = op == "ReduceProd" ? 8 : 2;
  d.scale = sums || op == "ReduceMean" ? 8 : 0;
  d.input(dtype, shape, range);
  const bool by_input = d.opset >= (op == "ReduceSum" ? 13 : 18);
  if (d.r.chance(0.75) && !shape.empty()) {
    Dims axes = d.some_axes(shape.size(), 1);
    for (auto& axis : axes) axis = d.opset >= 11 ? d.spelled(axis, shape.size()) : axis;
    if (d.opset < 11) std::sort(axes.begin(), axes.end());
    if (by_input)
      d.known_ints(axes);
    else
      d.set("axes", axes);
  } else if (by_input && d.r.chance(0.3)) {
    d.known_ints({});
  }
  if (by_input && d.r.chance(0.2)) d.set("noop_with_empty_axes", 1);
  if (d.r.chance(0.6)) d.set("keepdims", d.r.chance(0.5));
}

void arg(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = some(d, 1);
  d.input(d.numbers(), shape, {-3, 3, false, d.r.chance(0.3)});
  const auto axis = d.axis(shape.size());
  if (axis != 0 || d.r.chance(0.5)) d.set("axis", d.opset >= 11 ? d.spelled(axis, shape.size()) : axis);
  if (d.r.chance(0.5)) d.set("keepdims", d.r.chance(0.5));
  if (d.opset >= 12 && d.r.chance(0.5)) d.set("select_last_index", d.r.chance(0.5));
}

void cumsum(Draft& d) {
  d.effect = Effect::ring;
  d.scale = 8;
  const Dims shape = d.shape(1);
  d.input(d.type({DType::f32, DType::f64, DType::i32, DType::i64}), shape);
  d.known_int(d.spelled(d.axis(shape.size()), shape.size()));
  if (d.r.chance(0.5)) d.set("exclusive", d.r.chance(0.5));
  if (d.r.chance(0.5)) d.set("reverse", d.r.chance(0.5));
}

void gather(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 1);
  const auto axis = d.axis(shape.size());
  d.input(d.any(), shape);
  d.indices(d.index_type(), d.shape(0, 2), shape[static_cast<std::size_t>(axis)], d.opset >= 11);
  if (axis != 0 || d.r.chance(0.5)) d.set("axis", d.opset >= 11 ? d.spelled(axis, shape.size()) : axis);
}

void gather_elements(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 1);
  const auto axis = d.axis(shape.size());
  Dims at = shape;
  for (auto& dim : at) dim = d.r.integer(1, dim);
  at[static_cast<std::size_t>(axis)] = d.size();
  d.input(d.any(), shape);
  d.indices(d.index_type(), at, shape[static_cast<std::size_t>(axis)]);
  if (axis != 0 || d.r.chance(0.5)) d.set("axis", d.spelled(axis, shape.size()));
  d.symbolic = false;
}

// Index tuples [rows.., depth] into shape[first..].
HostTensor tuples(Draft& d, const Dims& rows, const Dims& shape, std::size_t first, std::size_t depth) {
  Dims dims = rows;
  dims.push_back(static_cast<std::int64_t>(depth));
  HostTensor at(DType::i64, dims);
  for (std::int64_t i = 0; i < at.elements(); ++i) {
    const std::int64_t n = shape[first + static_cast<std::size_t>(i) % depth];
    at.set_int(i, d.r.integer(-n, n - 1));
  }
  return at;
}

void gather_nd(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 1);
  const std::size_t batch = d.opset >= 12 && shape.size() > 1 && d.r.chance(0.4) ? 1 : 0;
  const auto depth = static_cast<std::size_t>(d.r.integer(1, static_cast<std::int64_t>(shape.size() - batch)));
  Dims rows(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batch));
  rows.push_back(d.r.integer(1, 5));
  d.input(d.any(), shape);
  d.known(tuples(d, rows, shape, batch, depth));
  d.operands.back().known = d.r.chance(0.3);
  if (batch > 0) d.set("batch_dims", 1);
  d.symbolic = false;
}

void scatter_elements(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 1, 3);
  const auto axis = static_cast<std::size_t>(d.axis(shape.size()));
  Dims at = shape;
  for (auto& dim : at) dim = d.r.integer(1, dim);
  std::string reduction = "none";
  if (d.opset >= 16 && d.r.chance(0.5))
    reduction = d.opset >= 18 ? d.r.pick({"add", "mul", "max", "min"}) : d.r.pick({"add", "mul"});
  if (reduction == "add" || reduction == "mul") d.effect = Effect::ring;
  const DType dtype = reduction == "none" ? d.any() : d.numbers();
  d.tolerance = 4;
  d.input(dtype, shape);
  // Without a reduction each element is written at most once.
  HostTensor positions(DType::i64, at);
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < at.size(); ++i) inner *= at[i];
  const std::int64_t shift = d.r.integer(0, shape[axis] - 1);
  for (std::int64_t i = 0; i < positions.elements(); ++i) {
    std::int64_t p = (i / inner % at[axis] + shift) % shape[axis];
    if (reduction != "none") p = d.r.integer(0, shape[axis] - 1);
    if (d.opset >= 11 && d.r.chance(0.3)) p -= shape[axis];
    positions.set_int(i, p);
  }
  d.known(std::move(positions));
  d.operands.back().known = d.r.chance(0.3);
  d.input(dtype, at);
  if (axis != 0 || d.r.chance(0.5))
    d.set("axis", d.opset >= 11 ? d.spelled(static_cast<std::int64_t>(axis), shape.size()) : static_cast<std::int64_t>(axis));
  if (reduction != "none") d.set("reduction", reduction);
  d.symbolic = false;
}

void scatter_nd(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 1, 3);
  const auto depth = static_cast<std::size_t>(d.r.integer(1, static_cast<std::int64_t>(shape.size())));
  std::string reduction = "none";
  if (d.opset >= 16 && d.r.chance(0.6))
    reduction = d.opset >= 18 ? d.r.pick({"add", "mul", "max", "min"}) : d.r.pick({"add", "mul"});
  if (reduction == "add" || reduction == "mul") d.effect = Effect::ring;
  const std::int64_t rows = reduction == "none" ? 1 : d.r.integer(1, 5);
  const DType dtype = reduction == "none" ? d.any() : d.numbers();
  d.tolerance = 4;
  d.input(dtype, shape);
  d.known(tuples(d, {rows}, shape, 0, depth));
  d.operands.back().known = d.r.chance(0.3);
  Dims updates{rows};
  updates.insert(updates.end(), shape.begin() + static_cast<std::ptrdiff_t>(depth), shape.end());
  d.input(dtype, updates);
  if (reduction != "none") d.set("reduction", reduction);
  d.symbolic = false;
}

void one_hot(Draft& d) {
  d.effect = Effect::decides;
  const std::int64_t depth = d.r.integer(1, 7);
  const DType dtype = d.numbers(), at = d.type({DType::i64, DType::i32});
  const Dims shape = d.shape(0, 3);
  d.input(at, shape, {static_cast<double>(d.opset >= 11 ? -depth : 0), static_cast<double>(depth - 1), true});
  d.known_int(depth);
  d.input(dtype, {2});
  if (d.r.chance(0.7)) d.set("axis", d.spelled(d.axis(shape.size() + 1), shape.size() + 1));
}

void top(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = some(d, 1);
  const auto axis = d.axis(shape.size());
  d.input(d.opset >= 11 ? d.numbers() : d.floats(), shape, {-3, 3});
  const std::int64_t k = d.r.integer(0, 9) == 0 ? 0 : d.r.integer(1, shape[static_cast<std::size_t>(axis)]);
  if (d.opset >= 10)
    d.known_ints({k});
  else
    d.set("k", k);
  d.set("axis", d.opset >= 11 ? d.spelled(axis, shape.size()) : axis);
  if (d.opset >= 11 && d.r.chance(0.5)) d.set("largest", d.r.chance(0.5));
  d.outputs = 2;
  d.symbolic = false;
}

void reverse_sequence(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = some(d, 2);
  const bool batch_first = d.r.chance(0.5);
  d.input(d.any(), shape);
  d.input(DType::i64, {shape[batch_first ? 0 : 1]}, {1, static_cast<double>(shape[batch_first ? 1 : 0]), true});
  if (batch_first) {
    d.set("batch_axis", 0);
    d.set("time_axis", 1);
  }
}

void compress(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = some(d, 1);
  const bool flat = d.r.chance(0.4);
  const auto axis = d.axis(shape.size());
  d.input(d.any(), shape);
  std::int64_t length = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  if (!flat) length = shape[static_cast<std::size_t>(axis)];
  d.input(DType::boolean, {d.r.chance(0.3) ? d.r.integer(1, length) : length});
  if (!flat) d.set("axis", d.opset >= 11 ? d.spelled(axis, shape.size()) : axis);
}

void non_zero(Draft& d) {
  d.effect = Effect::decides;
  d.input(d.any(), some(d, 1));
}

void unique(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = some(d, 1, 3);
  d.input(d.numbers(), shape, {0, 2});
  if (d.r.chance(0.6)) d.set("axis", d.spelled(d.axis(shape.size()), shape.size()));
  if (d.r.chance(0.5)) d.set("sorted", d.r.chance(0.5));
  d.outputs = static_cast<int>(d.r.integer(1, 4));
}

constexpr Spec kReductionSpecs[] = {
    {"ReduceL1", 1, 23, reduce},
    {"ReduceL2", 1, 23, reduce},
    {"ReduceLogSum", 1, 23, reduce},
    {"ReduceLogSumExp", 1, 23, reduce},
    {"ReduceMax", 1, 23, reduce},
    {"ReduceMean", 1, 23, reduce},
    {"ReduceMin", 1, 23, reduce},
    {"ReduceProd", 1, 23, reduce},
    {"ReduceSum", 1, 23, reduce},
    {"ReduceSumSquare", 1, 23, reduce},
    {"ArgMax", 1, 23, arg},
    {"ArgMin", 1, 23, arg},
    {"CumSum", 11, 23, cumsum},
    {"Gather", 1, 23, gather},
    {"GatherElements", 11, 23, gather_elements},
    {"GatherND", 11, 23, gather_nd},
    {"Scatter", 9, 10, scatter_elements},
    {"ScatterElements", 11, 23, scatter_elements},
    {"ScatterND", 11, 23, scatter_nd},
    {"OneHot", 9, 23, one_hot},
    {"TopK", 1, 23, top},
    {"ReverseSequence", 10, 23, reverse_sequence},
    {"Compress", 9, 23, compress, false},
    {"NonZero", 9, 23, non_zero, false},
    {"Unique", 11, 23, unique, false},
};

}  // namespace

std::span<const Spec> reduction_specs() { return kReductionSpecs; }

}  // namespace oclc::fuzz
