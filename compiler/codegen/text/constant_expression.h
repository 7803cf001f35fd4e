// Integer constant expressions of the preprocessor, by which templates are expanded.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace oclc {

// The value of `text`: numbers, ?: | || && == != < > <= >= + - * / % ( ) and (size_t) casts. Nothing if it is no constant.
std::optional<std::int64_t> constant_value(std::string_view text);

}  // namespace oclc
