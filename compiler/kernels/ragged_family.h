// Kernels that are equal but for sizes, places and numbers, as one kernel that has these as arguments: one text computes all of
// them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// What kernels of one family have in common. Each is of a family of its own if `structure` is empty: kernels that sum,
// products, and those whose indices are not linear in their axes.
struct FamilyKey {
  std::string structure;  // all but sizes, places and numbers
  // A character for each coefficient of an axis in an index: '0', 'c' where what later axes reach lies without gaps, 'p' for
  // others, '?' where the axis has one point alone, so that any coefficient serves.
  std::string strides;

  // Whether one text serves both as well as two would; if so, `this` becomes what both have in common.
  bool take(const FamilyKey& other);
};

FamilyKey family_key(const Kernel& kernel);

struct Family {
  // Of the first member's operands. Sizes and places that differ are symbols, each a row of `sizes`; constants that differ are
  // Kernel::numbers, each a row of `numbers`.
  Kernel kernel;
  std::vector<std::string> symbols;          // of Kernel::model_symbols(), by row of `sizes`
  std::vector<std::vector<Expr>> sizes;      // by symbol and member
  std::vector<std::vector<double>> numbers;  // by number and member
};

// Of members whose keys take one another.
Family family_of(std::span<const Kernel* const> members);

}  // namespace oclc
