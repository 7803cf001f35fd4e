// Reductions, whose axes are an operand from opset 18 on and which opset 20 lets order booleans.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

using Fold = double (*)(const std::vector<double>&);

// The elements of x over which element `i` of the result is reduced.
std::vector<double> over(const HostTensor& x, const std::vector<bool>& axes, const Dims& kept, std::int64_t i) {
  std::vector<double> all;
  const Dims at = unflat(i, kept);
  for (std::int64_t k = 0; k < x.elements(); ++k) {
    const Dims index = unflat(k, x.shape());
    bool same = true;
    for (std::size_t axis = 0; axis < index.size(); ++axis) same = same && (axes[axis] || index[axis] == at[axis]);
    if (same) all.push_back(x.at(k));
  }
  return all;
}

void reduction(Sheet& s, const char* op, Fold fold, const HostTensor& x, const Dims& axes, bool keeps, bool noop,
               bool awkward) {
  std::vector<bool> reduced(x.shape().size(), axes.empty() && !noop);
  const auto rank = static_cast<std::int64_t>(x.shape().size());
  for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>((axis + rank) % rank)] = true;
  Dims kept, shape;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    kept.push_back(reduced[i] ? 1 : x.shape()[i]);
    if (keeps || !reduced[i]) shape.push_back(kept.back());
  }
  NodeProto& node = s.use(op, {s.input(x), s.known_ints(axes)}, awkward);
  if (!keeps) set_int(node, "keepdims", 0);
  if (noop) set_int(node, "noop_with_empty_axes", 1);
  s.gives(x.dtype(), shape, [=](std::int64_t i) { return fold(over(x, reduced, kept, i)); });
}

template <class F>
double sum(const std::vector<double>& all, F&& f) {
  double total = 0;
  for (const double v : all) total += f(v);
  return total;
}

const auto kSame = [](double v) { return v; };

}  // namespace

void reduction_uses(Sheet& s) {
  struct Row {
    const char* op;
    Fold fold;
    bool transforms = false;  // one element too: nothing to reduce gives what `fold` makes of each
  };
  const Row rows[] = {
      {"ReduceL1", [](const std::vector<double>& x) { return sum(x, [](double v) { return std::fabs(v); }); }, true},
      {"ReduceL2", [](const std::vector<double>& x) { return std::sqrt(sum(x, [](double v) { return v * v; })); }, true},
      {"ReduceLogSum", [](const std::vector<double>& x) { return std::log(sum(x, kSame)); }, true},
      {"ReduceLogSumExp", [](const std::vector<double>& x) { return std::log(sum(x, [](double v) { return std::exp(v); })); },
       true},
      {"ReduceMax", [](const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }},
      {"ReduceMean", [](const std::vector<double>& x) { return sum(x, kSame) / static_cast<double>(x.size()); }},
      {"ReduceMin", [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }},
      {"ReduceProd",
       [](const std::vector<double>& x) {
         double product = 1;
         for (const double v : x) product *= v;
         return product;
       }},
      {"ReduceSumSquare", [](const std::vector<double>& x) { return sum(x, [](double v) { return v * v; }); }, true}};
  if (s.opset == 18) {
    const auto positive = [](DType dtype, Dims shape, int seed) {
      HostTensor x = noise(dtype, std::move(shape), seed);
      for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, x.at(i) + 2);
      return x;
    };
    for (const Row& row : rows) {
      reduction(s, row.op, row.fold, positive(DType::f32, {3, 5, 2}, 1), {-2}, true, false, false);
      reduction(s, row.op, row.fold, positive(DType::f32, {2, 3, 4}, 2), {}, true, false, false);
      reduction(s, row.op, row.fold, positive(DType::f32, {1, 7, 1, 3}, 3), {0, -1}, false, false, true);
      reduction(s, row.op, row.fold, positive(DType::f16, {11}, 4), {0}, false, false, true);
      if (!row.transforms) reduction(s, row.op, row.fold, positive(DType::f32, {2, 3}, 5), {}, true, true, false);
    }
  }
  if (s.opset == 20) {
    const HostTensor x = listed(DType::boolean, {4, 3}, {0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0});
    for (const Row& row : {rows[4], rows[6]}) {
      reduction(s, row.op, row.fold, x, {1}, false, false, false);
      reduction(s, row.op, row.fold, x, {}, true, false, false);
      reduction(s, row.op, row.fold, listed(DType::boolean, {1, 5, 1}, {1, 0, 1, 1, 0}), {-1, 0}, true, false, true);
    }
  }
}

}  // namespace oclc::test
