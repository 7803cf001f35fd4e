// Numbers among the arguments of an example program.
#pragma once
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace examples {

// The whole of `text` as a T of at least `least`; std::invalid_argument naming the option.
template <class T>
T number(const char* option, const std::string& text, T least = std::numeric_limits<T>::lowest()) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size() && value >= least;
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
  if (good) return value;
  std::string wanted = std::is_floating_point_v<T> ? "a number" : "a whole number";
  if (least != std::numeric_limits<T>::lowest() || std::is_unsigned_v<T>) wanted += " of at least " + std::to_string(least);
  throw std::invalid_argument(std::string(option) + ": wanted " + wanted + ", found '" + text + "'");
}

}  // namespace examples
