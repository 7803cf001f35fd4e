#include "compiler/ir/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "compiler/ir/strings.h"
#include "compiler/support/error.h"
#include "compiler/support/integer_of.h"
#include "runtime/package/narrow.h"

namespace oclc {
namespace {

struct DTypeRow {
  std::string_view name;
  std::size_t bytes;
  bool is_float, is_integer, is_signed;
};

constexpr std::array<DTypeRow, 24> kDTypes = {
    {{"f32", 4, true, false, true},         {"f64", 8, true, false, true},      {"f16", 2, true, false, true},
     {"bf16", 2, true, false, true},        {"i8", 1, false, true, true},       {"i16", 2, false, true, true},
     {"i32", 4, false, true, true},         {"i64", 8, false, true, true},      {"u8", 1, false, true, false},
     {"u16", 2, false, true, false},        {"u32", 4, false, true, false},     {"u64", 8, false, true, false},
     {"bool", 1, false, false, false},      {"string", 4, false, false, false}, {"f8e4m3fn", 1, false, false, true},
     {"f8e4m3fnuz", 1, false, false, true}, {"f8e5m2", 1, false, false, true},  {"f8e5m2fnuz", 1, false, false, true},
     {"f4e2m1", 1, false, false, true},     {"i4", 1, false, false, true},      {"u4", 1, false, false, false},
     {"f8e8m0", 1, false, false, true},     {"i2", 1, false, false, true},      {"u2", 1, false, false, false}}};

const DTypeRow& row(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)); }

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

}  // namespace

std::string_view name_of(DType dtype) { return row(dtype).name; }
std::size_t size_bytes(DType dtype) { return row(dtype).bytes; }
bool is_float(DType dtype) { return row(dtype).is_float; }
bool is_integer(DType dtype) { return row(dtype).is_integer; }
bool is_signed(DType dtype) { return row(dtype).is_signed; }
bool is_narrow(DType dtype) { return package::is_narrow(static_cast<plan::DType>(dtype)); }
bool is_narrow_float(DType dtype) { return package::is_narrow_float(static_cast<plan::DType>(dtype)); }
int width_bits(DType dtype) {
  return is_narrow(dtype) ? package::narrow_width(static_cast<plan::DType>(dtype)) : static_cast<int>(8 * size_bytes(dtype));
}
double largest_narrow(DType dtype) { return static_cast<double>(package::largest_narrow(static_cast<plan::DType>(dtype))); }

std::optional<DType> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool TensorType::is_static() const {
  return std::all_of(shape.begin(), shape.end(), [](const Expr& e) { return e.is_constant(); });
}

std::string TensorType::text() const { return fmt::format("{}{}", name_of(dtype), text_of(shape)); }

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
  auto bytes = std::make_shared<std::vector<std::byte>>(this->bytes());
  mutable_data_ = bytes->data();
  data_ = mutable_data_;
  owner_ = std::move(bytes);
}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape, const std::byte* bytes, std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(shape)), data_(bytes), owner_(std::move(owner)) {}

std::int64_t HostTensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t d : shape_) {
    OCLC_CHECK(d >= 0 && !__builtin_mul_overflow(n, d, &n), "element count of a host tensor");
  }
  return n;
}

std::byte* HostTensor::mutable_data() {
  OCLC_CHECK(mutable_data_ != nullptr || bytes() == 0, "write to a tensor that views foreign memory");
  return mutable_data_;
}

TensorType HostTensor::type() const {
  Shape dims;
  for (const std::int64_t d : shape_) dims.emplace_back(d);
  return {dtype_, std::move(dims)};
}

double HostTensor::at(std::int64_t i) const {
  const std::byte* p = data_ + static_cast<std::size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::f32:
      return static_cast<double>(load<float>(p));
    case DType::f64:
      return load<double>(p);
    case DType::f16:
      return static_cast<double>(half_to_float(load<std::uint16_t>(p)));
    case DType::bf16:
      return static_cast<double>(bfloat_to_float(load<std::uint16_t>(p)));
    case DType::u64:
      return static_cast<double>(load<std::uint64_t>(p));
    default:
      if (is_narrow(dtype_))
        return static_cast<double>(package::narrow_value(static_cast<plan::DType>(dtype_), load<std::uint8_t>(p)));
      return static_cast<double>(int_at(i));
  }
}

std::int64_t HostTensor::int_at(std::int64_t i) const {
  const std::byte* p = data_ + static_cast<std::size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::i8:
      return load<std::int8_t>(p);
    case DType::i16:
      return load<std::int16_t>(p);
    case DType::i32:
    case DType::string:
      return load<std::int32_t>(p);
    case DType::i64:
      return load<std::int64_t>(p);
    case DType::u8:
      return load<std::uint8_t>(p);
    case DType::u16:
      return load<std::uint16_t>(p);
    case DType::u32:
      return load<std::uint32_t>(p);
    case DType::u64:
      return static_cast<std::int64_t>(load<std::uint64_t>(p));
    case DType::boolean:
      return load<std::uint8_t>(p) != 0;
    default:
      return integer_of(at(i));
  }
}

void HostTensor::set(std::int64_t i, double value) {
  std::byte* p = mutable_data() + static_cast<std::size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::f32:
      return store(p, static_cast<float>(value));
    case DType::f64:
      return store(p, value);
    case DType::f16:
      return store(p, float_to_half(static_cast<float>(value)));
    case DType::bf16:
      return store(p, float_to_bfloat(static_cast<float>(value)));
    case DType::boolean:
      return store(p, static_cast<std::uint8_t>(value != 0));
    default:
      if (is_narrow_float(dtype_))
        return store(p, package::narrow_bits(static_cast<plan::DType>(dtype_), static_cast<float>(value)));
      return set_int(i, integer_of(value));
  }
}

void HostTensor::set_int(std::int64_t i, std::int64_t value) {
  std::byte* p = mutable_data() + static_cast<std::size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::i8:
    case DType::u8:
      return store(p, static_cast<std::uint8_t>(value));
    case DType::i16:
    case DType::u16:
      return store(p, static_cast<std::uint16_t>(value));
    case DType::i32:
    case DType::u32:
    case DType::string:
      return store(p, static_cast<std::uint32_t>(value));
    case DType::i64:
    case DType::u64:
      return store(p, value);
    case DType::boolean:
      return store(p, static_cast<std::uint8_t>(value != 0));
    case DType::i4:
      return store(p, static_cast<std::int8_t>(((value & 15) ^ 8) - 8));
    case DType::u4:
      return store(p, static_cast<std::uint8_t>(value & 15));
    case DType::i2:
      return store(p, static_cast<std::int8_t>(((value & 3) ^ 2) - 2));
    case DType::u2:
      return store(p, static_cast<std::uint8_t>(value & 3));
    default:
      return set(i, static_cast<double>(value));
  }
}

const std::string& HostTensor::text_at(std::int64_t i) const {
  OCLC_CHECK(dtype_ == DType::string, "text of a number");
  return string_text(int_at(i));
}

void HostTensor::set_text(std::int64_t i, std::string_view text) {
  OCLC_CHECK(dtype_ == DType::string, "text into a number");
  set_int(i, string_number(text));
}

HostTensor HostTensor::reshaped(std::vector<std::int64_t> shape) const {
  HostTensor result = *this;
  result.shape_ = std::move(shape);
  OCLC_CHECK(result.elements() == elements(), "reshape of a host tensor");
  return result;
}

HostTensor HostTensor::scalar(DType dtype, double value) {
  HostTensor t(dtype, {});
  t.set(0, value);
  return t;
}

HostTensor HostTensor::from_ints(std::span<const std::int64_t> values) {
  HostTensor t(DType::i64, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<std::int64_t>(i), values[i]);
  return t;
}

HostTensor HostTensor::from_texts(std::span<const std::string> values, std::vector<std::int64_t> shape) {
  HostTensor t(DType::string, std::move(shape));
  OCLC_CHECK(t.elements() == static_cast<std::int64_t>(values.size()), "texts for the shape");
  for (std::size_t i = 0; i < values.size(); ++i) t.set_text(static_cast<std::int64_t>(i), values[i]);
  return t;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu,
                      mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal result: round the magnitude scaled to units of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;  // aligns the last kept bit, rounding to nearest even
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace oclc
