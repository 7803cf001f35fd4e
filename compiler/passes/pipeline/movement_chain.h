// A chain of reshapes and transposes as one permutation: the source's axes are factored into atoms such that every step only
// regroups or permutes atoms.
#pragma once
#include <vector>

#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {

struct MovementChain {
  Value* source = nullptr;
  std::size_t length = 0;                      // reshapes and transposes between source and value
  std::vector<Expr> atoms;                     // sizes, none of them 1, in the source's order
  std::vector<std::vector<std::size_t>> from;  // the source's axes as runs of atoms, in order
  std::vector<std::vector<std::size_t>> to;    // the value's axes as lists of atoms

  // The longest chain above the value that can be factored, of those of bounded length; of length 0 if there is none.
  static MovementChain above(Value* value);
  // The identity on `source`, to be regrouped by hand.
  static MovementChain at(Value* source);

  // Reshapes and transposes that `build` needs.
  std::size_t cost() const;
  // The source, rearranged to the axes `to`.
  Value* build(Rewriter& rewrite) const;
};

}  // namespace oclc
