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
  // equal. `takes_for_equal`: else dimensions that are not known to be equal never are.
  Assumptions(const std::vector<Expr>& symbols, bool takes_for_equal);

  bool takes_for_equal() const { return takes_for_equal_; }
  // True if a and b are equal, or may be: then it is noted that `node` asks for it. False if they never are, or cannot be
  // compared.
  bool equal(const Expr& a, const Expr& b, const std::string& node);
  // Notes that `node` asks for a dimension of at least `least`, unless it is known or cannot be compared.
  void at_least(const Expr& size, std::int64_t least, const std::string& node);
  // A Squeeze without axes, `node`, keeps an axis of this size although it may be 1.
  void keep(const Expr& size, const std::string& node);
  bool keeps(const Expr& size) const;
  // Takes a size that is kept for 1, however dimensions are read.
  void squeeze(const Expr& size);
  const std::vector<Assumption>& list() const { return list_; }
  // Sizes beside what they are if they are large enough.
  const std::vector<Assumption>& least() const { return least_; }
  // Of the same symbols, with nothing noted: for a part of the model that does not always run.
  Assumptions without_list() const;

 private:
  bool comparable(const Expr& e) const;

  std::set<std::string, std::less<>> symbols_;
  bool takes_for_equal_;
  std::vector<Assumption> list_, least_, kept_;
};

// Of two dimensions that are taken for equal the one to go on with: a number, a symbol, or else the shorter expression.
const Expr& simpler(const Expr& a, const Expr& b);

}  // namespace oclc
