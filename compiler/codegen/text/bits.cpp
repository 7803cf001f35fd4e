#include "compiler/codegen/text/bits.h"

#include <fmt/format.h>

#include "compiler/codegen/text/c_numbers.h"
#include "compiler/codegen/text/half.h"

namespace oclc {
namespace {

// The bits as an unsigned integer.
std::string bits_of(DType from, const std::string& value) {
  if (is_half(from)) return fmt::format("oclc_to_{}({})", name_of(from), value);
  if (from == DType::f32) return fmt::format("as_uint((float)({}))", value);
  if (from == DType::f64) return fmt::format("as_ulong((double)({}))", value);
  if (width_bits(from) < 8) return fmt::format("(uchar)(({}) & {})", value, (1 << width_bits(from)) - 1);
  constexpr std::string_view kUnsigned[] = {"uchar", "ushort", "uint", "ulong"};
  const std::size_t bytes = size_bytes(from), row = bytes == 8 ? 3 : bytes / 2;
  return fmt::format("({})({})", kUnsigned[row], value);
}

}  // namespace

std::string bits_text(DType from, DType to, const std::string& value) {
  const std::string bits = bits_of(from, value);
  if (is_half(to)) return fmt::format("oclc_from_{}({})", name_of(to), bits);
  if (to == DType::f32) return fmt::format("as_float({})", bits);
  if (to == DType::f64) return fmt::format("as_double({})", bits);
  if (to == DType::boolean) return fmt::format("({} != 0)", bits);
  if (to == DType::i4 || to == DType::i2) return fmt::format("oclc_to_{}({})", name_of(to), bits);
  return fmt::format("({})({})", c_type(to), bits);
}

}  // namespace oclc
