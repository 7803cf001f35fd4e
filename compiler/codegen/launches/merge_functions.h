// Functions that differ in numbers alone, as those of equal layers of other sizes do, as one that is told the numbers.
// Optimized, a number that is a literal is speed; a driver that does not optimize takes its time for the length of what it
// reads.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace oclc {

struct MergedFunction {
  std::vector<std::size_t> members;  // two or more of the functions, in their order
  std::string text;                  // the function, and macros by whose names the members are called
};

// `texts[i]` is the definition of the function `names[i]`. Numbers that the language or a macro wants as literals (sizes of
// arrays, counts of unrolled rounds) stay: functions that differ in them are not merged.
std::vector<MergedFunction> merge_functions(const std::vector<std::string>& names, const std::vector<std::string>& texts);

}  // namespace oclc
