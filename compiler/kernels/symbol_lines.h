// The symbols of expressions as lines of a text form: what a reader of the text must know of them.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"

namespace oclc {

class SymbolLines {
 public:
  // `keyword` begins each line, behind `indent`.
  SymbolLines(std::string_view keyword, std::string_view indent) : keyword_(keyword), indent_(indent) {}

  // Symbols of that name have no line.
  void leave_out(std::string name) { known_.insert(std::move(name)); }
  // A line for each symbol that has none, those of an axis' extent before it:
  //   symbol N, symbol N in [2, 8], symbol N >= 0, symbol N typical 64, symbol k < N (an axis)
  void add(const Expr& e);
  const std::string& text() const { return text_; }

 private:
  std::string_view keyword_, indent_;
  std::set<std::string> known_;
  std::string text_;
};

}  // namespace oclc
