// Functions that differ in numbers alone, as those of equal layers of other sizes do, as one that is told the numbers.
// Optimized, a number that is a literal is speed; what is compiled for the first runs should be short.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace oclc {

struct MergedFunction {
  struct Constant {
    std::string type, name;
    std::vector<std::string> values;  // literals, by member
  };
  std::vector<std::size_t> members;  // two or more of the functions, in their order
  std::string name, text;            // the function's definition
  std::vector<Constant> constants;   // its parameters behind those of the members
  std::string macros;                // by which the members' names call it
};

// `texts[i]` is the definition of the function `names[i]`, or several that the preprocessor chooses from. Numbers that the
// language or a macro wants as literals (sizes of arrays, counts of unrolled rounds) stay: functions that differ in them are
// not merged.
std::vector<MergedFunction> merge_functions(const std::vector<std::string>& names, const std::vector<std::string>& texts);

}  // namespace oclc
