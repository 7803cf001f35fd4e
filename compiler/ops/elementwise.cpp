// Elementwise operators: one row each. Kernel text works on scalars and on vectors alike. Truth values inside kernels are
// OpenCL's: an int that is 0 or 1 for scalars, lanes of 0 or -1 for vectors; the functions named oclc_* and floor_* stand in
// templates/prelude.cl.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "compiler/ops/elementwise_rules.h"
#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/gradients/special.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/random.h"

namespace oclc {
namespace {

using I = std::int64_t;
using U = std::uint64_t;

double nan_max(double a, double b) { return a > b || a != a ? a : b; }
double nan_min(double a, double b) { return a < b || a != a ? a : b; }
I wrap(U bits) { return static_cast<I>(bits); }
std::uint32_t word(I a) { return static_cast<std::uint32_t>(a); }

I int_div(I a, I b) { return b == 0 ? 0 : (b == -1 ? wrap(U{0} - static_cast<U>(a)) : a / b); }
I int_fmod(I a, I b) { return b == 0 || b == -1 ? 0 : a % b; }
I int_mod(I a, I b) {
  const I r = int_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
I int_pow(I a, I b) {
  if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
  U result = 1, base = static_cast<U>(a);
  for (U e = static_cast<U>(b); e != 0; e >>= 1) {
    if (e & 1u) result *= base;
    base *= base;
  }
  return wrap(result);
}
double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define OCLC_F(expression) \
  +[](double a, [[maybe_unused]] double b, [[maybe_unused]] double c) -> double { return (expression); }
#define OCLC_I(expression) +[](I a, [[maybe_unused]] I b, [[maybe_unused]] I c) -> I { return (expression); }
// On the bits of u64 operands.
#define OCLC_U(expression)                                  \
  +[](I sa, I sb, I) -> I {                                 \
    const U a = static_cast<U>(sa), b = static_cast<U>(sb); \
    return static_cast<I>(expression);                      \
  }

// The gradients of the operands, in terms of that of the result, g, of the result y and of the operands a, b and c.
#define OCLC_GRADIENT(derivative)                                                                     \
  +[](Builder& builder, const Node& node, std::span<Value* const> gradients) -> std::vector<Value*> { \
    return elementwise_gradient(builder, node, gradients[0], derivative);                             \
  }
// Of operators whose derivatives are infinite at some operands.
#define OCLC_STEEP_GRADIENT(derivative)                                                               \
  +[](Builder& builder, const Node& node, std::span<Value* const> gradients) -> std::vector<Value*> { \
    return steep_gradient(builder, node, gradients[0], derivative);                                   \
  }
#define OCLC_STEEP(...)                                                                                                        \
  OCLC_STEEP_GRADIENT((+[]([[maybe_unused]] Term g, [[maybe_unused]] Term y, [[maybe_unused]] Term a, [[maybe_unused]] Term b, \
                           [[maybe_unused]] Term c) -> std::vector<Term> { return {__VA_ARGS__}; }))
#define OCLC_D(...)                                                                                                      \
  OCLC_GRADIENT((+[]([[maybe_unused]] Term g, [[maybe_unused]] Term y, [[maybe_unused]] Term a, [[maybe_unused]] Term b, \
                     [[maybe_unused]] Term c) -> std::vector<Term> { return {__VA_ARGS__}; }))

// name, arity, accepted dtypes, formula, {float text, integer text, reference on floats, on integers, on u64, gives bool,
// flops}, gradient
constexpr ElementwiseRow kElementwiseRows[] = {
    // With a space: operands may be negative numbers.
    {"neg", 1, Accepts::numbers, "-a", {"(- a)", "(- a)", OCLC_F(-a), OCLC_I(wrap(U{0} - static_cast<U>(a)))}, OCLC_D(-g)},
    {"abs",
     1,
     Accepts::numbers,
     "|a|",
     {"fabs(a)", "oclc_abs(a)", OCLC_F(std::fabs(a)), OCLC_I(a < 0 ? wrap(U{0} - static_cast<U>(a)) : a), OCLC_U(a + 0 * b)},
     OCLC_D(g* a.unary("sign"))},
    {"sign",
     1,
     Accepts::numbers,
     "-1, 0 or 1; NaN stays",
     {"oclc_sign(a)", "oclc_sign(a)", OCLC_F(a > 0 ? 1 : (a < 0 ? -1 : a)), OCLC_I((a > 0) - (a < 0)), OCLC_U(a + 0 * b != 0)},
     no_gradient},
    {"exp", 1, Accepts::floats, "e^a", {"oclc_exp(a)", {}, OCLC_F(std::exp(a)), nullptr, nullptr, false, 10}, OCLC_STEEP(g* y)},
    {"log",
     1,
     Accepts::floats,
     "natural logarithm",
     {"log(a)", {}, OCLC_F(std::log(a)), nullptr, nullptr, false, 10},
     OCLC_STEEP(g / a)},
    {"sqrt",
     1,
     Accepts::floats,
     "a^(1/2)",
     {"sqrt(a)", {}, OCLC_F(std::sqrt(a)), nullptr, nullptr, false, 4},
     OCLC_STEEP(0.5 * g / y)},
    {"rsqrt",
     1,
     Accepts::floats,
     "a^(-1/2)",
     {"(1 / sqrt(a))", {}, OCLC_F(1 / std::sqrt(a)), nullptr, nullptr, false, 8},
     OCLC_STEEP(-0.5 * g * (y * y * y))},
    {"reciprocal",
     1,
     Accepts::floats,
     "1 / a",
     {"(1 / a)", {}, OCLC_F(1 / a), nullptr, nullptr, false, 4},
     OCLC_STEEP(-(g*(y* y)))},
    {"floor", 1, Accepts::floats, "largest integer <= a", {"floor(a)", {}, OCLC_F(std::floor(a))}, no_gradient},
    {"ceil", 1, Accepts::floats, "smallest integer >= a", {"ceil(a)", {}, OCLC_F(std::ceil(a))}, no_gradient},
    {"round", 1, Accepts::floats, "nearest integer, ties to even", {"rint(a)", {}, OCLC_F(std::nearbyint(a))}, no_gradient},
    {"sin",
     1,
     Accepts::floats,
     "sine",
     {"oclc_sin(a)", {}, OCLC_F(std::sin(a)), nullptr, nullptr, false, 15},
     OCLC_D(g* a.unary("cos"))},
    {"cos",
     1,
     Accepts::floats,
     "cosine",
     {"oclc_cos(a)", {}, OCLC_F(std::cos(a)), nullptr, nullptr, false, 15},
     OCLC_D(-(g* a.unary("sin")))},
    {"tan",
     1,
     Accepts::floats,
     "tangent",
     {"oclc_tan(a)", {}, OCLC_F(std::tan(a)), nullptr, nullptr, false, 20},
     OCLC_D(g*(1 + y * y))},
    {"asin",
     1,
     Accepts::floats,
     "inverse sine",
     {"asin(a)", {}, OCLC_F(std::asin(a)), nullptr, nullptr, false, 20},
     OCLC_STEEP(g*((1 - a) * (1 + a)).unary("rsqrt"))},
    {"acos",
     1,
     Accepts::floats,
     "inverse cosine",
     {"acos(a)", {}, OCLC_F(std::acos(a)), nullptr, nullptr, false, 20},
     OCLC_STEEP(-(g*((1 - a) * (1 + a)).unary("rsqrt")))},
    {"atan",
     1,
     Accepts::floats,
     "inverse tangent",
     {"atan(a)", {}, OCLC_F(std::atan(a)), nullptr, nullptr, false, 20},
     OCLC_D(g / (1 + a * a))},
    {"sinh",
     1,
     Accepts::floats,
     "hyperbolic sine",
     {"sinh(a)", {}, OCLC_F(std::sinh(a)), nullptr, nullptr, false, 20},
     OCLC_D(g* a.unary("cosh"))},
    {"cosh",
     1,
     Accepts::floats,
     "hyperbolic cosine",
     {"cosh(a)", {}, OCLC_F(std::cosh(a)), nullptr, nullptr, false, 20},
     OCLC_D(g* a.unary("sinh"))},
    {"asinh",
     1,
     Accepts::floats,
     "inverse hyperbolic sine",
     {"asinh(a)", {}, OCLC_F(std::asinh(a)), nullptr, nullptr, false, 20},
     OCLC_D(g*(1 + a * a).unary("rsqrt"))},
    {"acosh",
     1,
     Accepts::floats,
     "inverse hyperbolic cosine",
     {"acosh(a)", {}, OCLC_F(std::acosh(a)), nullptr, nullptr, false, 20},
     OCLC_STEEP(g*((a - 1) * (1 + a)).unary("rsqrt"))},
    {"atanh",
     1,
     Accepts::floats,
     "inverse hyperbolic tangent",
     {"atanh(a)", {}, OCLC_F(std::atanh(a)), nullptr, nullptr, false, 20},
     OCLC_STEEP(g / ((1 - a) * (1 + a)))},
    {"tanh",
     1,
     Accepts::floats,
     "hyperbolic tangent",
     {"oclc_tanh(a)", {}, OCLC_F(std::tanh(a)), nullptr, nullptr, false, 15},
     OCLC_D(g*(1 - y * y))},
    {"sigmoid",
     1,
     Accepts::floats,
     "1 / (1 + e^-a)",
     {"oclc_sigmoid(a)", {}, OCLC_F(1 / (1 + std::exp(-a))), nullptr, nullptr, false, 12},
     OCLC_D(g*(y*(1 - y)))},
    {"erf",
     1,
     Accepts::floats,
     "error function",
     {"oclc_erf(a)", {}, OCLC_F(std::erf(a)), nullptr, nullptr, false, 20},
     OCLC_D((2 * std::numbers::inv_sqrtpi) * g * (-(a * a)).unary("exp"))},
    {"erfc",
     1,
     Accepts::floats,
     "1 - error function",
     {"erfc(a)", {}, OCLC_F(std::erfc(a)), nullptr, nullptr, false, 30},
     OCLC_D((-2 * std::numbers::inv_sqrtpi) * g * (-(a * a)).unary("exp"))},
    {"lgamma",
     1,
     Accepts::floats,
     "log|gamma(a)|",
     {"lgamma(a)", {}, OCLC_F(std::lgamma(a)), nullptr, nullptr, false, 40},
     OCLC_D(g* digamma(a))},
    {"softplus",
     1,
     Accepts::floats,
     "log(1 + e^a)",
     {"oclc_softplus(a)", {}, OCLC_F(nan_max(a, 0) + std::log1p(std::exp(-std::fabs(a)))), nullptr, nullptr, false, 20},
     OCLC_D(g* a.unary("sigmoid"))},
    {"relu",
     1,
     Accepts::numbers,
     "max(a, 0)",
     {"oclc_relu(a)", "oclc_relu(a)", OCLC_F(a < 0 ? 0 : a), OCLC_I(a < 0 ? 0 : a), OCLC_U(a + 0 * b)},
     OCLC_D(select(y.binary("less_equal", y.number(0)), g.number(0), g))},
    {"not", 1, Accepts::booleans, "logical not", {{}, "(!a)", nullptr, OCLC_I(a == 0), nullptr, true}, no_gradient},
    {"is_nan", 1, Accepts::floats, "a is NaN", {"isnan(a)", {}, OCLC_F(a != a), nullptr, nullptr, true}, no_gradient},
    {"is_inf",
     1,
     Accepts::floats,
     "a is infinite",
     {"isinf(a)", {}, OCLC_F(std::isinf(a)), nullptr, nullptr, true},
     no_gradient},
    {"add",
     2,
     Accepts::numbers,
     "a + b",
     {"(a + b)", "(a + b)", OCLC_F(a + b), OCLC_I(wrap(static_cast<U>(a) + static_cast<U>(b)))},
     OCLC_D(g, g)},
    {"sub",
     2,
     Accepts::numbers,
     "a - b",
     {"(a - b)", "(a - b)", OCLC_F(a - b), OCLC_I(wrap(static_cast<U>(a) - static_cast<U>(b)))},
     OCLC_D(g, -g)},
    {"mul",
     2,
     Accepts::numbers,
     "a * b",
     {"(a * b)", "(a * b)", OCLC_F(a* b), OCLC_I(wrap(static_cast<U>(a) * static_cast<U>(b)))},
     OCLC_D(g* b, g* a)},
    {"div",
     2,
     Accepts::numbers,
     "a / b; integers truncate, x / 0 = 0",
     {"(a / b)", "oclc_div(a, b)", OCLC_F(a / b), OCLC_I(int_div(a, b)), OCLC_U(b == 0 ? 0 : a / b), false, 4},
     OCLC_GRADIENT(div_derivative)},
    {"pow",
     2,
     Accepts::numbers,
     "a^b",
     {"pow(a, b)", "oclc_pow(a, b)", OCLC_F(std::pow(a, b)), OCLC_I(int_pow(a, b)), nullptr, false, 30},
     OCLC_STEEP_GRADIENT(pow_derivative)},
    {"max",
     2,
     Accepts::numbers,
     "the larger; NaN if either is",
     {"oclc_max(a, b)", "max(a, b)", OCLC_F(nan_max(a, b)), OCLC_I(a > b ? a : b), OCLC_U(a > b ? a : b)},
     OCLC_GRADIENT(max_derivative)},
    {"min",
     2,
     Accepts::numbers,
     "the smaller; NaN if either is",
     {"oclc_min(a, b)", "min(a, b)", OCLC_F(nan_min(a, b)), OCLC_I(a < b ? a : b), OCLC_U(a < b ? a : b)},
     OCLC_GRADIENT(min_derivative)},
    {"mod",
     2,
     Accepts::numbers,
     "a - b * floor(a / b): the divisor's sign",
     {"oclc_mod(a, b)", "oclc_mod(a, b)", OCLC_F(float_mod(a, b)), OCLC_I(int_mod(a, b)), OCLC_U(b == 0 ? 0 : a % b), false, 6},
     OCLC_D(g, -(g*(a / b).unary("floor")))},
    {"fmod",
     2,
     Accepts::numbers,
     "a - b * trunc(a / b): the dividend's sign",
     {"fmod(a, b)", "oclc_rem(a, b)", OCLC_F(std::fmod(a, b)), OCLC_I(int_fmod(a, b)), OCLC_U(b == 0 ? 0 : a % b), false, 6},
     OCLC_GRADIENT(fmod_derivative)},
    {"and", 2, Accepts::booleans, "both", {{}, "(a && b)", nullptr, OCLC_I(a != 0 && b != 0), nullptr, true}, no_gradient},
    {"or", 2, Accepts::booleans, "either", {{}, "(a || b)", nullptr, OCLC_I(a != 0 || b != 0), nullptr, true}, no_gradient},
    {"xor",
     2,
     Accepts::booleans,
     "one of them",
     {{}, "(!a != !b)", nullptr, OCLC_I((a != 0) != (b != 0)), nullptr, true},
     no_gradient},
    {"equal", 2, Accepts::any, "a = b", {"(a == b)", "(a == b)", OCLC_F(a == b), OCLC_I(a == b), nullptr, true}, no_gradient},
    {"less",
     2,
     Accepts::numbers,
     "a < b",
     {"(a < b)", "(a < b)", OCLC_F(a < b), OCLC_I(a < b), OCLC_U(a < b), true},
     no_gradient},
    {"less_equal",
     2,
     Accepts::numbers,
     "a <= b",
     {"(a <= b)", "(a <= b)", OCLC_F(a <= b), OCLC_I(a <= b), OCLC_U(a <= b), true},
     no_gradient},
    {"greater",
     2,
     Accepts::numbers,
     "a > b",
     {"(a > b)", "(a > b)", OCLC_F(a > b), OCLC_I(a > b), OCLC_U(a > b), true},
     no_gradient},
    {"greater_equal",
     2,
     Accepts::numbers,
     "a >= b",
     {"(a >= b)", "(a >= b)", OCLC_F(a >= b), OCLC_I(a >= b), OCLC_U(a >= b), true},
     no_gradient},
    {"where",
     3,
     Accepts::condition,
     "a ? b : c",
     {"(a ? b : c)", "(a ? b : c)", OCLC_F(a != 0 ? b : c), OCLC_I(a != 0 ? b : c)},
     OCLC_D(Term(), select(a, g, g.number(0)), select(a, g.number(0), g))},
    {"fma",
     3,
     Accepts::numbers,
     "a * b + c",
     {"fma(a, b, c)", "(a * b + c)", OCLC_F(std::fma(a, b, c)),
      OCLC_I(wrap(static_cast<U>(a) * static_cast<U>(b) + static_cast<U>(c))), nullptr, false, 2},
     OCLC_D(g* b, g* a, g)},
    {"bit_and", 2, Accepts::integers, "bits set in both", {{}, "(a & b)", nullptr, OCLC_I(a& b)}, no_gradient},
    {"bit_or", 2, Accepts::integers, "bits set in one of them or both", {{}, "(a | b)", nullptr, OCLC_I(a | b)}, no_gradient},
    {"bit_xor", 2, Accepts::integers, "bits set in one of them", {{}, "(a ^ b)", nullptr, OCLC_I(a ^ b)}, no_gradient},
    {"bit_not", 1, Accepts::integers, "bits not set", {{}, "(~a)", nullptr, OCLC_I(~a)}, no_gradient},
    {"shift_left",
     2,
     Accepts::integers,
     "a * 2^b, wrapping; 0 for shifts by the width or more",
     {{}, "oclc_shift_left(a, b)", nullptr, OCLC_I(b<0 || b> 63 ? 0 : wrap(static_cast<U>(a) << static_cast<U>(b)))},
     no_gradient},
    {"shift_right",
     2,
     Accepts::integers,
     "a / 2^b rounded down; 0, or -1 of negative numbers, for shifts by the width or more",
     {{}, "oclc_shift_right(a, b)", nullptr, OCLC_I(b<0 || b> 63 ? (a < 0 ? -1 : 0) : a >> b), OCLC_U(b > 63 ? 0 : a >> b)},
     no_gradient},
    {"random_bits",
     3,
     Accepts::words,
     "first word of Philox4x32-10 of the counter (a, b, 0, 0) under the key (c, 0)",
     {{}, "oclc_random_bits(a, b, c)", nullptr, OCLC_I(random_bits(word(a), word(b), word(c))), nullptr, false, 100},
     no_gradient},
};

#undef OCLC_F
#undef OCLC_I
#undef OCLC_U
#undef OCLC_D
#undef OCLC_GRADIENT

}  // namespace

std::span<const OpDef> elementwise_ops() {
  static const std::vector<OpDef> defs = [] {
    std::vector<OpDef> list;
    for (const ElementwiseRow& row : kElementwiseRows) list.push_back(elementwise_def(row));
    return list;
  }();
  return defs;
}

}  // namespace oclc
