#include "compiler/codegen/text/c_numbers.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/codegen/text/half.h"
#include "compiler/support/error.h"

namespace oclc {

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i8:
    case DType::i4:
    case DType::i2:
      return "char";
    case DType::i16:
      return "short";
    case DType::i32:
    case DType::string:
      return "int";
    case DType::i64:
      return "long";
    case DType::u8:
    case DType::boolean:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1:
    case DType::u4:
    case DType::f8e8m0:
    case DType::u2:
      return "uchar";
    case DType::u32:
      return "uint";
    case DType::u64:
      return "ulong";
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return "ushort";
  }
  check_failed("dtype", "c_numbers.cpp", 0, "element type");
}

std::string_view value_type(DType dtype) {
  if (dtype == DType::boolean) return "int";
  return is_half(dtype) ? "float" : c_type(dtype);
}

std::string c_number(double value, DType dtype) {
  if (is_narrow_float(dtype)) {
    HostTensor bits(dtype, {});
    bits.set(0, value);
    return fmt::format("(uchar){}", std::to_integer<int>(*bits.data()));
  }
  if (dtype == DType::boolean) return value != 0 ? "1" : "0";
  if (!is_float(dtype)) {
    if (dtype == DType::i64 && value <= -9223372036854775808.0) return "LONG_MIN";
    if (dtype == DType::i64 && value >= 9223372036854775807.0) return "LONG_MAX";
    if (dtype == DType::i32 && value <= -2147483648.0) return "INT_MIN";
    // The literal has the type of its element: the built-in functions take operands of one type.
    if (size_bytes(dtype) < 4) return fmt::format("({}){:.0f}", c_type(dtype), value);
    return fmt::format("{:.0f}{}", value,
                       dtype == DType::i64   ? "L"
                       : dtype == DType::u64 ? "UL"
                       : dtype == DType::u32 ? "U"
                                             : "");
  }
  if (std::isnan(value)) return dtype == DType::f64 ? "(double)NAN" : "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  std::string text = dtype == DType::f64 ? fmt::format("{:.17g}", value)
                                         : fmt::format("{:.9g}", static_cast<double>(static_cast<float>(value)));
  if (dtype != DType::f64 && fmt::format("{}", static_cast<float>(value)).size() < text.size())
    text = fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return dtype == DType::f64 ? text : text + "f";
}

}  // namespace oclc
