// Gradients of movement and indexing.
#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

// One slice of each axis, in unit steps.
Value* cut(Builder& b, Value* v, Exprs starts, const Shape& sizes) {
  return b.slice(v, std::move(starts), sizes, Ints(sizes.size(), 1));
}

// step - 1 zeros after each element along the axis.
Value* spread(Builder& b, Value* v, std::size_t axis, std::int64_t step) {
  Shape shape = v->type.shape;
  Exprs before(shape.size() + 1, Expr(0)), after = before;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Expr(1));
  after[axis + 1] = step - 1;
  v = b.pad(b.reshape(v, shape), std::move(before), std::move(after));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  shape[axis] *= Expr(step);
  return b.reshape(v, shape);
}

std::size_t axis_of(const Node& node) { return static_cast<std::size_t>(node.get<std::int64_t>("axis")); }

Value* scatter(Builder& b, Value* indices, Value* updates, std::size_t axis, const Expr& size) {
  return b.call("scatter_add", {indices, updates}, {{"axis", static_cast<std::int64_t>(axis)}, {"size", Exprs{size}}});
}

}  // namespace

std::vector<Value*> reshape_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  return {b.reshape(gradients[0], node.inputs[0]->type.shape)};
}

std::vector<Value*> transpose_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  const Ints& perm = node.get<Ints>("perm");
  Ints inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return {b.transpose(gradients[0], std::move(inverse))};
}

std::vector<Value*> expand_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  return {sum_to(b, gradients[0], node.inputs[0]->type.shape)};
}

// The elements go back to their places among zeros: flipped, then spread, then padded.
std::vector<Value*> slice_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  const Shape& shape = node.inputs[0]->type.shape;
  Value* g = gradients[0];
  Exprs starts = node.get<Exprs>("starts");
  const Exprs& sizes = node.get<Exprs>("sizes");
  Ints steps = node.get<Ints>("steps"), signs(steps.size(), 1);
  Exprs flipped(steps.size(), Expr(0));
  bool flips = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (sizes[i] == Expr(0)) starts[i] = 0, steps[i] = 1;
    if (steps[i] >= 0) continue;
    starts[i] += (sizes[i] - 1) * Expr(steps[i]);
    flipped[i] = sizes[i] - 1;
    signs[i] = -1;
    steps[i] = -steps[i];
    flips = true;
  }
  if (flips) g = b.slice(g, std::move(flipped), sizes, std::move(signs));
  Exprs after(steps.size(), Expr(0));
  bool overhangs = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) no_gradient_for("a slice with steps other than 0");
    if (steps[i] > 1) g = spread(b, g, i, steps[i]);
    const Expr left = shape[i] - starts[i] - g->type.shape[i];
    after[i] = steps[i] == 1 ? left : max(left, Expr(0));
    overhangs = overhangs || !(after[i] == left);
  }
  g = b.pad(g, starts, std::move(after));
  return {overhangs ? cut(b, g, Exprs(steps.size(), Expr(0)), shape) : g};
}

std::vector<Value*> pad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  if (node.get<std::string>("mode") != "constant") no_gradient_for("padding with a constant");
  return {cut(b, gradients[0], node.get<Exprs>("before"), node.inputs[0]->type.shape)};
}

std::vector<Value*> concat_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  std::vector<Value*> result(node.inputs.size(), nullptr);
  if (!gradients[0]) return result;
  const std::size_t axis = axis_of(node);
  Exprs starts(gradients[0]->type.rank(), Expr(0));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Shape& shape = node.inputs[i]->type.shape;
    result[i] = cut(b, gradients[0], starts, shape);
    starts[axis] += shape[axis];
  }
  return result;
}

std::vector<Value*> gather_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  const std::size_t axis = axis_of(node);
  const Value* indices = node.inputs[1];
  const Shape& shape = node.inputs[0]->type.shape;
  Shape flat = shape;
  flat[axis] = indices->type.elements();
  Value* updates = b.reshape(gradients[0], flat);
  if (indices->content && indices->content->size() == 1 && indices->content->front().is_constant()) {
    const Expr index = indices->content->front();
    Exprs before(shape.size(), Expr(0)), after = before;
    before[axis] = index.value() < 0 ? shape[axis] + index : index;
    after[axis] = shape[axis] - 1 - before[axis];
    return {b.pad(updates, std::move(before), std::move(after)), nullptr};
  }
  return {scatter(b, b.reshape(node.inputs[1], {flat[axis]}), updates, axis, shape[axis]), nullptr};
}

std::vector<Value*> scatter_add_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  return {nullptr, b.gather(gradients[0], node.inputs[0], node.get<std::int64_t>("axis"))};
}

// Along `axis` a new axis of the data's positions is compared with the indices: arithmetic that fuses, without a scatter.
std::vector<Value*> gather_elements_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  const std::size_t axis = axis_of(node);
  const Shape& shape = node.inputs[0]->type.shape;
  const Shape& picked = node.inputs[1]->type.shape;
  Value* indices = compared_indices(b, positive_indices(b, node.inputs[1], shape[axis]), shape[axis]);
  Value* g = gradients[0];
  const auto along = static_cast<std::int64_t>(axis);
  Value* zero = b.scalar(g->type.dtype, 0);
  const auto one_hot = [&](const Shape& positions) {
    return b.where(b.call("equal", {b.iota(positions, along, indices->type.dtype), indices}), g, zero);
  };
  Value* result = nullptr;
  Shape covered = picked;
  covered[axis] = shape[axis];
  if (picked[axis] == Expr(1)) {
    result = one_hot(covered);
  } else {
    Shape column = picked, positions = covered;
    column.insert(column.begin() + along, Expr(1));
    positions.insert(positions.begin() + along + 1, Expr(1));
    indices = b.reshape(indices, column);
    g = b.reshape(g, column);
    result = b.reduce("reduce_sum", one_hot(positions), {along + 1}, false);
  }
  if (covered == shape) return {result, nullptr};
  Exprs after;
  for (std::size_t i = 0; i < shape.size(); ++i) after.push_back(shape[i] - covered[i]);
  return {b.pad(result, Exprs(shape.size(), Expr(0)), std::move(after)), nullptr};
}

// The tuples become positions in the flattened data: a scatter along one axis.
std::vector<Value*> gather_nd_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  const Shape& shape = node.inputs[0]->type.shape;
  const Shape& tuples = node.inputs[1]->type.shape;
  const auto batch = static_cast<std::size_t>(node.get<std::int64_t>("batch_dims"));
  const auto depth = static_cast<std::size_t>(tuples.back().value());
  const Expr batches = product(std::span(shape).first(batch));
  const Expr rows = product(std::span(tuples).subspan(batch, tuples.size() - 1 - batch));
  const DType dtype = node.inputs[1]->type.dtype;
  const auto last = static_cast<std::int64_t>(tuples.size()) - 1;
  Value* position = nullptr;
  Expr size = batches;
  for (std::size_t k = 0; k < depth; ++k) {
    const Expr& dim = shape[batch + k];
    Value* column = b.slice_axis(node.inputs[1], last, Expr(static_cast<std::int64_t>(k)), 1);
    column = positive_indices(b, b.reshape(column, {batches, rows}), dim);
    position = position ? b.add(b.mul(position, count_of(b, dim, dtype)), column) : column;
    size *= dim;
  }
  if (batch != 0) {
    const Expr stride = product(std::span(shape).subspan(batch, depth));
    position = b.add(position, b.iota({batches, 1}, 0, dtype, 0, stride));
  }
  const Expr slice = product(std::span(shape).subspan(batch + depth));
  Value* updates = b.reshape(gradients[0], {batches * rows, slice});
  return {b.reshape(scatter(b, b.reshape(position, {batches * rows}), updates, 0, size), shape), nullptr};
}

}  // namespace oclc
