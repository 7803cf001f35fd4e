#include "compiler/ops/gradients/gradient_rules.h"

#include <limits>

#include "compiler/support/error.h"

namespace oclc {
namespace {

// The number that all elements of a constant are; nothing for other values.
std::optional<double> uniform(const Value* value) {
  const HostTensor* tensor = constant_of(value);
  if (!tensor || tensor->elements() == 0) return std::nullopt;
  for (std::int64_t i = 1; i < tensor->elements(); ++i) {
    if (tensor->at(i) != tensor->at(0)) return std::nullopt;
  }
  return tensor->at(0);
}

// Where the operands are equal each has half the gradient.
std::vector<Term> of_the_winner(Term g, Term a, Term b, std::string_view wins) {
  const Term zero = g.number(0), half = select(a.binary("equal", b), 0.5 * g, g);
  return {select(b.binary(wins, a), zero, half), select(a.binary(wins, b), zero, half)};
}

}  // namespace

std::vector<Value*> no_gradient(Builder&, const Node& node, std::span<Value* const>) {
  return std::vector<Value*>(node.inputs.size(), nullptr);
}

void no_gradient_for(std::string reason) {
  throw CompileError({.wanted = std::move(reason), .exit_code = ExitCode::unsupported});
}

Value* sum_to(Builder& b, Value* value, const Shape& shape) {
  const Shape& from = value->type.shape;
  if (from == shape) return value;
  const std::size_t leading = from.size() - shape.size();
  Ints axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool repeated = i < leading || (shape[i - leading] == Expr(1) && !(from[i] == Expr(1)));
    if (repeated) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (!axes.empty()) value = b.reduce("reduce_sum", value, axes, false);
  return value->type.shape == shape ? value : b.reshape(value, shape);
}

Value* count_of(Builder& b, const Expr& count, DType dtype) {
  if (count.is_constant()) return b.scalar(dtype, static_cast<double>(count.value()));
  return b.cast(b.exprs({count}, {}), dtype);
}

Value* positive_indices(Builder& b, Value* indices, const Expr& size) {
  const DType dtype = indices->type.dtype;
  return b.where(b.call("less", {indices, b.scalar(dtype, 0)}), b.add(indices, count_of(b, size, dtype)), indices);
}

Value* compared_indices(Builder& b, Value* indices, const Expr& size) {
  const DType dtype = indices->type.dtype;
  if (dtype != DType::i64 || !size.is_constant() || size.value() >= std::numeric_limits<std::int32_t>::max()) return indices;
  return b.cast(b.min(b.max(indices, b.scalar(dtype, -1)), b.exprs({size}, {}, dtype)), DType::i32);
}

namespace {

Term unless(Term value, double stop, Term x) { return select(value.binary("equal", value.number(stop)), x.number(0), x); }

std::vector<Value*> gradient_of(Builder& b, const Node& node, Value* gradient, Derivative derivative, bool steep) {
  const auto operand = [&](std::size_t i) { return Term{&b, i < node.inputs.size() ? node.inputs[i] : nullptr}; };
  std::vector<Value*> result(node.inputs.size(), nullptr);
  if (!gradient) return result;
  const Term g{&b, gradient}, y{&b, node.output()};
  std::vector<Term> terms = derivative(g, y, operand(0), operand(1), operand(2));
  OCLC_CHECK(terms.size() == node.inputs.size(), "one gradient per operand");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].value && steep) terms[i] = unless(g, 0, terms[i]);
    if (terms[i].value && node.has(kNorm)) terms[i] = unless(y, 0, terms[i]);
    if (terms[i].value) result[i] = sum_to(b, terms[i].value, node.inputs[i]->type.shape);
  }
  return result;
}

}  // namespace

std::vector<Value*> elementwise_gradient(Builder& b, const Node& node, Value* gradient, Derivative derivative) {
  return gradient_of(b, node, gradient, derivative, false);
}

std::vector<Value*> steep_gradient(Builder& b, const Node& node, Value* gradient, Derivative derivative) {
  return gradient_of(b, node, gradient, derivative, true);
}

// Steep unless the divisor is a number.
std::vector<Term> div_derivative(Term g, Term y, Term, Term b, Term) {
  const Term da = g / b, db = -(g * y / b);
  if (const auto divisor = uniform(b.value); divisor && *divisor != 0) return {da, db};
  return {unless(g, 0, da), unless(g, 0, db)};
}

// d a^b = b a^(b - 1) da + a^b log(a) db; of 0^0 and 0^b with b > 0 both are finite.
std::vector<Term> pow_derivative(Term g, Term y, Term a, Term b, Term) {
  if (const auto exponent = uniform(b.value)) {
    const double n = *exponent;
    if (n == 0) return {Term(), Term()};
    if (n == 1) return {g, Term()};
    if (n == 2) return {2 * g * a, Term()};
    if (n == 3) return {3 * g * (a * a), Term()};
    if (n == 0.5) return {0.5 * g / y, Term()};
    if (n == -1) return {-(g * (y * y)), Term()};
    return {n * g * a.binary("pow", b - 1), Term()};
  }
  const Term zero = a.number(0);
  const Term da = select(b.binary("equal", zero), zero, g * b * a.binary("pow", b - 1));
  const Term at_zero = a.binary("equal", zero).binary("and", b.binary("greater_equal", zero));
  return {da, select(at_zero, zero, g * y * a.unary("log"))};
}

std::vector<Term> max_derivative(Term g, Term, Term a, Term b, Term) { return of_the_winner(g, a, b, "greater"); }
std::vector<Term> min_derivative(Term g, Term, Term a, Term b, Term) { return of_the_winner(g, a, b, "less"); }

// a - b * trunc(a / b)
std::vector<Term> fmod_derivative(Term g, Term, Term a, Term b, Term) {
  const Term ratio = a / b;
  const Term whole = select(ratio.binary("less", ratio.number(0)), ratio.unary("ceil"), ratio.unary("floor"));
  return {g, -(g * whole)};
}

}  // namespace oclc
