// Scales and shifts per channel behind a convolution or a matrix product with constant weights go into the weights and the
// bias: batch normalisation costs nothing. Without it each convolution would need an epilogue with two more tensors.
#include <algorithm>
#include <cstring>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

// A constant that varies along one axis of `shape` at most, as `count` numbers along that axis; nothing if it is another
// tensor.
std::optional<HostTensor> along_axis(const Value* value, const Shape& shape, std::size_t axis, std::int64_t count) {
  const HostTensor* tensor = constant_of(value);
  if (!tensor || tensor->dtype() != DType::f32 || value->type.rank() > shape.size()) return std::nullopt;
  const std::size_t lead = shape.size() - value->type.rank();
  for (std::size_t i = 0; i < value->type.rank(); ++i) {
    if (tensor->shape()[i] != 1 && (lead + i != axis || tensor->shape()[i] != count)) return std::nullopt;
  }
  HostTensor result(DType::f32, {count});
  const bool one = tensor->elements() == 1;
  for (std::int64_t i = 0; i < count; ++i) result.set(i, tensor->at(one ? 0 : i));
  return result;
}

bool is_one(const HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.at(i) != 1) return false;
  }
  return true;
}

// w[.., i, ..] * scale[i] where i runs along `axis`.
HostTensor scaled(const HostTensor& w, const HostTensor& scale, std::size_t axis) {
  HostTensor result(DType::f32, w.shape());
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < w.shape().size(); ++i) inner *= w.shape()[i];
  const std::int64_t count = w.shape()[axis], outer = w.elements() / std::max<std::int64_t>(1, count * inner);
  // The weights may lie in a mapped file at any address.
  if (w.bytes() > 0) std::memcpy(result.mutable_data(), w.data(), w.bytes());
  auto* row = reinterpret_cast<float*>(result.mutable_data());
  for (std::int64_t r = 0; r < outer * count; ++r, row += inner) {
    const auto factor = static_cast<float>(scale.at(r % count));
    for (std::int64_t i = 0; i < inner; ++i) row[i] *= factor;
  }
  return result;
}

// y = conv(x, w, b) * scale + shift
struct Affine {
  Value* product;              // the convolution's or matrix product's result
  const Value *scale, *shift;  // null: none
};

std::optional<Affine> affine_of(const Node* node) {
  const auto constant_second = [&](std::size_t a, std::size_t b) { return constant_of(node->inputs[b]) ? a : b; };
  if (is(node, "fma")) {
    const std::size_t x = constant_second(0, 1);
    if (!constant_of(node->inputs[1 - x]) || !constant_of(node->inputs[2])) return std::nullopt;
    return Affine{node->inputs[x], node->inputs[1 - x], node->inputs[2]};
  }
  if (!is(node, "mul") && !is(node, "add")) return std::nullopt;
  const std::size_t x = constant_second(0, 1);
  if (!constant_of(node->inputs[1 - x])) return std::nullopt;
  const Value* constant = node->inputs[1 - x];
  return is(node, "mul") ? Affine{node->inputs[x], constant, nullptr} : Affine{node->inputs[x], nullptr, constant};
}

bool fold_into_conv(Graph& graph, Node* node) {
  const auto affine = affine_of(node);
  Node* conv = affine ? producer(affine->product, "conv") : nullptr;
  if (!conv || multiplies_integers(conv) || !has_one_use(graph, conv->output()) ||
      !(conv->output()->type == node->output()->type))
    return false;
  const HostTensor* w = constant_of(conv->inputs[1]);
  const Value* old_bias = conv->inputs.size() > 2 ? conv->inputs[2] : nullptr;
  const HostTensor* b = constant_of(old_bias);
  if (!w || w->dtype() != DType::f32 || (old_bias && !b)) return false;
  const Shape& shape = conv->output()->type.shape;
  const std::int64_t channels = w->shape()[0];
  const auto scale = affine->scale ? along_axis(affine->scale, shape, 1, channels) : std::nullopt;
  const auto shift = affine->shift ? along_axis(affine->shift, shape, 1, channels) : std::nullopt;
  if ((affine->scale && !scale) || (affine->shift && !shift)) return false;
  HostTensor bias(DType::f32, {channels});
  for (std::int64_t i = 0; i < channels; ++i) {
    bias.set(i, (b ? b->at(i) : 0.0) * (scale ? scale->at(i) : 1.0) + (shift ? shift->at(i) : 0.0));
  }
  Rewriter rewrite(graph, node);
  Value* weights = scale && !is_one(*scale) ? rewrite.constant(scaled(*w, *scale, 0)) : conv->inputs[1];
  if (weights != conv->inputs[1]) weights->name = conv->inputs[1]->name;
  std::vector<Value*> inputs{conv->inputs[0], weights};
  if (b || shift) {
    inputs.push_back(rewrite.constant(std::move(bias)));
    if (old_bias) inputs.back()->name = old_bias->name;
  }
  Value* result = rewrite.call("conv", std::move(inputs), conv->attributes);
  if (!conv->source.empty() && conv->source != node->source) {
    result->producer->source = node->source.empty() ? conv->source : conv->source + "+" + node->source;
  }
  return rewrite.replace(result);
}

// matmul(x, w) * scale where the scale varies along the columns. One number for all stays: it is free in the product's
// epilogue, and the weights keep sharing the model file's memory.
bool fold_into_matmul(Graph& graph, Node* node) {
  if (!is(node, "mul")) return false;
  const auto affine = affine_of(node);
  Node* matmul = affine ? producer(affine->product, "matmul") : nullptr;
  if (!matmul || multiplies_integers(matmul) || !has_one_use(graph, matmul->output()) ||
      !(matmul->output()->type == node->output()->type))
    return false;
  const HostTensor* w = constant_of(matmul->inputs[1]);
  if (!w || w->dtype() != DType::f32 || w->shape().size() != 2) return false;
  const std::size_t columns = matmul->get<std::int64_t>("trans_b") != 0 ? 0 : 1;
  const Shape& shape = matmul->output()->type.shape;
  const auto scale = along_axis(affine->scale, shape, shape.size() - 1, w->shape()[columns]);
  if (!scale || affine->scale->type.elements() == Expr(1)) return false;
  Rewriter rewrite(graph, node);
  Value* weights = rewrite.constant(scaled(*w, *scale, columns));
  weights->name = matmul->inputs[1]->name;
  Value* result = rewrite.call("matmul", {matmul->inputs[0], weights}, matmul->attributes);
  if (!matmul->source.empty() && matmul->source != node->source) {
    result->producer->source = node->source.empty() ? matmul->source : matmul->source + "+" + node->source;
  }
  return rewrite.replace(result);
}

}  // namespace

bool fold_batchnorm(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {fold_into_conv, fold_into_matmul};
  return apply_rules(graph, kRules);
}

}  // namespace oclc
