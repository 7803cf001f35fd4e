// Reads at positions given by a tensor. Negative positions count from the end.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
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

Cost no_cost(const Node&) { return {}; }

constexpr OpDef kOps[] = {
    {.name = "gather",
     .kind = OpKind::indexing,
     .formula = "y[a, i, b] = data[a, indices[i], b] with the index at axis",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather,
     .cost = no_cost},
    {.name = "gather_nd",
     .kind = OpKind::indexing,
     .formula = "y[b, i, s] = data[b, indices[b, i, 0], indices[b, i, 1], .., s]",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather_nd,
     .cost = no_cost},
    {.name = "gather_elements",
     .kind = OpKind::indexing,
     .formula = "y[a, i, b] = data[a, indices[a, i, b], b] with the index at axis",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather_elements,
     .cost = no_cost},
};

}  // namespace

std::span<const OpDef> indexing_ops() { return kOps; }

}  // namespace oclc
