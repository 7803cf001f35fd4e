// Reads at positions given by a tensor. Negative positions count from the end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

const TensorType& index_type(const Node& node) {
  const TensorType& indices = type_of_input(node, 1);
  if (indices.dtype != DType::i32 && indices.dtype != DType::i64) reject("indices of i32 or i64", indices.text());
  return indices;
}

std::size_t checked_axis(const Node& node, std::size_t rank) {
  const std::int64_t axis = node.get<std::int64_t>("axis");
  if (normalise_axis(axis, rank) != axis) reject("an axis from 0 on", std::to_string(axis));
  return static_cast<std::size_t>(axis);
}

std::vector<TensorType> infer_gather(const Node& node) {
  const TensorType &data = type_of_input(node, 0), &indices = index_type(node);
  const auto axis = static_cast<std::ptrdiff_t>(checked_axis(node, data.rank()));
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  return {{data.dtype, std::move(shape)}};
}

std::vector<TensorType> infer_gather_nd(const Node& node) {
  const TensorType &data = type_of_input(node, 0), &indices = index_type(node);
  const std::int64_t batch = node.get<std::int64_t>("batch_dims");
  const auto limit = static_cast<std::int64_t>(std::min(data.rank(), indices.rank()));
  if (batch < 0 || batch >= limit)
    reject("batch_dims from 0 and below both ranks", fmt::format("{} for {} and {}", batch, data.text(), indices.text()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
    if (!(data.shape[i] == indices.shape[i]))
      reject("equal batch dimensions", fmt::format("{} and {}", data.text(), indices.text()));
  }
  const Expr& depth = indices.shape.back();
  if (!depth.is_constant() || depth.value() < 1 || depth.value() + batch > static_cast<std::int64_t>(data.rank())) {
    reject(fmt::format("a last dimension of the indices from 1 to {}", static_cast<std::int64_t>(data.rank()) - batch),
           indices.text());
  }
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + static_cast<std::ptrdiff_t>(batch + depth.value()), data.shape.end());
  return {{data.dtype, std::move(shape)}};
}

std::vector<TensorType> infer_gather_elements(const Node& node) {
  const TensorType &data = type_of_input(node, 0), &indices = index_type(node);
  const std::size_t axis = checked_axis(node, data.rank());
  bool good = indices.rank() == data.rank();
  for (std::size_t i = 0; good && i < data.rank(); ++i) good = i == axis || !known_less(data.shape[i], indices.shape[i]);
  if (!good)
    reject(fmt::format("indices of rank {}, no larger than the data except along axis {}", data.rank(), axis),
           fmt::format("{} for {}", indices.text(), data.text()));
  return {{data.dtype, indices.shape}};
}

// The index as a position, negative ones from the end.
std::int64_t position(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) reject(fmt::format("indices from {} to {}", -size, size - 1), std::to_string(index));
  return index < 0 ? index + size : index;
}

// visit(position in the result, position in the data) for each element; index_at reads the indices.
template <class IndexAt, class Visit>
void visit_gather(const Sizes& data, std::size_t axis, std::int64_t indices, IndexAt&& index_at, Visit&& visit) {
  const AxisView view(data, axis);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < view.outer; ++o) {
    for (std::int64_t i = 0; i < indices; ++i) {
      const std::int64_t at = (o * view.size + position(index_at(i), view.size)) * view.inner;
      for (std::int64_t r = 0; r < view.inner; ++r) visit(to++, at + r);
    }
  }
}

std::vector<HostTensor> eval_gather(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  HostTensor result(inputs[0].dtype(), bind_shape(node.output(0)->type.shape, symbols));
  visit_gather(
      inputs[0].shape(), static_cast<std::size_t>(node.get<std::int64_t>("axis")), inputs[1].elements(),
      [&](std::int64_t i) { return inputs[1].int_at(i); },
      [&](std::int64_t to, std::int64_t from) { copy_element(result, to, inputs[0], from); });
  return {std::move(result)};
}

std::optional<std::vector<Expr>> gather_content(const Node& node) {
  const Value &data = *node.inputs[0], &indices = *node.inputs[1];
  if (!data.content || !indices.content || !data.type.is_static() || !indices.type.is_static()) return std::nullopt;
  const auto known = [](const Expr& e) { return e.is_constant(); };
  if (!std::all_of(indices.content->begin(), indices.content->end(), known)) return std::nullopt;
  std::vector<Expr> values;
  visit_gather(
      bind_shape(data.type.shape, {}), static_cast<std::size_t>(node.get<std::int64_t>("axis")),
      static_cast<std::int64_t>(indices.content->size()),
      [&](std::int64_t i) { return (*indices.content)[static_cast<std::size_t>(i)].value(); },
      [&](std::int64_t, std::int64_t from) { values.push_back((*data.content)[static_cast<std::size_t>(from)]); });
  return values;
}

std::vector<HostTensor> eval_gather_nd(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor &data = inputs[0], &indices = inputs[1];
  HostTensor result(data.dtype(), bind_shape(node.output(0)->type.shape, symbols));
  const auto batch = static_cast<std::size_t>(node.get<std::int64_t>("batch_dims"));
  const std::int64_t depth = indices.shape().back(), tuples = depth == 0 ? 0 : indices.elements() / depth;
  std::int64_t batches = 1, slice = 1;
  for (std::size_t i = 0; i < batch; ++i) batches *= data.shape()[i];
  for (std::size_t i = batch + static_cast<std::size_t>(depth); i < data.shape().size(); ++i) slice *= data.shape()[i];
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t at = t / (tuples / batches);
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t size = data.shape()[batch + static_cast<std::size_t>(k)];
      at = at * size + position(indices.int_at(t * depth + k), size);
    }
    for (std::int64_t r = 0; r < slice; ++r) copy_element(result, t * slice + r, data, at * slice + r);
  }
  return {std::move(result)};
}

std::vector<HostTensor> eval_gather_elements(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor &data = inputs[0], &indices = inputs[1];
  HostTensor result(data.dtype(), indices.shape());
  const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  Sizes strides = row_major_strides(data.shape());
  const std::int64_t along = std::exchange(strides[axis], 0);
  walk(indices.shape(), {strides}, [&](std::int64_t i, const Sizes& at) {
    copy_element(result, i, data, at[0] + position(indices.int_at(i), data.shape()[axis]) * along);
  });
  return {std::move(result)};
}

constexpr OpDef kIndexingOps[] = {
    {.name = "gather",
     .kind = OpKind::indexing,
     .formula = "y[a, i, b] = data[a, indices[i], b] with the index at axis",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather,
     .eval = eval_gather,
     .content = gather_content,
     .cost = no_cost,
     .gradient = gather_gradient},
    {.name = "gather_nd",
     .kind = OpKind::indexing,
     .formula = "y[b, i, s] = data[b, indices[b, i, 0], indices[b, i, 1], .., s]",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather_nd,
     .eval = eval_gather_nd,
     .cost = no_cost,
     .gradient = gather_nd_gradient},
    {.name = "gather_elements",
     .kind = OpKind::indexing,
     .formula = "y[a, i, b] = data[a, indices[a, i, b], b] with the index at axis",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather_elements,
     .eval = eval_gather_elements,
     .cost = no_cost,
     .gradient = gather_elements_gradient},
};

}  // namespace

std::span<const OpDef> indexing_ops() { return kIndexingOps; }

}  // namespace oclc
