#include <algorithm>
#include <optional>

#include "runtime/package/text/regex.h"
#include "runtime/package/text/regex_classes.h"
#include "runtime/package/text/unicode.h"

namespace oclc::package {
namespace {

constexpr std::uint32_t kMaxRepeat = 1000;  // as RE2
constexpr std::size_t kMaxProgram = 100000, kMaxDepth = 200;

}  // namespace

// Compiles while it reads: each piece of the pattern is a range of the program that is entered at its begin and left at its
// end.
class RegexParser {
 public:
  RegexParser(std::string_view pattern, Regex& out) : pattern_(pattern), out_(out) {}

  void run() {
    alternatives(0);
    if (at_ < pattern_.size()) fail("an unmatched )");
    emit(Regex::Code::match);
  }

 private:
  using Code = Regex::Code;
  using Program = std::vector<Regex::Instruction>;
  struct Flags {
    bool any_case = false, dot_all = false, lines = false;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw RegexError(what + " at byte " + std::to_string(at_) + " of the pattern");
  }
  bool done() const { return at_ == pattern_.size(); }
  char peek() const { return pattern_[at_]; }
  bool take(std::string_view text) {
    if (pattern_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  char32_t code_point() {
    const char32_t c = next_code_point(pattern_, at_);
    return c;
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.program_.size()); }
  void emit(Code code, std::uint32_t to = 0, std::uint32_t other = 0) {
    if (out_.program_.size() >= kMaxProgram) fail("too large an expression");
    out_.program_.push_back({code, to, other});
  }
  void emit_set(CharacterRanges ranges, bool negated = false) {
    out_.sets_.push_back({std::move(ranges), negated, flags_.any_case});
    emit(Code::set, static_cast<std::uint32_t>(out_.sets_.size()) - 1);
  }

  // Takes the program's end from `begin` on away.
  Program cut(std::uint32_t begin) {
    Program piece(out_.program_.begin() + begin, out_.program_.end());
    out_.program_.resize(begin);
    for (Regex::Instruction& i : piece) shift(i, -static_cast<std::int64_t>(begin));
    return piece;
  }
  // Puts it back, to wherever the end is now.
  void paste(const Program& piece) {
    const std::int64_t begin = here();
    for (Regex::Instruction i : piece) {
      shift(i, begin);
      emit(i.code, i.to, i.other);
    }
  }
  static void shift(Regex::Instruction& i, std::int64_t by) {
    if (i.code != Code::split && i.code != Code::jump) return;
    i.to = static_cast<std::uint32_t>(i.to + by);
    i.other = static_cast<std::uint32_t>(i.other + by);
  }

  void alternatives(std::size_t depth) {
    if (depth > kMaxDepth) fail("groups nested too deeply");
    const Flags outer = flags_;
    std::vector<Program> branches;
    const std::uint32_t begin = here();
    do {
      sequence(depth);
      branches.push_back(cut(begin));
    } while (take("|"));
    std::vector<std::uint32_t> exits;
    for (std::size_t i = 0; i + 1 < branches.size(); ++i) {
      emit(Code::split, here() + 1, here() + 2 + static_cast<std::uint32_t>(branches[i].size()));
      paste(branches[i]);
      exits.push_back(here());
      emit(Code::jump);
    }
    paste(branches.back());
    for (const std::uint32_t at : exits) out_.program_[at].to = here();
    flags_ = outer;
  }

  void sequence(std::size_t depth) {
    while (!done() && peek() != '|' && peek() != ')') {
      repeated_ = here();
      if (atom(depth)) repetitions(repeated_);  // else flags alone
    }
  }

  void repetitions(std::uint32_t begin) {
    for (bool first = true; !done(); first = false) {
      std::uint32_t least = 0;
      std::optional<std::uint32_t> most;
      const std::size_t start = at_;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!counts(least, most)) {
        return;
      }
      if (!first) {
        at_ = start;
        fail("a repetition of a repetition");
      }
      take("?");  // the shortest match is a whole match as well
      repeat(cut(begin), least, most);
    }
  }

  // {n}, {n,} or {n,m}; anything else in braces is text.
  bool counts(std::uint32_t& least, std::optional<std::uint32_t>& most) {
    const std::size_t start = at_;
    const auto number = [&](std::uint32_t& value) {
      const std::size_t from = at_;
      value = 0;
      while (!done() && peek() >= '0' && peek() <= '9')
        value = std::min(value * 10 + static_cast<std::uint32_t>(pattern_[at_++] - '0'), 100000u);
      return at_ > from;
    };
    std::uint32_t limit = 0;
    bool good = take("{") && number(least);
    if (good && take(",")) {
      if (number(limit)) most = limit;
    } else {
      most = least;
    }
    if (!good || !take("}")) {
      at_ = start;
      least = 0;
      most.reset();
      return false;
    }
    if (least > kMaxRepeat || (most && (*most > kMaxRepeat || *most < least))) fail("a wrong number of repetitions");
    return true;
  }

  void repeat(const Program& piece, std::uint32_t least, std::optional<std::uint32_t> most) {
    const auto size = static_cast<std::uint32_t>(piece.size());
    for (std::uint32_t i = 0; i < least; ++i) paste(piece);
    if (!most) {
      const std::uint32_t begin = here();
      emit(Code::split, begin + 1, begin + 2 + size);
      paste(piece);
      emit(Code::jump, begin);
      return;
    }
    const std::uint32_t end = here() + (*most - least) * (size + 1);
    for (std::uint32_t i = least; i < *most; ++i) {
      emit(Code::split, here() + 1, end);
      paste(piece);
    }
  }

  // False if it was flags, which nothing may repeat.
  bool atom(std::size_t depth) {
    const std::size_t start = at_;
    if (take("(")) return group(depth);
    if (take("[")) {
      character_class();
    } else if (take(".")) {
      emit_set(flags_.dot_all ? CharacterRanges{} : CharacterRanges{{'\n', '\n'}}, true);
    } else if (take("^")) {
      emit(flags_.lines ? Code::line_begin : Code::text_begin);
    } else if (take("$")) {
      emit(flags_.lines ? Code::line_end : Code::text_end);
    } else if (take("\\")) {
      escape();
    } else if (std::string_view("*+?").find(peek()) != std::string_view::npos) {
      fail("a repetition of nothing");
    } else {
      const char32_t c = code_point();
      if (c == 0xfffd && pattern_.substr(start, 3) != "\xef\xbf\xbd") fail("bytes that are no UTF-8");
      emit_set({{c, c}});
    }
    return true;
  }

  bool group(std::size_t depth) {
    const Flags outer = flags_;
    const std::uint32_t begin = repeated_;
    if (take("?")) {
      if (take("P<") || (pattern_.substr(at_, 2) != "<=" && pattern_.substr(at_, 2) != "<!" && take("<"))) {
        const std::size_t end = pattern_.find('>', at_);
        if (end == pattern_.npos || end == at_) fail("a group without a name");
        at_ = end + 1;
      } else if (!take(":")) {
        read_flags();
        if (take(")")) return false;  // for the rest of the group around
        if (!take(":")) fail("an unknown kind of group");
      }
    }
    alternatives(depth + 1);
    if (!take(")")) fail("a missing )");
    flags_ = outer;
    repeated_ = begin;
    return true;
  }

  void read_flags() {
    bool on = true, any = false;
    for (; !done() && peek() != ')' && peek() != ':'; ++at_, any = true) {
      switch (peek()) {
        case 'i':
          flags_.any_case = on;
          break;
        case 's':
          flags_.dot_all = on;
          break;
        case 'm':
          flags_.lines = on;
          break;
        case 'U':
          break;
        case '-':
          if (!on) fail("an unknown kind of group");
          on = false;
          break;
        default:
          fail("an unknown kind of group (RE2 has no look-ahead, look-behind or back reference)");
      }
    }
    if (!any) fail("an unknown kind of group");
  }

  // After the backslash, outside of a class.
  void escape() {
    if (done()) fail("a backslash at the end");
    if (auto ranges = perl_class(static_cast<unsigned char>(peek()))) {
      ++at_;
      return emit_set(std::move(*ranges));
    }
    switch (peek()) {
      case 'A':
        return ++at_, emit(Code::text_begin);
      case 'z':
        return ++at_, emit(Code::text_end);
      case 'b':
        return ++at_, emit(Code::boundary);
      case 'B':
        return ++at_, emit(Code::no_boundary);
      case 'Q': {
        ++at_;
        while (!done() && !take("\\E")) {
          repeated_ = here();
          const char32_t c = code_point();
          emit_set({{c, c}});
        }
        return;
      }
      default: {
        const char32_t c = escaped_character();
        emit_set({{c, c}});
      }
    }
  }

  char32_t escaped_character() {
    const char c = pattern_[at_];
    constexpr std::string_view kLetters = "aftnrv", kMeanings = "\a\f\t\n\r\v";
    if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) return ++at_, static_cast<char32_t>(kMeanings[i]);
    if (c == 'x') return ++at_, hexadecimal();
    if (c >= '0' && c <= '7') {
      // \1 to \9 alone would be back references.
      const bool several = at_ + 1 < pattern_.size() && pattern_[at_ + 1] >= '0' && pattern_[at_ + 1] <= '7';
      if (c != '0' && !several) fail("a back reference, which RE2 does not have");
      char32_t value = 0;
      for (int i = 0; i < 3 && !done() && peek() >= '0' && peek() <= '7'; ++i)
        value = value * 8 + static_cast<char32_t>(pattern_[at_++] - '0');
      return value;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && is_word(byte)) fail(std::string("the unknown escape \\") + c);
    return code_point();
  }

  char32_t hexadecimal() {
    const bool braces = take("{");
    char32_t value = 0;
    int digits = 0;
    for (; !done() && (braces || digits < 2); ++digits, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<char32_t>(digit);
      if (value > kLastCodePoint) fail("a code point above 10FFFF");
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take("}"))) fail("a damaged \\x");
    return value;
  }

  // After the opening bracket.
  void character_class() {
    const bool negated = take("^");
    CharacterRanges ranges;
    for (bool first = true; first || done() || peek() != ']'; first = false) {
      if (done()) fail("a missing ]");
      if (take("[:")) {
        posix(ranges);
        continue;
      }
      if (peek() == '\\' && at_ + 1 < pattern_.size()) {
        if (const auto perl = perl_class(static_cast<unsigned char>(pattern_[at_ + 1]))) {
          at_ += 2;
          ranges.insert(ranges.end(), perl->begin(), perl->end());
          continue;
        }
      }
      const char32_t low = class_character();
      char32_t high = low;
      if (at_ + 1 < pattern_.size() && peek() == '-' && pattern_[at_ + 1] != ']') {
        ++at_;
        high = class_character();
        if (high < low) fail("a range whose end is before its begin");
      }
      ranges.emplace_back(low, high);
    }
    ++at_;
    emit_set(std::move(ranges), negated);
  }

  char32_t class_character() {
    if (!take("\\")) return code_point();
    if (done()) fail("a backslash at the end");
    return escaped_character();
  }

  void posix(CharacterRanges& ranges) {
    const bool negated = take("^");
    const std::size_t end = pattern_.find(":]", at_);
    const std::string_view name = pattern_.substr(at_, end == pattern_.npos ? 0 : end - at_);
    for (const NamedClass& known : posix_classes()) {
      if (known.name != name) continue;
      const CharacterRanges add = negated ? inverted(known.ranges) : known.ranges;
      ranges.insert(ranges.end(), add.begin(), add.end());
      at_ = end + 2;
      return;
    }
    fail("an unknown class of characters");
  }

  std::string_view pattern_;
  Regex& out_;
  std::size_t at_ = 0;
  Flags flags_;
  std::uint32_t repeated_ = 0;  // where a repetition would begin
};

Regex::Regex(std::string_view pattern) { RegexParser(pattern, *this).run(); }

}  // namespace oclc::package
