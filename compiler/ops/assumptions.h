// Dimensions that are taken for equal while a model is read, since an operator asks for it, and that are compared when a plan's
// dimensions are bound.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

class Assumptions {
 public:
  // `symbols`: those that are bound before a plan runs. Expressions of others cannot be compared then, and are never taken for
  // equal.
  explicit Assumptions(const std::vector<Expr>& symbols);

  // True if a and b are equal, or may be: then it is noted that `node` asks for it. False if they never are, or cannot be
  // compared.
  bool equal(const Expr& a, const Expr& b, const std::string& node);
  const std::vector<Assumption>& list() const { return list_; }

 private:
  std::set<std::string, std::less<>> symbols_;
  std::vector<Assumption> list_;
};

// Of two dimensions that are taken for equal the one to go on with: a number, a symbol, or else the shorter expression.
const Expr& simpler(const Expr& a, const Expr& b);

}  // namespace oclc
