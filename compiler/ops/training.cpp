// Layers that behave otherwise while training. build_training replaces them; no kernel is generated for them.
#include <fmt/format.h>

#include <cmath>

#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/random.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

bool in_training(const Node& node) { return node.get_or<std::int64_t>("training", 0) != 0; }

// [1, C, 1, ...] for x[N, C, ...].
Shape channel_shape(const TensorType& x) {
  Shape shape(x.rank(), Expr(1));
  shape[1] = x.shape[1];
  return shape;
}

std::vector<TensorType> infer_batch_norm(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  node.get<double>("epsilon");
  node.get<double>("momentum");
  if (!is_float(x.dtype) || x.rank() < 2) reject("a floating-point tensor of rank 2 or more", x.text());
  for (std::size_t i = 1; i < 5; ++i) {
    const TensorType& v = type_of_input(node, i);
    if (v.rank() != 1 || !(v.shape[0] == x.shape[1]) || !is_float(v.dtype))
      reject(fmt::format("{} numbers as input {}", x.shape[1].text(), i), v.text());
  }
  if (!in_training(node)) return {x};
  const TensorType statistics{x.dtype, channel_shape(x)};
  return {x, statistics, statistics};
}

std::vector<HostTensor> eval_batch_norm(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  const double epsilon = node.get<double>("epsilon");
  std::vector<HostTensor> result;
  for (const auto& output : node.outputs) result.emplace_back(x.dtype(), bind_shape(output->type.shape, symbols));
  const AxisView view(x.shape(), 1);
  const double count = static_cast<double>(view.outer * view.inner);
  for (std::int64_t c = 0; c < view.size; ++c) {
    const auto each = [&](const auto& visit) {
      for (std::int64_t o = 0; o < view.outer; ++o) {
        for (std::int64_t i = 0; i < view.inner; ++i) visit((o * view.size + c) * view.inner + i);
      }
    };
    double mean = inputs[3].at(c), variance = inputs[4].at(c);
    if (in_training(node)) {
      mean = variance = 0;
      each([&](std::int64_t at) { mean += x.at(at) / count; });
      each([&](std::int64_t at) { variance += std::pow(x.at(at) - mean, 2) / count; });
      result[1].set(c, mean);
      result[2].set(c, variance);
    }
    const double factor = inputs[1].at(c) / std::sqrt(variance + epsilon), bias = inputs[2].at(c);
    each([&](std::int64_t at) { result[0].set(at, (x.at(at) - mean) * factor + bias); });
  }
  return result;
}

// Training: Ioffe and Szegedy, "Batch Normalization", 2015, section 3; the two sums are shared by all three gradients.
std::vector<Value*> batch_norm_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  Value *x = node.inputs[0], *scale = node.inputs[1], *dy = gradients[0];
  if (!dy) return {nullptr, nullptr, nullptr, nullptr, nullptr};
  const DType dtype = x->type.dtype;
  const Shape channels = channel_shape(x->type);
  Ints axes{0};
  for (std::size_t i = 2; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const auto per_channel = [&](Value* v) { return b.reshape(v, channels); };
  const bool training = in_training(node);
  Value* mean = training ? node.output(1) : per_channel(node.inputs[3]);
  Value* variance = training ? node.output(2) : per_channel(node.inputs[4]);
  Value* inverse = b.unary("rsqrt", b.add(variance, node.get<double>("epsilon")));
  Value* centred = b.sub(x, mean);
  Value* sum = b.reduce("reduce_sum", dy, axes, true);
  Value* correlation = b.mul(b.reduce("reduce_sum", b.mul(dy, centred), axes, true), inverse);
  Value* dx = dy;
  if (training) {
    Shape reduced;
    for (const std::int64_t axis : axes) reduced.push_back(x->type.shape[static_cast<std::size_t>(axis)]);
    Value* count = b.exprs({product(reduced)}, {});
    const auto average = [&](Value* v) { return b.div(v, b.cast(count, dtype)); };
    dx = b.sub(b.sub(dy, average(sum)), b.mul(centred, b.mul(inverse, average(correlation))));
  }
  dx = b.mul(dx, b.mul(inverse, per_channel(scale)));
  const Shape flat{x->type.shape[1]};
  return {dx, b.reshape(correlation, flat), b.reshape(sum, flat), nullptr, nullptr};
}

// With operands 1 and 2 the node is in training form.
std::vector<TensorType> infer_dropout(const Node& node) {
  const double ratio = node.get<double>("ratio");
  if (!(ratio >= 0 && ratio < 1)) reject("a ratio of at least 0 and less than 1", fmt::format("{}", ratio));
  if (node.inputs.size() == 2) reject("a step and a seed, or neither", "a step alone");
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const TensorType& type = type_of_input(node, i);
    if (type.dtype != DType::u32 || type.rank() != 0) reject(fmt::format("a number of u32 as input {}", i), type.text());
  }
  if (node.inputs.size() == 3) node.get<std::int64_t>("layer");
  return {type_of_input(node, 0)};
}

std::vector<HostTensor> eval_dropout(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  if (inputs.size() == 1) return {x};
  const double ratio = node.get<double>("ratio");
  const auto word = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const std::uint32_t step = word(inputs[1].int_at(0)), limit = dropout_limit(ratio);
  const std::uint32_t stream = word(inputs[2].int_at(0)) + word(node.get<std::int64_t>("layer")) * kStreamStep;
  HostTensor result(x.dtype(), x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i)
    result.set(i, random_bits(word(i), step, stream) < limit ? x.at(i) / (1 - ratio) : 0);
  return {std::move(result)};
}

// The same elements: layer, step and seed are the same.
std::vector<Value*> dropout_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  std::vector<Value*> inputs = node.inputs, result(node.inputs.size(), nullptr);
  if (!gradients[0]) return result;
  inputs[0] = gradients[0];
  result[0] = inputs.size() == 1 ? gradients[0] : b.call("dropout", std::move(inputs), node.attributes);
  return result;
}

Cost batch_norm_cost(const Node& node) { return {node.output()->type.elements() * Expr(4)}; }
constexpr OpDef kTrainingOps[] = {
    {.name = "batch_norm",
     .kind = OpKind::opaque,
     .formula = "(x - mean) / sqrt(variance + epsilon) * scale + bias per channel, with the running statistics; with "
                "training = 1 with those of the batch, which are results 1 and 2",
     .min_inputs = 5,
     .max_inputs = 5,
     .infer = infer_batch_norm,
     .eval = eval_batch_norm,
     .cost = batch_norm_cost,
     .gradient = batch_norm_gradient},
    {.name = "dropout",
     .kind = OpKind::opaque,
     .formula = "x; with step and seed, while training: x / (1 - ratio) where random_bits(element, step, seed + layer * "
                "0x9E3779B9) < (1 - ratio) * 2^32, else 0",
     .min_inputs = 1,
     .max_inputs = 3,
     .infer = infer_dropout,
     .eval = eval_dropout,
     .cost = no_cost,
     .gradient = dropout_gradient},
};

}  // namespace

std::span<const OpDef> training_ops() { return kTrainingOps; }

}  // namespace oclc
