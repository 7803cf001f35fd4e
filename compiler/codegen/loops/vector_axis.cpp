#include "compiler/codegen/loops/vector_axis.h"

#include <algorithm>

#include "compiler/codegen/text/scope.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

// Floats of a cache line: a block of a transposition uses up the lines that it reads.
constexpr std::int64_t kTransposeLanes = 16;
// Widest square that vectors transpose.
constexpr int kSquare = 8;
// A multiple of every vector's width; loops begin at multiples of it.
constexpr int kLanes = 16;
// Loads of a result that are worth vectors whose lanes are stored one by one.
constexpr std::ptrdiff_t kFewestLoads = 4;
// Fewer elements are not worth a vector, the narrowest of which has as many lanes.
constexpr int kFewestLanes = 4;

bool has_unit_stride(const Expr& index, const std::string& axis) { return index.coefficient(axis) == Expr(1); }

bool can_be_vector(const Kernel& kernel, const Axis& axis) {
  return typical(axis.extent) >= kFewestLanes && can_vectorize(kernel, axis.name, kLanes);
}

// Innermost parallel axis that `suits`, if one does.
template <class Suits>
std::optional<std::size_t> innermost(const Kernel& kernel, Suits suits) {
  for (std::size_t i = kernel.axes.size(); i-- > 0;) {
    if (suits(kernel.axes[i]) && can_be_vector(kernel, kernel.axes[i])) return i;
  }
  return std::nullopt;
}

bool over_last_reduction(const Kernel& kernel, const std::vector<int>& axes) {
  return std::find(axes.begin(), axes.end(), static_cast<int>(kernel.reduction.size()) - 1) != axes.end();
}

// Rows are written along the innermost reduction axis with unit stride, if any are.
bool stores_rows(const Kernel& kernel) {
  return std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) {
    return s.row_axes.empty() ||
           (over_last_reduction(kernel, s.row_axes) && has_unit_stride(s.index, kernel.reduction.back().name));
  });
}

// Lanes of a sum are combined by functions of float and int.
bool sums_in_lanes(const Kernel& kernel) {
  return std::all_of(kernel.stages.begin(), kernel.stages.end(), [&](const Stage& s) {
    return over_last_reduction(kernel, s.axes) && (s.accumulator == DType::f32 || s.accumulator == DType::i32);
  });
}

// An axis that loads run along, though results are stored one by one: few of them end long sums.
std::optional<std::size_t> scattered_axis(const Kernel& kernel) {
  if (!std::all_of(kernel.stages.begin(), kernel.stages.end(), [](const Stage& s) { return s.accumulator == DType::f32; }))
    return std::nullopt;
  return innermost(kernel, [&](const Axis& axis) {
    const bool loads = std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && has_unit_stride(n.index, axis.name);
    });
    return loads && std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) {
             const auto step = s.index.coefficient(axis.name);
             return step && *step != Expr(0) && s.row_axes.empty() &&
                    kernel.operands[static_cast<std::size_t>(s.operand)].dtype == DType::f32;
           });
  });
}

// Results are sums of several loads each, without a loop.
bool gathers(const Kernel& kernel) {
  const auto loads = std::count_if(kernel.nodes.begin(), kernel.nodes.end(),
                                   [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load; });
  return kernel.reduction.empty() && loads >= kFewestLoads * static_cast<std::ptrdiff_t>(kernel.stores.size());
}

VectorAxis lanes_of(const Kernel& kernel) {
  VectorAxis vector;
  if (kernel.stores.empty()) return vector;
  vector.parallel = innermost(kernel, [&](const Axis& axis) {
    return std::all_of(kernel.stores.begin(), kernel.stores.end(),
                       [&](const Store& s) { return has_unit_stride(s.index, axis.name); });
  });
  // Transforms and unrolled windows do much for an element that they scatter.
  if (!vector.parallel && (kernel.anchor == Anchor::winograd_output || gathers(kernel)))
    vector.parallel = scattered_axis(kernel);
  if (vector.parallel || kernel.reduction.empty() || !stores_rows(kernel)) return vector;
  // Rows are read and written with unit stride, sums end in one addition over lanes.
  vector.reduction = sums_in_lanes(kernel) && can_be_vector(kernel, kernel.reduction.back());
  if (!vector.reduction) vector.parallel = scattered_axis(kernel);
  return vector;
}

}  // namespace

VectorAxis choose_vector_axis(Kernel& kernel, const Target& target) {
  VectorAxis vector;
  if (target.vector_width > 1) vector = lanes_of(kernel);
  vector.width = target.vector_width;
  if (!vector.parallel && block_transpose(kernel, kTransposeLanes, true)) {
    vector.parallel = kernel.axes.size() - 1;
    vector.width = 1;
    vector.transposed = transposed_load(kernel, std::min(target.vector_width, kSquare));
    if (vector.transposed) vector.parallel = kernel.axes.size() - 1;
  }
  return vector;
}

}  // namespace oclc
