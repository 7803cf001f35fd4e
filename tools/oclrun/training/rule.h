// The value of a hyper-parameter at each step.
#pragma once
#include <cstdint>
#include <string>

namespace oclc::oclrun {

// Value v(t) at step t = 0, 1, ... since the state's initial values, w = warm-up steps (0 if not given):
//   t < w          V * (t + 1) / w
//   else, u = t - w:
//   "V"                              V
//   "step:V,every=K,factor=F"        V * F^floor(u / K)
//   "linear:V,steps=N[,end=E]"       V + (E - V) * min(u / N, 1), E = 0 if not given
//   "exponential:V,factor=F[,every=K]"   V * F^(u / K), K = 1 if not given
//   "onecycle:V,steps=N"             from V / 25 to V along half a cosine in the first 30 % of N steps, then so to V / 250000
//                                    (Smith, Topin: Super-convergence, 2017)
//   "cosine:V,steps=N[,end=E]"       E + (V - E) * (1 + cos(pi * min(u / N, 1))) / 2, E = 0 if not given
// each with ",warmup=W".
class Rule {
 public:
  // Throws UsageError naming the hyper-parameter.
  Rule(const std::string& name, const std::string& text);

  const std::string& name() const { return name_; }
  double at(std::uint64_t step) const;

 private:
  enum class Shape { constant, step, cosine, linear, exponential, onecycle };
  std::string name_;
  Shape shape_ = Shape::constant;
  double value_ = 0;
  double end_ = 0;
  double factor_ = 1;
  double length_ = 1;  // `every` or `steps`
  double warmup_ = 0;
};

}  // namespace oclc::oclrun
