// Sums of products of tensors whose axes have letters, as einsum's: matrix products where both operands share a summed letter.
#pragma once
#include <string>

#include "compiler/ops/builder.h"

namespace oclc::custom {

using Letters = std::string;

struct Lettered {
  Value* value;
  Letters letters;  // one an axis
};

inline bool holds(const Letters& letters, char letter) { return letters.find(letter) != Letters::npos; }

// Sums over the letters that `needed` has not.
Lettered summed(Builder& b, Lettered x, const Letters& needed);
// With axes in the order of `letters`; those that it lacks have size 1.
Value* arranged(Builder& b, const Lettered& x, const Letters& letters);
// The product, summed over the letters that `needed` has not. CompileError if axes of one letter differ in size and neither has
// size 1.
Lettered product_of(Builder& b, const Lettered& x, const Lettered& y, const Letters& needed);

}  // namespace oclc::custom
