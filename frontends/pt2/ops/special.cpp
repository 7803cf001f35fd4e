// Functions of analysis: error functions and their inverses, gamma's, Bessel's, and those of signs and magnitudes.
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/ops/gradients/special.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// Chebyshev's sums. Of e^-|x| I0(x) and e^-|x| I1(x) / x for |x| = 4 (t + 1), and of these times sqrt(|x|), the latter without
// the division by x, for |x| = 16 / (t + 1).
constexpr double kI0Near[] = {
    0.33839763720473804,     -0.3046826723431984,     0.17162090152220878,     -0.094901097048047644,   0.049305284239670708,
    -0.023737414805899469,   0.010546460394594998,    -0.0043243099950505759,  0.0016394756169413358,   -0.00057637557453858237,
    0.00018850288509584166,  -5.7541950100821037e-5,  1.6448448070728897e-5,   -4.4167383584587506e-6,  1.1173875391201037e-6,
    -2.6707938539406117e-7,  6.0469950225419189e-8,   -1.300025009986248e-8,   2.6598237246823867e-9,   -5.1897956016352629e-10,
    9.6758090353732369e-11,  -1.7268262914415557e-11, 2.9550526631296398e-12,  -4.8564467831119295e-13, 7.6761854986049356e-14,
    -1.1685332877993452e-14, 1.715391285555133e-15,   -2.4312798465479547e-16, 3.3307945188222381e-17,
};
constexpr double kI0Far[] = {
    0.40224520550705442,     0.0033691164782556941,   6.889758346916824e-5,   2.8913705208347565e-6,  2.0489185894690637e-7,
    2.2666689904981781e-8,   3.3962320257083863e-9,   4.9406023882249696e-10, 1.1889147107846438e-11, -3.1499165279632414e-11,
    -1.3215811840447713e-11, -1.7941785315068061e-12, 7.1801244513836662e-13, 3.8527783827421427e-13, 1.5400862175214098e-14,
    -4.1505693472872221e-14, -9.5548466988283076e-15, 3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772191e-16,
    -2.8276239805165835e-16, 3.4612228676974611e-17,  4.46562142029676e-17,
};
constexpr double kI1Near[] = {
    0.12629359322181683,     -0.17641651835783406,    0.1026436586898471,      -0.052945981208094991,   0.024726449030626517,
    -0.010564084894626198,   0.0041564229443128882,   -0.0015135724506312531,  0.00051228595616857577,  -0.00016176081582589675,
    4.7815651075500542e-5,   -1.3273163656039436e-5,  3.4702513081376785e-6,   -8.5687202646954547e-7,  2.0032947535521353e-7,
    -4.4450591287963281e-8,  9.3815373864957718e-9,   -1.8872497517228293e-9,  3.625590281552117e-10,   -6.6634897235020277e-11,
    1.1736186298890902e-11,  -1.9839743977649437e-12, 3.2237933659455747e-13,  -5.0421855047279117e-14, 7.6006842947354069e-15,
    -1.1055969477353863e-15, 1.5536319577362005e-16,  -2.1114212143581661e-17,
};
constexpr double kI1Far[] = {
    0.38928811750914006,    -0.0097610974913614684, -0.00011058893876262372, -3.8825648088776904e-6,  -2.5122362378702089e-7,
    -2.6314688468895195e-8, -3.835380385964237e-9,  -5.5897434621965838e-10, -1.8974958123505412e-11, 3.2526035830154882e-11,
    1.4125807436613781e-11, 2.0356285441470895e-12, -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14,
    4.2724400167119514e-14, 1.0420276984128803e-14, -3.8144030724370078e-15, -1.8803547755107824e-15, 3.3082023109209283e-16,
    2.9626289976459501e-16, -3.209525921993424e-17, -4.6503053684893583e-17,
};
// Of e^(x^2) erfc(x) (1 + 2 x) for x >= 0 and t = (x - 3) / (x + 3).
constexpr double kErfcx[] = {
    1.17756257419656,       0.0053539045396156768,   -0.093775503422842091,   0.05436652555744322,    -0.018976596707845207,
    0.0044534260614627116,  -0.00063355317105531469, 1.7661719523171592e-5,   1.2841532864056671e-5,  -2.0072285659059914e-6,
    -1.8075227904148371e-7, 7.5498283438250928e-8,   1.8856685238386028e-9,   -2.699519049798364e-9,  -1.4600791199391049e-11,
    1.036160744596949e-10,  1.475715976623473e-12,   -4.2773400643969108e-12, -2.07922492859799e-13,  1.8134502003176962e-13,
    1.9734255745447388e-14, -7.2879437375926732e-15, -1.5169878690228116e-15, 2.3514112258781404e-16, 1.0006111691821668e-16,
};

Term of(AtenContext& c, Value* x) { return {&c.b, x}; }

Term result_term(AtenContext& c, std::string_view name = "self") { return of(c, c.widened(c.operand(name, c.result().dtype))); }

Outputs as_result(AtenContext& c, Term y) { return {c.b.cast(y.value, c.result().dtype)}; }

Term less(Term x, double value) { return x.binary("less", x.number(value)); }

Term both(Term a, Term b) { return a.binary("and", b); }

Term either(Term a, Term b) { return a.binary("or", b); }

Outputs digamma_of(AtenContext& c) { return as_result(c, digamma(result_term(c))); }

// d^n/du^n of cot(u), as the polynomial in cot(u) whose coefficients are given back: P' (-1 - cot^2) each time.
std::vector<double> cotangent_derivative(std::int64_t n) {
  std::vector<double> p{0, 1};
  for (; n > 0; --n) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (std::size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = std::move(next);
  }
  return p;
}

// The derivatives of the digamma function: (-1)^(n + 1) n! zeta(n + 1, x); left of 0 by its reflection at 1/2, so that
// psi(1 - x) - psi(x) = pi cot(pi x) n times derived.
Outputs polygamma(AtenContext& c) {
  const std::int64_t n = c.integer("n");
  const Term x = result_term(c);
  if (n == 0) return as_result(c, digamma(x));
  if (n < 0 || n > 20) c.refuse("polygamma of an order from 0 to 20", std::to_string(n));
  const auto order = static_cast<double>(n);
  const double factor = (n % 2 == 0 ? -1 : 1) * std::tgamma(order + 1);
  const Term left = less(x, 0);
  const Term right = factor * hurwitz_zeta(order + 1, select(left, 1 - x, x));
  const Term whole = x.unary("round"), angle = std::numbers::pi * (x - whole);  // small near a pole
  const Term cotangent = angle.unary("cos") / angle.unary("sin");
  const std::vector<double> p = cotangent_derivative(n);
  Term sum = x.number(p.back());
  for (std::size_t k = p.size() - 1; k-- > 0;) sum = p[k] + sum * cotangent;
  const Term reflected = (n % 2 == 0 ? right : -right) - std::pow(std::numbers::pi, order + 1) * sum;
  const Term pole = x.number(std::copysign(std::numeric_limits<double>::infinity(), factor));
  return as_result(c, select(left, select(x.binary("equal", whole), pole, reflected), right));
}

// Bessel's functions of the first kind, of the imaginary argument, of order 0 or 1; scaled: times e^-|x|.
Outputs bessel(AtenContext& c) {
  const Term x = result_term(c), size = x.unary("abs");
  const bool first = c.core().starts_with("i1"), scaled = c.core().ends_with("e");
  const Term near = 0.25 * size - 1;
  const Term kept = select(less(size, 8), size.number(8), size);
  const Term far = 16 * (kept.number(1) / kept) - 1;
  Term small = first ? chebyshev_sum(kI1Near, near) : chebyshev_sum(kI0Near, near);
  const Term large = (first ? chebyshev_sum(kI1Far, far) : chebyshev_sum(kI0Far, far)) * kept.unary("rsqrt");
  if (first) small = small * size;
  Term y = select(size.binary("less_equal", size.number(8)), small, large);
  if (!scaled) y = y * size.unary("exp");
  return as_result(c, (first ? select(less(x, 0), -y, y) : y));
}

// e^(x^2) erfc(x).
Term scaled_erfc(Term x) {
  const Term size = x.unary("abs");
  const Term kept = size.binary("min", size.number(1e30));  // beyond, the quotient would be none
  const Term t = 1 - 6 * (kept.number(1) / (3 + kept));
  const Term right = chebyshev_sum(kErfcx, t) / (1 + 2 * size);
  return select(less(x, 0), 2 * (x * x).unary("exp") - right, right);
}

Outputs erfcx(AtenContext& c) { return as_result(c, scaled_erfc(result_term(c))); }

double polynomial_of_erfinv(bool near, int k) {
  // Coefficients of M. Giles, Approximating the erfinv function (GPU Computing Gems, 2011), highest first.
  constexpr double kNear[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                              -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double kFar[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                             -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  return near ? kNear[k] : kFar[k];
}

// y with erf(y) = x, given w = -log((1 - x) (1 + x)), by polynomials good for single precision.
Term inverse_erf_from(Term w, Term x) {
  const Term a = w - 2.5, b = w.unary("sqrt") - 3;
  Term near = a.number(polynomial_of_erfinv(true, 0)), far = b.number(polynomial_of_erfinv(false, 0));
  for (int k = 1; k < 9; ++k) {
    near = polynomial_of_erfinv(true, k) + near * a;
    far = polynomial_of_erfinv(false, k) + far * b;
  }
  return select(less(w, 5), near, far) * x;
}

// In double precision two steps of Newton's method follow.
Term inverse_erf(Term x) {
  Term y = inverse_erf_from(-((1 - x) * (1 + x)).unary("log"), x);
  if (x.value->type.dtype == DType::f64)
    for (int step = 0; step < 2; ++step)
      y = y - (y.unary("erf") - x) / ((2 * std::numbers::inv_sqrtpi) * (-(y * y)).unary("exp"));
  const Term end = x.unary("abs").binary("equal", x.number(1));
  return select(end, std::numeric_limits<double>::infinity() * x, y);
}

// The normal distribution's quantile of p: sqrt(2) erfinv(2 p - 1). In the tails by Newton's method on the logarithm of
// erfc(z) / 2 = p, from z = sqrt(L - log(4 pi L) / 2) with L = -log(p).
Outputs normal_quantile(AtenContext& c) {
  constexpr double kTail = 0.03;
  const Term p = result_term(c), x = 2 * p - 1, tail = p.binary("min", 1 - p);
  Term near = inverse_erf_from(-(4 * (p * (1 - p))).unary("log"), x);
  if (p.value->type.dtype == DType::f64)
    for (int step = 0; step < 2; ++step)
      near = near - (near.unary("erf") - x) / ((2 * std::numbers::inv_sqrtpi) * (-(near * near)).unary("exp"));
  const Term depth = -tail.unary("log");
  Term far = (depth - 0.5 * ((4 * std::numbers::pi) * depth).unary("log")).unary("sqrt");
  for (int step = 0; step < 3; ++step) {
    const Term scaled = scaled_erfc(far);
    far = far + (0.5 / std::numbers::inv_sqrtpi) * (scaled * ((0.5 * scaled).unary("log") - far * far + depth));
  }
  const Term y = select(less(tail, kTail), select(less(x, 0), -far, far), near);
  const Term end = tail.binary("equal", p.number(0));
  return as_result(c, select(end, std::numeric_limits<double>::infinity() * x, std::numbers::sqrt2 * y));
}

// sin(x) / x, by its series near 0.
Outputs spherical_bessel(AtenContext& c) {
  constexpr double kSeries[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800};
  const Term x = result_term(c, c.has("x") ? "x" : "self"), size = x.unary("abs"), square = x * x;
  const Term close = less(size, 0.5);
  Term near = x.number(kSeries[5]);
  for (int k = 5; k-- > 0;) near = kSeries[k] + square * near;
  const Term far = x.unary("sin") / select(close, x.number(1), x);
  return as_result(c, select(x.unary("is_inf"), x.number(0), select(close, near, far)));
}

Outputs erfinv(AtenContext& c) { return as_result(c, inverse_erf(result_term(c))); }

// Whether the sign is minus, of zeros too: 1 / -0 is below 0.
Term is_minus(Term x) {
  if (!is_float(x.value->type.dtype)) return less(x, 0);
  return either(less(x, 0), both(x.binary("equal", x.number(0)), less(x.unary("reciprocal"), 0)));
}

Outputs signbit(AtenContext& c) {
  Value* x = c.tensor("self");
  if (x->type.dtype == DType::boolean) x = c.b.cast(x, DType::u8);
  return as_result(c, is_minus(of(c, x)));
}

Outputs copysign(AtenContext& c) {
  const Term size = result_term(c).unary("abs"), sign = result_term(c, "other");
  return as_result(c, select(is_minus(sign), -size, size));
}

// sqrt(a^2 + b^2) without squares that overflow.
Outputs hypotenuse(AtenContext& c) {
  const Term a = result_term(c).unary("abs"), b = result_term(c, "other").unary("abs");
  const Term high = a.binary("max", b), low = a.binary("min", b);
  const Term ratio = select(high.binary("equal", high.number(0)), high, low / high);
  const Term infinite = high.unary("is_inf");
  return as_result(c, select(infinite, high, high * (1 + ratio * ratio).unary("sqrt")));
}

// The larger or smaller, and of a number and NaN the number.
Outputs extreme_number(AtenContext& c) {
  const DType dtype = c.result().dtype;
  if (dtype == DType::boolean)
    return {c.b.call(c.core() == "max" ? "or" : "and", {c.operand("self", dtype), c.operand("other", dtype)})};
  const Term a = result_term(c), b = result_term(c, "other");
  const Term y = a.binary(c.core(), b);
  if (!is_float(dtype)) return as_result(c, y);
  return as_result(c, select(a.unary("is_nan"), b, select(b.unary("is_nan"), a, y)));
}

// 0, or pi of numbers below 0.
Outputs angle(AtenContext& c) {
  const Term x = result_term(c);
  const Term y = select(less(x, 0), x.number(std::numbers::pi), x.number(0));
  return as_result(c, select(x.unary("is_nan"), x, y));
}

// To a number of decimal digits, ties to even.
Outputs round_to_decimals(AtenContext& c) {
  Value* x = c.tensor("self");
  if (!is_float(x->type.dtype)) return {x};
  const std::int64_t digits = c.integer("decimals");
  const Term a = of(c, x), power = a.number(std::pow(10.0, static_cast<double>(std::abs(digits))));
  const Term scaled = digits < 0 ? a / power : a * power;
  const Term rounded = scaled.unary("round");
  return as_result(c, (digits < 0 ? rounded * power : rounded / power));
}

Outputs shifted(AtenContext& c) {
  const DType dtype = c.result().dtype;
  return {c.b.call(c.core(), {c.operand("self", dtype), c.operand("other", dtype)})};
}

constexpr OpRow kSpecialRows[] = {
    {"aten.digamma.default", digamma_of},
    {"aten.special_digamma.default", digamma_of},
    {"aten.polygamma.default", polygamma},
    {"aten.i0.default", bessel, "i0"},
    {"aten.special_i0.default", bessel, "i0"},
    {"aten.special_i0e.default", bessel, "i0e"},
    {"aten.special_i1.default", bessel, "i1"},
    {"aten.special_i1e.default", bessel, "i1e"},
    {"aten.special_erfcx.default", erfcx},
    {"aten.erfinv.default", erfinv},
    {"aten.special_ndtri.default", normal_quantile},
    {"prims.ndtri.default", normal_quantile},
    {"aten.special_spherical_bessel_j0.default", spherical_bessel},
    {"prims.spherical_bessel_j0.default", spherical_bessel},
    {"aten.signbit.default", signbit},
    {"aten.copysign.Tensor", copysign},
    {"aten.copysign.Scalar", copysign},
    {"aten.hypot.default", hypotenuse},
    {"aten.fmax.default", extreme_number, "max"},
    {"aten.fmin.default", extreme_number, "min"},
    {"aten.angle.default", angle},
    {"aten.round.decimals", round_to_decimals},
    {"aten.bitwise_left_shift.Tensor", shifted, "shift_left"},
    {"aten.bitwise_left_shift.Tensor_Scalar", shifted, "shift_left"},
    {"aten.bitwise_left_shift.Scalar_Tensor", shifted, "shift_left"},
    {"aten.bitwise_right_shift.Tensor", shifted, "shift_right"},
    {"aten.bitwise_right_shift.Tensor_Scalar", shifted, "shift_right"},
    {"aten.bitwise_right_shift.Scalar_Tensor", shifted, "shift_right"},
    {"aten.__lshift__.Tensor", shifted, "shift_left"},
    {"aten.__lshift__.Scalar", shifted, "shift_left"},
    {"aten.__rshift__.Tensor", shifted, "shift_right"},
    {"aten.__rshift__.Scalar", shifted, "shift_right"},
};

}  // namespace

std::span<const OpRow> special_rows() { return kSpecialRows; }

}  // namespace oclc::pt2
