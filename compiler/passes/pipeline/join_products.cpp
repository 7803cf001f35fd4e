// Products of one left operand with constant weights, each with its constant bias or all without, become one product with their
// columns side by side, of which each takes a slice: attention's queries, keys and values. Without it a GPU has three launches
// that are too small for its compute units. A CPU is as fast without, and needs less memory.
#include <algorithm>
#include <cstring>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

// Slices begin at whole vectors.
constexpr std::int64_t kSliceColumns = 4;

// result = matmul(x, weights) + bias
struct SiblingProduct {
  Node* matmul;
  Node* result;               // the sum, or the matmul itself
  const HostTensor* weights;  // [K, N], or [N, K]
  const HostTensor* bias;     // N numbers; null: none
};

bool is_transposed(const Node* matmul) { return matmul->get<std::int64_t>("trans_b") != 0; }
std::int64_t sibling_columns(const SiblingProduct& p) { return p.weights->shape()[is_transposed(p.matmul) ? 0 : 1]; }

std::optional<SiblingProduct> sibling_product(const Graph& graph, Node* node) {
  if (!is(node, "matmul") || node->output()->type.dtype != DType::f32) return std::nullopt;
  SiblingProduct p{node, node, constant_of(node->inputs[1]), nullptr};
  if (!p.weights || p.weights->shape().size() != 2 || sibling_columns(p) % kSliceColumns != 0) return std::nullopt;
  if (has_one_use(graph, node->output())) {
    Node* sum = node->output()->users.front();
    const HostTensor* bias = is(sum, "add") && sum->inputs[0] == node->output() ? constant_of(sum->inputs[1]) : nullptr;
    if (bias && !bias->shape().empty() && bias->shape().back() == sibling_columns(p) &&
        bias->elements() == sibling_columns(p) && sum->output()->type == node->output()->type) {
      p.result = sum;
      p.bias = bias;
    }
  }
  // What an earlier join has replaced is dead.
  if (p.result->output()->users.empty() && !graph.is_output(p.result->output())) return std::nullopt;
  return p;
}

bool are_siblings(const SiblingProduct& a, const SiblingProduct& b) {
  const auto trans = [](const SiblingProduct& p, std::string_view name) { return p.matmul->get<std::int64_t>(name); };
  const std::size_t inner = is_transposed(a.matmul) ? 1 : 0;
  return a.matmul->inputs[0] == b.matmul->inputs[0] && trans(a, "trans_a") == trans(b, "trans_a") &&
         trans(a, "trans_b") == trans(b, "trans_b") && multiplies_integers(a.matmul) == multiplies_integers(b.matmul) &&
         a.weights->shape()[inner] == b.weights->shape()[inner] && (a.bias == nullptr) == (b.bias == nullptr);
}

// Tensors of `rows` rows each, row by row side by side.
HostTensor concatenated(const std::vector<const HostTensor*>& parts, std::int64_t rows, std::vector<std::int64_t> shape) {
  HostTensor joined(DType::f32, std::move(shape));
  std::byte* to = joined.mutable_data();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const HostTensor* part : parts) {
      const std::size_t bytes = part->bytes() / static_cast<std::size_t>(rows);
      std::memcpy(to, part->data() + static_cast<std::size_t>(row) * bytes, bytes);
      to += bytes;
    }
  }
  return joined;
}

void join_siblings(Graph& graph, const std::vector<SiblingProduct>& products) {
  Node* first = products.front().matmul;
  std::vector<const HostTensor*> weights, biases;
  std::int64_t columns = 0;
  for (const SiblingProduct& p : products) {
    weights.push_back(p.weights);
    biases.push_back(p.bias);
    columns += sibling_columns(p);
  }
  Rewriter rewrite(graph, first);
  const bool transposed = is_transposed(first);
  const std::int64_t inner = weights[0]->shape()[transposed ? 1 : 0];
  const std::vector<std::int64_t> shape = transposed ? std::vector{columns, inner} : std::vector{inner, columns};
  Value* joined = rewrite.call(
      "matmul", {first->inputs[0], rewrite.constant(concatenated(weights, transposed ? 1 : inner, shape))}, first->attributes);
  if (biases[0]) joined = rewrite.call("add", {joined, rewrite.constant(concatenated(biases, 1, {columns}))});
  std::int64_t from = 0;
  for (const SiblingProduct& p : products) {
    std::vector<Expr> starts(joined->type.rank(), Expr(0)), sizes = p.result->output()->type.shape;
    starts.back() = Expr(from);
    from += sibling_columns(p);
    Value* slice = rewrite.slice(joined, std::move(starts), std::move(sizes), Ints(joined->type.rank(), 1));
    graph.replace_all_uses(p.result->output(), slice);
  }
}

}  // namespace

bool join_products(Graph& graph, const PassContext& context) {
  if (!context.joins_products) return false;
  bool changed = false;
  for (Node* node : graph.nodes()) {
    const auto first = sibling_product(graph, node);
    if (!first) continue;
    std::vector<SiblingProduct> products{*first};
    for (Node* user : node->inputs[0]->users) {
      const auto other = sibling_product(graph, user);
      const auto is_same = [&](const SiblingProduct& p) { return p.matmul == user; };
      if (other && std::none_of(products.begin(), products.end(), is_same) && are_siblings(*first, *other))
        products.push_back(*other);
    }
    if (products.size() < 2) continue;
    std::sort(products.begin() + 1, products.end(),
              [](const SiblingProduct& a, const SiblingProduct& b) { return a.matmul->id < b.matmul->id; });
    join_siblings(graph, products);
    changed = true;
  }
  return graph.erase_dead() || changed;
}

}  // namespace oclc
