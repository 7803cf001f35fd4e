#include "runtime/package/text/regex.h"

#include <algorithm>

#include "runtime/package/text/regex_classes.h"
#include "runtime/package/text/unicode.h"

namespace oclc::package {

bool Regex::Set::contains(char32_t c) const {
  const auto inside = [&](char32_t x) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) { return x >= r.first && x <= r.second; });
  };
  return (inside(c) || (any_case && (inside(to_lower(c)) || inside(to_upper(c))))) != negated;
}

bool Regex::holds(Code code, const Position& at) const {
  const bool boundary = (!at.at_begin && is_word(at.before)) != (!at.at_end && is_word(at.after));
  switch (code) {
    case Code::text_begin:
      return at.at_begin;
    case Code::text_end:
      return at.at_end;
    case Code::line_begin:
      return at.at_begin || at.before == '\n';
    case Code::line_end:
      return at.at_end || at.after == '\n';
    case Code::boundary:
      return boundary;
    default:
      return !boundary;
  }
}

bool Regex::matches(std::string_view text) const {
  std::vector<std::uint32_t> now, stack{0};
  std::vector<std::size_t> seen(program_.size(), 0);  // position + 1 at which an instruction was reached last
  Position at;
  std::size_t byte = 0, step = 0;
  for (;;) {
    ++step;
    at.at_begin = byte == 0;
    at.at_end = byte == text.size();
    std::size_t after = byte;
    at.after = at.at_end ? 0 : next_code_point(text, after);
    // All instructions that consume and that are reached without consuming.
    bool matched = false;
    now.clear();
    while (!stack.empty()) {
      const std::uint32_t pc = stack.back();
      stack.pop_back();
      if (seen[pc] == step) continue;
      seen[pc] = step;
      const Instruction& i = program_[pc];
      if (i.code == Code::match) {
        matched = true;
      } else if (i.code == Code::set) {
        now.push_back(pc);
      } else if (i.code == Code::jump) {
        stack.push_back(i.to);
      } else if (i.code == Code::split) {
        stack.push_back(i.other);
        stack.push_back(i.to);
      } else if (holds(i.code, at)) {
        stack.push_back(pc + 1);
      }
    }
    if (at.at_end) return matched;
    for (const std::uint32_t pc : now)
      if (sets_[program_[pc].to].contains(at.after)) stack.push_back(pc + 1);
    if (stack.empty()) return false;
    at.before = at.after;
    byte = after;
  }
}

}  // namespace oclc::package
