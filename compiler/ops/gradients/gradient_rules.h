// What the operators' gradients share. The gradient of a node is written in core operators, so that it fuses with what stands
// around it; nodes whose result nothing uses are removed afterwards, so a gradient may state those of all inputs.
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"

namespace oclc {

// For operators that are constant almost everywhere or whose results are integers or truth values: nothing flows.
std::vector<Value*> no_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);

// For a case without gradient: CompileError (unsupported) saying why.
[[noreturn]] void no_gradient_for(std::string reason);

// The sum of `value` over the axes along which `shape` was broadcast to its shape.
Value* sum_to(Builder& b, Value* value, const Shape& shape);

// A number of elements as a scalar.
Value* count_of(Builder& b, const Expr& count, DType dtype);

// Indices along an axis of `size` elements with the negative ones, which count from the end, made positive.
Value* positive_indices(Builder& b, Value* indices, const Expr& size);

// Positive indices as numbers to compare with positions among `size`: of 32 bits, which vectors compare, where those name all
// positions. An index that is none of them stays none.
Value* compared_indices(Builder& b, Value* indices, const Expr& size);

// An operand of an elementwise derivative: arithmetic on it adds operators.
struct Term {
  Builder* builder = nullptr;
  Value* value = nullptr;  // null: zero
  Term unary(std::string_view op) const { return {builder, builder->call(op, {value})}; }
  Term binary(std::string_view op, Term other) const { return {builder, builder->call(op, {value, other.value})}; }
  Term number(double x) const { return {builder, builder->scalar(value->type.dtype, x)}; }
};
inline Term operator-(Term x) { return x.unary("neg"); }
inline Term operator+(Term x, Term y) { return x.binary("add", y); }
inline Term operator-(Term x, Term y) { return x.binary("sub", y); }
inline Term operator*(Term x, Term y) { return x.binary("mul", y); }
inline Term operator/(Term x, Term y) { return x.binary("div", y); }
inline Term operator+(double x, Term y) { return y.number(x) + y; }
inline Term operator-(double x, Term y) { return y.number(x) - y; }
inline Term operator*(double x, Term y) { return y.number(x) * y; }
inline Term operator-(Term x, double y) { return x - x.number(y); }
inline Term select(Term condition, Term x, Term y) { return {x.builder, x.builder->where(condition.value, x.value, y.value)}; }

// The gradients of an elementwise node's operands a, b, c, from that of its result, g, at the result's shape; y is the result.
using Derivative = std::vector<Term> (*)(Term g, Term y, Term a, Term b, Term c);
// Applies it and undoes broadcasting.
std::vector<Value*> elementwise_gradient(Builder& b, const Node& node, Value* gradient, Derivative derivative);

// The same where derivatives are infinite at some operands: no gradient of the result gives none of the operands, so that
// nothing flows into the branch that a selection does not take; and none flows through a norm of 0, see kNorm.
std::vector<Value*> steep_gradient(Builder& b, const Node& node, Value* gradient, Derivative derivative);

// An attribute of sqrt and pow: the root of a norm, whose derivative where the norm is 0 is taken to be 0, a subgradient.
inline constexpr std::string_view kNorm = "norm";

// Derivatives with cases.
std::vector<Term> div_derivative(Term g, Term y, Term a, Term b, Term c);
std::vector<Term> pow_derivative(Term g, Term y, Term a, Term b, Term c);
std::vector<Term> max_derivative(Term g, Term y, Term a, Term b, Term c);
std::vector<Term> min_derivative(Term g, Term y, Term a, Term b, Term c);
std::vector<Term> fmod_derivative(Term g, Term y, Term a, Term b, Term c);

// The gradients of the families, each in <family>_gradient.cpp.
std::vector<Value*> reduce_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> moments_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> softmax_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> log_softmax_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> norm_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> matmul_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> conv_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> conv_transpose_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> conv_weight_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> avg_pool_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> max_pool_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> pool_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> reshape_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> transpose_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> expand_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> slice_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> pad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> concat_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> scatter_add_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> gather_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> gather_elements_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);
std::vector<Value*> gather_nd_gradient(Builder& b, const Node& node, std::span<Value* const> gradients);

}  // namespace oclc
