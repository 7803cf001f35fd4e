// Classes of characters in regular expressions, as RE2 defines them: ASCII alone.
#pragma once
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace oclc::package {

constexpr char32_t kLastCodePoint = 0x10ffff;

using CharacterRanges = std::vector<std::pair<char32_t, char32_t>>;  // first, last

struct NamedClass {
  std::string_view name;
  CharacterRanges ranges;
};

// The classes of [[:name:]].
const std::vector<NamedClass>& posix_classes();

// True of what \w means.
bool is_word(char32_t c);

// What lies between the ranges.
CharacterRanges inverted(CharacterRanges ranges);

// The class of \d, \w, \s or the opposite of one.
std::optional<CharacterRanges> perl_class(char32_t letter);

}  // namespace oclc::package
