// Regular expressions by simulation of all alternatives at once (Thompson 1968): time and memory are linear in the text times
// the pattern's size, whatever the pattern, and nothing recurses over the text.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oclc::package {

// What is wrong with a pattern, and where.
struct RegexError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The syntax is RE2's: alternatives |, groups ( ), (?: ), (?P<name> ), (?<name> ), flags (?i) (?s) (?m) (?U) for the rest of a
// group or as (?i: ), repetition * + ? {n} {n,} {n,m} with an optional ?, classes [a-z] [^...] [[:alpha:]], \d \w \s \D \W \S,
// . ^ $ \A \z \b \B, \Q...\E and the escapes \a \f \t \n \r \v \xHH \x{H...} \OOO. Not supported: Unicode classes \p and \P,
// and \C. Patterns and texts are UTF-8.
class Regex {
 public:
  explicit Regex(std::string_view pattern);  // RegexError
  // True if the pattern matches all of `text`.
  bool matches(std::string_view text) const;

 private:
  friend class RegexParser;
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool negated = false, any_case = false;
    bool contains(char32_t c) const;
  };
  enum class Code : std::uint8_t { set, split, jump, text_begin, text_end, line_begin, line_end, boundary, no_boundary, match };
  struct Instruction {
    Code code = Code::match;
    std::uint32_t to = 0, other = 0;  // `to`: of a set its number
  };
  struct Position {
    char32_t before = 0, after = 0;  // 0: none
    bool at_begin = false, at_end = false;
  };
  bool holds(Code code, const Position& at) const;

  std::vector<Instruction> program_;
  std::vector<Set> sets_;
};

}  // namespace oclc::package
