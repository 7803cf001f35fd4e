// Numbers as texts and back, independent of any locale.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "plan_generated.h"

namespace oclc::package {

// As numpy writes it: integers in decimal, "True" and "False", floating-point numbers with the fewest digits that read back as
// the same number of their type ("0.1", "1.0", "1e-05", "1e+16", "nan", "inf", "-inf"). `element` is one element of type
// `dtype`.
std::string number_text(plan::DType dtype, const std::byte* element);

// Writes the element that `text` stands for; false if it is no number of the type. Blanks around it are skipped. Floating-point
// numbers: decimal and scientific, a sign, inf, infinity and nan in any case; they round to nearest. Integers: what is behind a
// decimal point is dropped. bool: true and false in any case, or a number that is not 0.
bool parse_number(plan::DType dtype, std::string_view text, std::byte* element);

}  // namespace oclc::package
