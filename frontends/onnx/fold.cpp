#include "frontends/onnx/fold.h"

#include <algorithm>

#include "compiler/ops/reference/evaluate.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kMostElements = 1024;
constexpr int kDeepestFold = 200;  // nodes one above the other
constexpr std::int64_t kMostTextBytes = 1 << 16, kMostFlops = 1 << 20;

bool is_small(const Value* value) {
  const auto count = value->type.is_static() ? value->type.elements().constant() : std::nullopt;
  return count && *count <= kMostElements;
}

std::optional<HostTensor> from_content(const Value* value) {
  if (!value->content || !value->type.is_static()) return std::nullopt;
  HostTensor tensor(value->type.dtype, bind_shape(value->type.shape, {}));
  std::int64_t i = 0;
  for (const Expr& e : *value->content) {
    if (!e.is_constant()) return std::nullopt;
    tensor.set_int(i++, e.value());
  }
  return tensor;
}

}  // namespace

std::optional<HostTensor> KnownValues::find(const Value* value) { return compute(value, 0); }

std::optional<HostTensor> KnownValues::compute(const Value* value, int depth) {
  if (!is_small(value)) return std::nullopt;
  if (const HostTensor* tensor = constant_of(value)) return *tensor;
  if (auto tensor = from_content(value)) return tensor;
  if (value->type.elements() == Expr(0)) return HostTensor(value->type.dtype, bind_shape(value->type.shape, {}));
  const Node* node = value->producer;
  if (!node) return input_value_(value);
  if (depth == kDeepestFold || !node->bodies.empty() || node->outputs.size() != 1) return std::nullopt;
  if (const auto at = known_.find(value); at != known_.end()) return at->second;
  std::vector<HostTensor> inputs;
  for (const Value* input : node->inputs) {
    auto tensor = input ? compute(input, depth + 1) : HostTensor();
    if (!tensor) break;
    inputs.push_back(std::move(*tensor));
  }
  std::optional<HostTensor> result;
  if (node->op->cost && node->op->cost(*node).flops.constant().value_or(0) > kMostFlops) inputs.clear();
  if (inputs.size() == node->inputs.size() && !inputs.empty() && most_text_bytes(*node, inputs) <= kMostTextBytes)
    result = eval_node(*node, inputs);
  return known_.emplace(value, std::move(result)).first->second;
}

}  // namespace oclc::onnx
