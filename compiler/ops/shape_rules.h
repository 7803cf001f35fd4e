// Rules about shapes, shared by the operators and the front ends. All throw CompileError without node and operator.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

// "wanted ..., found ..."
[[noreturn]] void reject(std::string wanted, std::string found);

// numpy's rule: equal, or one of them the constant 1. Nothing if they do not fit: a symbol fits only itself and 1.
std::optional<Expr> broadcast_dim(const Expr& a, const Expr& b);
Shape broadcast(const Shape& a, const Shape& b);

// An axis in [-rank, rank) as one in [0, rank).
std::int64_t normalise_axis(std::int64_t axis, std::size_t rank);
// The same for a list; sorted, and no axis twice.
std::vector<std::int64_t> normalise_axes(const std::vector<std::int64_t>& axes, std::size_t rank);

// Positions of a window along one axis. With `ceil_mode` the last window may overhang the padding behind, but must start inside
// the data or the padding before it. A window that is `cut` overhangs padded data that are shorter than it, by less than a
// stride: it has one position there, as ONNX Runtime's pools have.
Expr window_positions(const Expr& size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t before,
                      std::int64_t after, bool ceil_mode, bool cut = false);

// Number of elements of x[start : stop : step] in Python's sense (negative positions count from the end, out of range positions
// are clamped) and its first index; `start` and `stop` may be symbolic if their signs are known. kSliceEnd stands for "to the
// end".
struct SliceRange {
  Expr start, size;
};
inline constexpr std::int64_t kSliceEnd = INT64_MAX;
SliceRange slice_range(const Expr& dim, const Expr& start, const Expr& stop, std::int64_t step);

// The input's type; CompileError if it is absent.
const TensorType& type_of_input(const Node& node, std::size_t index);
inline bool has_input(const Node& node, std::size_t index) {
  return index < node.inputs.size() && node.inputs[index] != nullptr;
}

// Of operators that compute nothing.
inline Cost no_cost(const Node&) { return {}; }

}  // namespace oclc
