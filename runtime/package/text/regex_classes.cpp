#include "runtime/package/text/regex_classes.h"

#include <algorithm>

namespace oclc::package {
const std::vector<NamedClass>& posix_classes() {
  static const std::vector<NamedClass> kClasses = {{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                                                   {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
                                                   {"ascii", {{0, 0x7f}}},
                                                   {"blank", {{'\t', '\t'}, {' ', ' '}}},
                                                   {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
                                                   {"digit", {{'0', '9'}}},
                                                   {"graph", {{'!', '~'}}},
                                                   {"lower", {{'a', 'z'}}},
                                                   {"print", {{' ', '~'}}},
                                                   {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                                                   {"space", {{'\t', '\r'}, {' ', ' '}}},
                                                   {"upper", {{'A', 'Z'}}},
                                                   {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
                                                   {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  return kClasses;
}

bool is_word(char32_t c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z'); }

CharacterRanges inverted(CharacterRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CharacterRanges out;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) out.emplace_back(next, first - 1);
    next = std::max(next, static_cast<char32_t>(last + 1));
  }
  if (next <= kLastCodePoint) out.emplace_back(next, kLastCodePoint);
  return out;
}

std::optional<CharacterRanges> perl_class(char32_t letter) {
  const std::string_view name = letter == 'd' || letter == 'D'   ? "digit"
                                : letter == 'w' || letter == 'W' ? "word"
                                : letter == 's' || letter == 'S' ? "space"
                                                                 : "";
  if (name.empty()) return std::nullopt;
  for (const NamedClass& known : posix_classes()) {
    if (known.name != name) continue;
    CharacterRanges ranges = known.ranges;
    if (name == "space") ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};  // without \v
    return letter >= 'a' ? ranges : inverted(std::move(ranges));
  }
  return std::nullopt;
}

}  // namespace oclc::package
