#include "compiler/ops/gradients/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace oclc {
namespace {

// B(2k) / (2k), of Stirling's series of the digamma function.
constexpr double kDigamma[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
// B(2k) / (2k)!, of the Euler-Maclaurin formula.
constexpr double kZeta[] = {
    1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
// Series are used from here on.
constexpr int kFar = 10;

Term less(Term x, double value) { return x.binary("less", x.number(value)); }

}  // namespace

Term digamma(Term x) {
  // Left of 0 by its reflection at 1/2: psi(x) = psi(1 - x) - pi / tan(pi x).
  const Term left = less(x, 0);
  const Term z = select(left, 1 - x, x);
  Term sum = -(z.number(1) / z);
  for (int k = 1; k < kFar; ++k) sum = sum - z.number(1) / (static_cast<double>(k) + z);
  const Term far = static_cast<double>(kFar) + z;
  const Term square = far.number(1) / (far * far);
  Term tail = far.number(0);
  for (std::size_t k = std::size(kDigamma); k-- > 0;) tail = square * (kDigamma[k] + tail);
  const Term right = sum + far.unary("log") - 0.5 * (far.number(1) / far) - tail;
  const Term whole = x.unary("round");  // so that the angle is small near a pole
  const Term angle = std::numbers::pi * (x - whole);
  const Term reflected = right - std::numbers::pi * (angle.unary("cos") / angle.unary("sin"));
  const Term pole = x.binary("equal", whole);
  return select(left, select(pole, x.number(std::numeric_limits<double>::quiet_NaN()), reflected), right);
}

Term hurwitz_zeta(double s, Term x) {
  Term sum = x.binary("pow", x.number(-s));
  for (int k = 1; k < kFar; ++k) {
    const Term next = static_cast<double>(k) + x;
    sum = sum + next.binary("pow", next.number(-s));
  }
  const Term far = static_cast<double>(kFar) + x;
  const Term power = far.binary("pow", far.number(-s));
  const Term inverse = far.number(1) / far, square = inverse * inverse;
  // The tail's terms: B(2k) / (2k)! s (s + 1) .. (s + 2k - 2) far^(-s - 2k + 1).
  Term tail = far.number(0);
  for (std::size_t k = std::size(kZeta); k-- > 0;) {
    const double m = s + 2 * static_cast<double>(k) + 1;
    tail = kZeta[k] + (m * (m + 1)) * (square * tail);
  }
  return sum + (1 / (s - 1)) * (far * power) + 0.5 * power + s * (power * inverse * tail);
}

Term chebyshev_sum(std::span<const double> c, Term t) {
  const double seen = t.value->type.dtype == DType::f64 ? 0 : 1e-9;
  std::size_t count = c.size();
  while (count > 1 && std::fabs(c[count - 1]) < seen) --count;
  const Term twice = 2 * t;
  Term next = t.number(0), now = t.number(c[count - 1]);
  if (count == 1) return now;
  for (std::size_t i = count - 1; i-- > 1;) {
    const Term before = c[i] + (twice * now - next);
    next = now;
    now = before;
  }
  return c[0] + (t * now - next);
}

}  // namespace oclc
