#include "compiler/kernels/schedule_lines.h"

#include <fmt/format.h>

#include <charconv>

namespace oclc {

std::string quotes(std::string_view text) { return fmt::format("'{}'", text); }

Expr ScheduleLines::symbol() {
  std::string name = in_.take('%') ? "%" : "";
  name += in_.word("a symbol's name");
  Expr made;
  if (in_.take('<')) {
    made = Expr::axis(name, expression_to_end());
  } else {
    const auto [lo, hi] = literals_.bounds();
    made = Expr::symbol(name, lo, hi, in_.take_word("typical") ? literals_.integer() : 0);
  }
  if (!symbols().emplace(name, made).second) in_.fail("a new symbol", "a second " + name);
  return made;
}

Expr ScheduleLines::expression(std::string_view text) {
  Expr e = literals_.expression(text);
  check_symbols(e);
  return e;
}

void ScheduleLines::check_symbols(const Expr& e) {
  for (const std::string& name : e.symbols()) {
    if (symbols().count(name) == 0) in_.fail("a symbol or axis defined before", quotes(name));
  }
}

int ScheduleLines::number(const std::string& wanted) {
  const std::string text = in_.word(wanted);
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) in_.fail(wanted, quotes(text));
  return value;
}

std::pair<int, Expr> ScheduleLines::place() {
  const int buffer = number("a buffer's number");
  in_.expect('[');
  return {buffer, expression(in_.enclosed(']'))};
}

void ScheduleLines::want(std::string_view word) {
  if (!in_.take_word(word)) in_.fail(quotes(word));
}

DType ScheduleLines::dtype_named(std::string_view name) {
  const auto known = dtype_of(name);
  if (!known) in_.fail("an element type", quotes(name));
  return *known;
}

std::vector<std::string> ScheduleLines::quoted_texts() {
  std::vector<std::string> all{in_.text()};
  while (in_.take(',')) all.push_back(in_.text());
  return all;
}

}  // namespace oclc
