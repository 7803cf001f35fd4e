// The texts of string tensors. An element of type `string` is the number of its text, so that operators that move, choose or
// compare elements need not know texts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace oclc {

// Equal texts have equal numbers, as long as the process lives; 0 is the empty text. Numbers depend on the order of the calls,
// so they reach no output: plans number their own texts. May be called by several threads at once.
std::int32_t string_number(std::string_view text);
// The text of a number that string_number gave; InternalError for another.
const std::string& string_text(std::int64_t number);

}  // namespace oclc
