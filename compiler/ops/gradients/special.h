// Functions of analysis in terms of elementwise operators.
#pragma once
#include <span>

#include "compiler/ops/gradients/gradient_rules.h"

namespace oclc {

// The derivative of log|gamma|; NaN at negative integers, -infinity at 0.
Term digamma(Term x);

// sum(k >= 0: (x + k)^-s) for a constant s > 1 and x > 0 (Hurwitz's zeta function).
Term hurwitz_zeta(double s, Term x);

// c[0] + c[1] T1(t) + c[2] T2(t) + .. with Chebyshev's polynomials of t in [-1, 1], by Clenshaw's recurrence. Terms that the
// element type's precision does not see are left out.
Term chebyshev_sum(std::span<const double> c, Term t);

}  // namespace oclc
