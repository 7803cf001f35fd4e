// conv(x * s, w) = conv(x, q) * (s * c), and products alike, where x are integers of 8 bits and each column of the constant w
// is integers q of 8 bits times a scale c: what a quantised model computes in floats between its operators. Matrix units that
// multiply bfloat16 take one product for it where floats take several. Stands behind what folds scales into weights.
#include <cmath>
#include <vector>

#include "compiler/contraction/multiples.h"
#include "compiler/passes/pipeline/integer_range.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

constexpr int kBits = 8;
constexpr int kLargest = 256;  // bfloat16 holds all integers up to it

// Integers and, for each column, what they are multiplied by.
struct ScaledIntegers {
  HostTensor integers, scales;
};

// Of f32 weights whose columns lie along `axis`.
std::optional<ScaledIntegers> scaled_integers(const HostTensor& weights, std::size_t axis, double factor) {
  const auto& shape = weights.shape();
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : i > axis ? inner : outer) *= i == axis ? 1 : shape[i];
  const std::int64_t columns = shape[axis];
  ScaledIntegers found{HostTensor(DType::f32, shape), HostTensor(DType::f32, {columns})};
  const auto* from = reinterpret_cast<const float*>(weights.data());
  auto* to = reinterpret_cast<float*>(found.integers.mutable_data());
  std::vector<float> column(static_cast<std::size_t>(outer * inner));
  for (std::int64_t n = 0; n < columns; ++n) {
    for (std::int64_t i = 0; i < outer * inner; ++i)
      column[static_cast<std::size_t>(i)] = from[(i / inner * columns + n) * inner + i % inner];
    const auto multiples = multiples_of(column, kBits);
    if (!multiples) return std::nullopt;
    const double scale = multiples->scale == 0 ? 1 : static_cast<double>(multiples->scale);
    found.scales.set(n, scale * factor);
    for (std::int64_t i = 0; i < outer * inner; ++i)
      to[(i / inner * columns + n) * inner + i % inner] =
          static_cast<float>(std::nearbyint(static_cast<double>(column[static_cast<std::size_t>(i)]) / scale));
  }
  return found;
}

// Integers of at most 256 as floats, times a number.
struct IntegerOperand {
  Value* value = nullptr;
  double factor = 1;
};

std::optional<IntegerOperand> integer_operand(Value* value) {
  const auto is_small = [](const Value* v) {
    const auto range = integer_range(v);
    return range && range->is_within(-kLargest, kLargest);
  };
  if (is_small(value)) return IntegerOperand{value, 1};
  const Node* scaled = producer(value, "mul");
  if (!scaled || !(scaled->inputs[0]->type == value->type) || !is_small(scaled->inputs[0])) return std::nullopt;
  const auto factor = splat_of(scaled->inputs[1]);
  if (!factor || !(std::fabs(*factor) > 1e-20 && std::fabs(*factor) < 1e20)) return std::nullopt;
  return IntegerOperand{scaled->inputs[0], *factor};
}

bool multiply(Graph& graph, Node* node) {
  const bool conv = is(node, "conv");
  if ((!conv && !is(node, "matmul")) || multiplies_integers(node) || node->output()->type.dtype != DType::f32) return false;
  const HostTensor* weights = constant_of(node->inputs[1]);
  if (!weights || weights->elements() == 0 || (!conv && weights->shape().size() != 2)) return false;
  // A channel a group is no product.
  if (conv && node->get<std::int64_t>("group") != 1 && weights->shape()[1] == 1) return false;
  const auto x = integer_operand(node->inputs[0]);
  if (!x) return false;
  const std::size_t axis = conv || node->get<std::int64_t>("trans_b") != 0 ? 0 : 1;
  auto w = scaled_integers(*weights, axis, x->factor);
  if (!w) return false;
  Rewriter rewrite(graph, node);
  Attributes attributes = node->attributes;
  attributes["integers"] = std::int64_t{1};
  Value* integers = rewrite.constant(std::move(w->integers));
  integers->name = node->inputs[1]->name;
  Value* y = rewrite.call(node->op->name, {x->value, integers}, std::move(attributes));
  Shape along{Expr(weights->shape()[axis])};
  if (conv) along.resize(y->type.rank() - 1, Expr(1));
  y = rewrite.call("mul", {y, rewrite.reshape(rewrite.constant(std::move(w->scales)), along)});
  if (node->inputs.size() > 2 && node->inputs[2]) y = rewrite.call("add", {y, rewrite.reshape(node->inputs[2], along)});
  return rewrite.replace(y);
}

}  // namespace

bool multiply_integers(Graph& graph, const PassContext& context) {
  constexpr Rule kRules[] = {multiply};
  return context.multiplies_integers && apply_rules(graph, kRules);
}

}  // namespace oclc
