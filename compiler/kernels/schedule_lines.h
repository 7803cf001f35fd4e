// What lines of kernels and of schedules have in common in the text form; see parse_schedule.h.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/parse_literals.h"

namespace oclc {

std::string quotes(std::string_view text);  // 'text'

// Functions read from the scanner.
class ScheduleLines {
 public:
  explicit ScheduleLines(Scanner& in) : in_(in), literals_(in) {}

  // A symbol and what is known of it, which expressions may name from there on.
  Expr symbol();
  // All of `text`, which the scanner has read; its symbols are known.
  Expr expression(std::string_view text);
  Expr expression_to_end() { return expression(in_.rest_of_line()); }
  // Fails unless the symbols of `e` are known.
  void check_symbols(const Expr& e);
  int number(const std::string& wanted);
  void want(std::string_view word);  // takes it
  DType dtype() { return dtype_named(in_.word("an element type")); }
  DType dtype_named(std::string_view name);
  // 3[offset]
  std::pair<int, Expr> place();
  // "a", "b", ..
  std::vector<std::string> quoted_texts();
  // Nothing unless `of` comes next.
  std::vector<std::string> sources() { return in_.take_word("of") ? quoted_texts() : std::vector<std::string>(); }

  Literals& literals() { return literals_; }
  Substitution& symbols() { return literals_.symbols; }

 protected:
  Scanner& in_;
  Literals literals_;
};

}  // namespace oclc
