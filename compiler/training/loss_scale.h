// Loss scaling (Micikevicius et al.: Mixed Precision Training, 2018): gradients in f16 are those of the loss times a power of
// two, so that small ones do not vanish. The factor is state: a step whose gradients are not all finite changes nothing else
// and halves it; it doubles after a number of good steps.
#pragma once
#include <vector>

#include "compiler/training/training.h"

namespace oclc {

class LossScale {
 public:
  // Adds the entry's inputs for the state.
  LossScale(Graph& graph, const NamedNumbers& numbers);

  Value* scaled(Builder& b, Value* loss) const;
  // The flat gradients of the loss from those of the scaled one.
  Value* unscaled(Builder& b, Value* gradients) const;
  // True if a number among the flat gradients is infinite or NaN.
  static Value* found_bad(Builder& b, Value* gradients);
  // The state's new values, as outputs of the entry.
  void update(Graph& graph, Builder& b, Value* bad) const;

  // "loss_scale", its "loss_scale.good_steps", and "loss_scale.growth_interval", which run time may change.
  static std::vector<StateVariable> states(const NamedNumbers& numbers);

 private:
  Value *scale_, *good_steps_, *interval_;
};

}  // namespace oclc
