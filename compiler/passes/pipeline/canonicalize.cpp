// One spelling for equal arithmetic: neutral operands and double negations dropped, constants on the right and as small as
// broadcasting allows, powers as products and roots, casts and reductions merged. Without it fusion would see, and kernels
// would compute, what exporters happened to write. Results stay within single-precision rounding; NaN stays NaN.
#include <algorithm>
#include <cmath>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/integer_range.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

bool is_commutative(const Node* node) {
  return is(node, "add") || is(node, "mul") || is(node, "max") || is(node, "min") || is(node, "and") || is(node, "or") ||
         is(node, "xor") || is(node, "equal");
}

bool is_generated(const Value* value) {
  while (value && (producer(value, "expand") || producer(value, "reshape"))) value = value->producer->inputs[0];
  return value && value->producer && value->producer->op->kind == OpKind::generator;
}

DType result_dtype(const Node* node) { return node->output()->type.dtype; }

// 0 + x = x + 0
bool constant_to_the_right(Graph& graph, Node* node) {
  if (!is_commutative(node)) return false;
  Value *a = node->inputs[0], *b = node->inputs[1];
  if (!is_generated(a) || is_generated(b)) return false;
  graph.set_input(node, 0, b);
  graph.set_input(node, 1, a);
  return true;
}

// An operand whose elements are all equal becomes a scalar where the other operands give the shape.
bool scalar_operands(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::elementwise || node->inputs.size() < 2) return false;
  bool changed = false;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    Value* operand = node->inputs[i];
    const auto splat = operand->type.rank() > 0 ? splat_of(operand) : std::nullopt;
    if (!splat) continue;
    Value* source = operand;
    while (!constant_of(source)) source = source->producer->inputs[0];
    HostTensor first(source->type.dtype, {});
    std::copy_n(constant_of(source)->data(), first.bytes(), first.mutable_data());
    Rewriter rewrite(graph, node);
    if (!try_input(graph, node, i, rewrite.constant(std::move(first))))
      rewrite.give_up();
    else
      changed = true;
  }
  return changed;
}

// x + 0, x * 1, x - 0, x / 1, x ^ 1, and(x, true), or(x, false), xor(x, false)
bool neutral_operand(Graph& graph, Node* node) {
  const auto right = node->inputs.size() == 2 ? splat_of(node->inputs[1]) : std::nullopt;
  if (!right) return false;
  const bool zero = *right == 0, one = *right == 1;
  const bool neutral = (zero && (is(node, "add") || is(node, "sub") || is(node, "or") || is(node, "xor"))) ||
                       (one && (is(node, "mul") || is(node, "div") || is(node, "pow") || is(node, "and")));
  Rewriter rewrite(graph, node);
  return neutral && rewrite.replace(node->inputs[0]);
}

// and(x, false) = false, or(x, true) = true, n * 0 = 0 for integers, xor(x, true) = not(x)
bool decisive_operand(Graph& graph, Node* node) {
  const auto right = node->inputs.size() == 2 ? splat_of(node->inputs[1]) : std::nullopt;
  if (!right) return false;
  Rewriter rewrite(graph, node);
  const DType dtype = result_dtype(node);
  if (*right == 0 && (is(node, "and") || (is(node, "mul") && !is_float(dtype))))
    return rewrite.replace(rewrite.integer(dtype, 0));
  if (*right == 1 && is(node, "or")) return rewrite.replace(rewrite.integer(dtype, 1));
  if (*right == 1 && is(node, "xor")) return rewrite.replace(rewrite.call("not", {node->inputs[0]}));
  return false;
}

// op(x, x): and, or, max, min
bool equal_operands(Graph& graph, Node* node) {
  if (node->inputs.size() != 2 || node->inputs[0] != node->inputs[1]) return false;
  if (!is(node, "and") && !is(node, "or") && !is(node, "max") && !is(node, "min")) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(node->inputs[0]);
}

// neg(neg(x)), not(not(x)), relu(relu(x)), abs(abs(x)), abs(neg(x))
bool unary_of_unary(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::elementwise || node->inputs.size() != 1) return false;
  const Node* inner = node->inputs[0]->producer;
  if (!inner) return false;
  Rewriter rewrite(graph, node);
  if (is(inner, node->op->name)) {
    if (is(node, "neg") || is(node, "not")) return rewrite.replace(inner->inputs[0]);
    if (is(node, "relu") || is(node, "abs") || is(node, "floor") || is(node, "ceil") || is(node, "round"))
      return rewrite.replace(inner->output());
  }
  return is(node, "abs") && is(inner, "neg") && rewrite.replace(rewrite.call("abs", {inner->inputs[0]}));
}

// x / c = x * (1/c) where 1/c is exact: c is a power of two.
bool divide_by_power_of_two(Graph& graph, Node* node) {
  if (!is(node, "div") || !is_float(result_dtype(node)) || splat_of(node->inputs[0])) return false;
  const auto divisor = splat_of(node->inputs[1]);
  int exponent = 0;
  if (!divisor || std::fabs(std::frexp(*divisor, &exponent)) != 0.5 || exponent < -100 || exponent > 100) return false;
  if ((result_dtype(node) == DType::f16) && (exponent < -12 || exponent > 12)) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.call("mul", {node->inputs[0], rewrite.scalar(result_dtype(node), 1 / *divisor)}));
}

// x ^ 2 = x * x, x ^ 3 = x * x * x, x ^ 0.5 = sqrt(x), x ^ -0.5 = rsqrt(x), x ^ -1 = 1 / x
bool power_with_constant(Graph& graph, Node* node) {
  if (!is(node, "pow") || !is_float(result_dtype(node))) return false;
  const auto exponent = splat_of(node->inputs[1]);
  Value* x = node->inputs[0];
  if (!exponent || !(x->type == node->output()->type)) return false;
  Rewriter rewrite(graph, node);
  if (*exponent == 2) return rewrite.replace(rewrite.call("mul", {x, x}));
  if (*exponent == 3) return rewrite.replace(rewrite.call("mul", {rewrite.call("mul", {x, x}), x}));
  if (*exponent == 0.5) return rewrite.replace(rewrite.call("sqrt", {x}));
  if (*exponent == -0.5) return rewrite.replace(rewrite.call("rsqrt", {x}));
  if (*exponent == -1) return rewrite.replace(rewrite.call("reciprocal", {x}));
  return false;
}

// 1 / sqrt(x) = rsqrt(x), 1 / x = reciprocal(x)
bool one_over(Graph& graph, Node* node) {
  if (!is(node, "div") || !is_float(result_dtype(node)) || !is_splat(node->inputs[0], 1)) return false;
  Rewriter rewrite(graph, node);
  Value* x = node->inputs[1];
  if (!(x->type == node->output()->type)) return false;
  if (const Node* root = producer(x, "sqrt")) return rewrite.replace(rewrite.call("rsqrt", {root->inputs[0]}));
  return rewrite.replace(rewrite.call("reciprocal", {x}));
}

// x - c = x + (-c), x - neg(y) = x + y, x + neg(y) = x - y, 0 - x = neg(x)
bool signs_of_sums(Graph& graph, Node* node) {
  if (!is(node, "add") && !is(node, "sub")) return false;
  Rewriter rewrite(graph, node);
  Value *a = node->inputs[0], *b = node->inputs[1];
  const DType dtype = result_dtype(node);
  if (const Node* negated = producer(b, "neg"))
    return rewrite.replace(rewrite.call(is(node, "add") ? "sub" : "add", {a, negated->inputs[0]}));
  if (is(node, "add")) return false;
  const HostTensor* c = constant_of(b);
  if (c && !constant_of(a) && dtype == DType::f32) {
    HostTensor negated(dtype, c->shape());
    for (std::int64_t i = 0; i < c->elements(); ++i) negated.set(i, -c->at(i));
    return rewrite.replace(rewrite.call("add", {a, rewrite.constant(std::move(negated))}));
  }
  if (c && !constant_of(a) && is_integer(dtype) && c->elements() == 1) {
    return rewrite.replace(
        rewrite.call("add", {a, rewrite.constant([&] {
                               HostTensor negated(dtype, c->shape());
                               negated.set_int(0, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(c->int_at(0))));
                               return negated;
                             }())}));
  }
  return is_splat(a, 0) && b->type == node->output()->type && rewrite.replace(rewrite.call("neg", {b}));
}

// (x op c1) op c2 = x op (c1 op c2): max and min always, mul where the product of the numbers is far from the ends of the
// range, add for integers.
bool merge_constants(Graph& graph, Node* node) {
  if (!is(node, "max") && !is(node, "min") && !is(node, "mul") && !is(node, "add")) return false;
  const Node* inner = node->inputs[0]->producer;
  if (!is(inner, node->op->name) || !(inner->output()->type == node->output()->type)) return false;
  const auto c1 = splat_of(inner->inputs[1]), c2 = splat_of(node->inputs[1]);
  if (!c1 || !c2) return false;
  const DType dtype = result_dtype(node);
  Rewriter rewrite(graph, node);
  const auto with = [&](Value* constant) {
    return rewrite.replace(rewrite.call(node->op->name, {inner->inputs[0], constant}));
  };
  if (is_float(dtype)) {
    if (is(node, "add") || std::isnan(*c1) || std::isnan(*c2)) return false;
    const double merged = is(node, "mul") ? *c1 * *c2 : is(node, "max") ? std::max(*c1, *c2) : std::min(*c1, *c2);
    if (is(node, "mul") && (dtype != DType::f32 || !(std::fabs(merged) > 1e-20 && std::fabs(merged) < 1e20) ||
                            !(std::fabs(*c1) > 1e-20 && std::fabs(*c1) < 1e20))) {
      return false;
    }
    return with(rewrite.scalar(dtype, merged));
  }
  const auto exact = [](double c) { return std::fabs(c) < 1e6; };
  if (dtype == DType::boolean || !exact(*c1) || !exact(*c2)) return false;
  const auto a = static_cast<std::int64_t>(*c1), b = static_cast<std::int64_t>(*c2);
  return with(rewrite.integer(dtype, is(node, "mul")   ? a * b
                                     : is(node, "add") ? a + b
                                     : is(node, "max") ? std::max(a, b)
                                                       : std::min(a, b)));
}

// max(x, 0) = relu(x)
bool max_with_zero(Graph& graph, Node* node) {
  if (!is(node, "max") || !is_float(result_dtype(node)) || !is_splat(node->inputs[1], 0)) return false;
  if (!(node->inputs[0]->type == node->output()->type)) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.call("relu", {node->inputs[0]}));
}

// fma(x, 1, c) = x + c, fma(x, s, 0) = x * s
bool simple_fma(Graph& graph, Node* node) {
  if (!is(node, "fma")) return false;
  Rewriter rewrite(graph, node);
  if (is_splat(node->inputs[1], 1)) return rewrite.replace(rewrite.call("add", {node->inputs[0], node->inputs[2]}));
  if (is_splat(node->inputs[2], 0)) return rewrite.replace(rewrite.call("mul", {node->inputs[0], node->inputs[1]}));
  return false;
}

// where(true, a, b) = a, where(c, a, a) = a, where(not(c), a, b) = where(c, b, a), where(c, true, false) = c
bool simple_where(Graph& graph, Node* node) {
  if (!is(node, "where")) return false;
  Value *condition = node->inputs[0], *a = node->inputs[1], *b = node->inputs[2];
  Rewriter rewrite(graph, node);
  if (const auto known = splat_of(condition)) return rewrite.replace(*known != 0 ? a : b);
  if (a == b) return rewrite.replace(a);
  if (const Node* negated = producer(condition, "not"))
    return rewrite.replace(rewrite.call("where", {negated->inputs[0], b, a}));
  if (result_dtype(node) != DType::boolean) return false;
  if (is_splat(a, 1) && is_splat(b, 0)) return rewrite.replace(condition);
  return is_splat(a, 0) && is_splat(b, 1) && rewrite.replace(rewrite.call("not", {condition}));
}

// not(a < b) and the like, for integers, which have no NaN.
bool negated_comparison(Graph& graph, Node* node) {
  if (!is(node, "not") || !node->inputs[0]->producer) return false;
  const Node* inner = node->inputs[0]->producer;
  if (inner->inputs.size() != 2 || is_float(inner->inputs[0]->type.dtype)) return false;
  constexpr std::string_view kOpposites[][2] = {
      {"less", "greater_equal"}, {"less_equal", "greater"}, {"greater", "less_equal"}, {"greater_equal", "less"}};
  Rewriter rewrite(graph, node);
  for (const auto& [op, opposite] : kOpposites) {
    if (is(inner, op)) return rewrite.replace(rewrite.call(opposite, {inner->inputs[0], inner->inputs[1]}));
  }
  return false;
}

// Every number of `from` is a number of `to`.
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (is_narrow(from) || is_narrow(to)) return to == DType::f32 || to == DType::f64;
  if (from == DType::boolean) return true;
  if (is_float(from))
    return (to == DType::f64 && from != DType::f64) || (to == DType::f32 && (from == DType::f16 || from == DType::bf16));
  if (to == DType::boolean) return false;
  const std::size_t bits = size_bytes(from) * 8 - (is_signed(from) ? 1 : 0);
  if (is_float(to)) return bits <= (to == DType::f64 ? 53u : to == DType::f32 ? 24u : to == DType::f16 ? 11u : 8u);
  return (is_signed(to) || !is_signed(from)) && bits <= size_bytes(to) * 8 - (is_signed(to) ? 1 : 0);
}

// cast(cast(x)) to an integer type and back, for floats that are integers of that type.
bool is_round_trip(const Node* inner, DType to) {
  const DType through = inner->output()->type.dtype, from = inner->inputs[0]->type.dtype;
  const auto type = range_of_type(through);
  if (!type || through == DType::boolean || !is_float(from) || !is_float(to) || !holds_all(through, from)) return false;
  const auto range = integer_range(inner->inputs[0]);
  return range && range->is_within(type->low, type->high);
}

// cast(x) to its own type; cast(cast(x)) through a type that holds all of x's numbers.
bool simple_cast(Graph& graph, Node* node) {
  if (!is(node, "cast")) return false;
  Value* x = node->inputs[0];
  Rewriter rewrite(graph, node);
  if (x->type.dtype == result_dtype(node)) return rewrite.replace(x);
  const Node* inner = producer(x, "cast");
  if (inner && is_round_trip(inner, result_dtype(node)))
    return rewrite.replace(inner->inputs[0]->type.dtype == result_dtype(node)
                               ? inner->inputs[0]
                               : rewrite.call("cast", {inner->inputs[0]}, {{"dtype", result_dtype(node)}}));
  if (!inner || !holds_all(inner->inputs[0]->type.dtype, x->type.dtype)) return false;
  if (inner->inputs[0]->type.dtype == result_dtype(node)) return rewrite.replace(inner->inputs[0]);
  return rewrite.replace(rewrite.call("cast", {inner->inputs[0]}, {{"dtype", result_dtype(node)}}));
}

bool is_plain_reduction(const Node* node) {
  return is(node, "reduce_sum") || is(node, "reduce_mean") || is(node, "reduce_max") || is(node, "reduce_min") ||
         is(node, "reduce_prod");
}

// Over axes of size 1: a reshape. Of a reduction that serves nothing else: one reduction.
bool simple_reduction(Graph& graph, Node* node) {
  if (!is_plain_reduction(node)) return false;
  const Value* x = node->inputs[0];
  Ints axes = node->get<Ints>("axes");
  Rewriter rewrite(graph, node);
  Ints wide;
  for (const std::int64_t axis : axes) {
    if (!(x->type.shape[static_cast<std::size_t>(axis)] == Expr(1))) wide.push_back(axis);
  }
  if (wide.empty()) return rewrite.replace(rewrite.reshape(node->inputs[0], node->output()->type.shape));
  const Node* inner = x->producer;
  if (!is(inner, node->op->name) || !has_one_use(graph, x)) return false;
  // Axes of the inner operand that the outer one reduces.
  const Ints& first = inner->get<Ints>("axes");
  Ints kept;
  for (std::size_t i = 0; i < inner->inputs[0]->type.rank(); ++i) {
    const bool gone = std::find(first.begin(), first.end(), static_cast<std::int64_t>(i)) != first.end();
    if (!gone || inner->get<std::int64_t>("keepdims") != 0) kept.push_back(static_cast<std::int64_t>(i));
  }
  Ints all = first;
  for (const std::int64_t axis : axes) all.push_back(kept[static_cast<std::size_t>(axis)]);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Value* merged =
      rewrite.call(node->op->name, {inner->inputs[0]}, {{"axes", all}, {"keepdims", node->get<std::int64_t>("keepdims")}});
  return rewrite.replace(rewrite.reshape(merged, node->output()->type.shape));
}

// Pooling over windows of one element.
bool trivial_window(Graph& graph, Node* node) {
  if (!is(node, "max_pool") && !is(node, "avg_pool")) return false;
  const auto all = [&](std::string_view name, std::int64_t wanted) {
    const Ints& list = node->get<Ints>(name);
    return std::all_of(list.begin(), list.end(), [&](std::int64_t v) { return v == wanted; });
  };
  Rewriter rewrite(graph, node);
  return all("kernel", 1) && all("strides", 1) && all("pads", 0) && rewrite.replace(node->inputs[0]);
}

}  // namespace

bool canonicalize(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {constant_to_the_right,
                             scalar_operands,
                             neutral_operand,
                             decisive_operand,
                             equal_operands,
                             unary_of_unary,
                             divide_by_power_of_two,
                             power_with_constant,
                             one_over,
                             signs_of_sums,
                             merge_constants,
                             max_with_zero,
                             simple_fma,
                             simple_where,
                             negated_comparison,
                             trivial_window,
                             simple_cast,
                             simple_reduction};
  return apply_rules(graph, kRules);
}

}  // namespace oclc
