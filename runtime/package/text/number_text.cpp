#include "runtime/package/text/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/package/half.h"
#include "runtime/package/narrow.h"

namespace oclc::package {
namespace {

using plan::DType;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// `scientific` is "d.ddde+XX" with the digits wanted.
std::string laid_out(std::string_view scientific) {
  std::string text;
  if (scientific.front() == '-') {
    text = "-";
    scientific.remove_prefix(1);
  }
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const std::size_t sign = scientific[e + 1] == '+' ? 2 : 1;
  std::from_chars(scientific.data() + e + sign, scientific.data() + scientific.size(), exponent);
  std::string digits(1, scientific[0]);
  if (e > 2) digits += scientific.substr(2, e - 2);
  if (exponent < -4 || exponent >= 16) return text + std::string(scientific);
  const auto count = static_cast<int>(digits.size());
  if (exponent < 0) return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return text + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return text + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

template <class T>
std::string special(T value) {
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

template <class T>
std::string shortest(T value) {
  if (!std::isfinite(value)) return special(value);
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  std::array<char, 64> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  return laid_out({text.data(), static_cast<std::size_t>(result.ptr - text.data())});
}

// Five digits tell all numbers of 16 bits apart.
std::string shortest_narrow(DType dtype, std::uint16_t bits) {
  const float value = widened(dtype, bits);
  if (!std::isfinite(value) || value == 0) return shortest(value);
  for (int digits = 0;; ++digits) {
    std::array<char, 64> text;
    const auto result = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, digits);
    const std::string_view written(text.data(), static_cast<std::size_t>(result.ptr - text.data()));
    double back = 0;
    std::from_chars(written.data(), written.data() + written.size(), back);
    if (digits < 8 && narrowed(dtype, back) != bits) continue;
    return laid_out(written);
  }
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// from_chars refuses what is too large or too small for the type; those are infinite and zero.
template <class T>
bool parse_real(std::string_view text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ptr != text.data() + text.size()) return false;
  if (result.ec == std::errc()) return true;
  if (result.ec != std::errc::result_out_of_range) return false;
  long double wide = 0;
  const auto again = std::from_chars(text.data(), text.data() + text.size(), wide);
  const std::size_t e = text.find_first_of("eE");
  const bool tiny = again.ec == std::errc() ? std::fabs(wide) < 1 : e != text.npos && text.substr(e + 1, 1) == "-";
  value = tiny ? T{0} : std::numeric_limits<T>::infinity();
  if (text.front() == '-') value = -value;
  return true;
}

template <class T>
bool parse_integer(std::string_view text, std::byte* element) {
  T value{};
  if (parse_whole(text, value)) {
    store(element, value);
    return true;
  }
  double real = 0;
  if (!parse_real(text, real)) return false;
  real = std::trunc(real);
  const double lowest = static_cast<double>(std::numeric_limits<T>::min());
  if (!(real >= lowest && real < std::ldexp(1.0, std::numeric_limits<T>::digits))) return false;
  store(element, static_cast<T>(real));
  return true;
}

bool parse_bool(std::string_view text, std::byte* element) {
  std::string word;
  for (const char c : text) word += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  double number = 0;
  if (word != "true" && word != "false" && !parse_real(text, number)) return false;
  store(element, static_cast<std::uint8_t>(word == "true" || number != 0));
  return true;
}

}  // namespace

std::string number_text(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::f32:
      return shortest(load<float>(element));
    case DType::f64:
      return shortest(load<double>(element));
    case DType::f16:
    case DType::bf16:
      return shortest_narrow(dtype, load<std::uint16_t>(element));
    case DType::i8:
      return std::to_string(load<std::int8_t>(element));
    case DType::i16:
      return std::to_string(load<std::int16_t>(element));
    case DType::i32:
      return std::to_string(load<std::int32_t>(element));
    case DType::i64:
      return std::to_string(load<std::int64_t>(element));
    case DType::u8:
      return std::to_string(load<std::uint8_t>(element));
    case DType::u16:
      return std::to_string(load<std::uint16_t>(element));
    case DType::u32:
      return std::to_string(load<std::uint32_t>(element));
    case DType::u64:
      return std::to_string(load<std::uint64_t>(element));
    case DType::bool_:
      return load<std::uint8_t>(element) != 0 ? "True" : "False";
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::f8e8m0:
    case DType::i2:
    case DType::u2:
      return shortest(narrow_value(dtype, load<std::uint8_t>(element)));
    case DType::string_:
      break;
  }
  return {};
}

bool parse_number(DType dtype, std::string_view text, std::byte* element) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return false;
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-' || text.front() == '+') return false;
  }
  float single = 0;
  double real = 0;
  switch (dtype) {
    case DType::f32:
      if (!parse_real(text, single)) return false;
      store(element, single);
      return true;
    case DType::f64:
      if (!parse_real(text, real)) return false;
      store(element, real);
      return true;
    case DType::f16:
    case DType::bf16:
      if (!parse_real(text, real)) return false;
      store(element, narrowed(dtype, real));
      return true;
    case DType::i8:
      return parse_integer<std::int8_t>(text, element);
    case DType::i16:
      return parse_integer<std::int16_t>(text, element);
    case DType::i32:
      return parse_integer<std::int32_t>(text, element);
    case DType::i64:
      return parse_integer<std::int64_t>(text, element);
    case DType::u8:
      return parse_integer<std::uint8_t>(text, element);
    case DType::u16:
      return parse_integer<std::uint16_t>(text, element);
    case DType::u32:
      return parse_integer<std::uint32_t>(text, element);
    case DType::u64:
      return parse_integer<std::uint64_t>(text, element);
    case DType::bool_:
      return parse_bool(text, element);
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::f8e8m0:
    case DType::i2:
    case DType::u2:
      if (!parse_real(text, single)) return false;
      store(element, narrow_bits(dtype, single));
      return true;
    case DType::string_:
      break;
  }
  return false;
}

}  // namespace oclc::package
