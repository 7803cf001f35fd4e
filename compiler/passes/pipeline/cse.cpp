// Nodes that compute the same from the same become one. Exporters repeat shape arithmetic, masks and scalars per layer; without
// it each copy would be computed and stored.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"
#include "compiler/support/hash.h"

namespace oclc {
namespace {

constexpr std::size_t kComparedBytes = 4096;  // larger tensors are equal only if they are the same memory

bool equal(const HostTensor& a, const HostTensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.data() == b.data()) return true;
  return a.bytes() == 0 || (a.bytes() <= kComparedBytes && std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool equal(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<HostTensor>(&a)) return equal(*tensor, std::get<HostTensor>(b));
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, HostTensor>)
          return false;
        else if constexpr (std::is_same_v<T, double>)
          return std::memcmp(&x, &std::get<double>(b), sizeof x) == 0;
        else
          return x == std::get<T>(b);
      },
      a);
}

bool is_commutative(const Node& node) {
  constexpr std::string_view kNames[] = {"add", "mul", "max", "min", "and", "or", "xor", "equal"};
  return std::find(std::begin(kNames), std::end(kNames), node.op->name) != std::end(kNames);
}

std::vector<Value*> ordered_inputs(const Node& node) {
  std::vector<Value*> inputs = node.inputs;
  if (is_commutative(node))
    std::sort(inputs.begin(), inputs.end(), [](const Value* a, const Value* b) { return a->id < b->id; });
  return inputs;
}

bool equal(const Node& a, const Node& b) {
  if (a.op != b.op || a.attributes.size() != b.attributes.size() || a.outputs.size() != b.outputs.size()) return false;
  if (ordered_inputs(a) != ordered_inputs(b)) return false;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    if (!(a.output(i)->type == b.output(i)->type) || !(a.output(i)->layout == b.output(i)->layout)) return false;
  }
  return std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

// Operator, operands and result types; attributes are compared afterwards.
std::size_t hash(const Node& node) {
  std::size_t h = std::hash<const OpDef*>()(node.op);
  const auto mix = [&](std::size_t v) { h = hash_with(h, v); };
  for (const Value* input : ordered_inputs(node)) mix(std::hash<const Value*>()(input));
  for (const auto& [name, value] : node.attributes) {
    if (const auto* tensor = std::get_if<HostTensor>(&value)) {
      for (std::size_t i = 0; i < std::min<std::size_t>(tensor->bytes(), 64); ++i)
        mix(static_cast<std::size_t>(tensor->data()[i]));
    } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
      mix(static_cast<std::size_t>(*number));
    }
  }
  return h;
}

}  // namespace

bool cse(Graph& graph, const PassContext&) {
  bool changed = graph.erase_dead();
  std::unordered_multimap<std::size_t, Node*> seen;
  for (Node* node : graph.nodes()) {
    if (!node->bodies.empty() || node->op->kind == OpKind::opaque) continue;
    const std::size_t key = hash(*node);
    const auto [first, last] = seen.equal_range(key);
    const auto same = std::find_if(first, last, [&](const auto& entry) { return equal(*entry.second, *node); });
    if (same == last) {
      seen.emplace(key, node);
      continue;
    }
    for (std::size_t i = 0; i < node->outputs.size(); ++i) graph.replace_all_uses(node->output(i), same->second->output(i));
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace oclc
