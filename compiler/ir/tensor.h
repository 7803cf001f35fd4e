// Element types, tensor types and tensors in host memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"

namespace oclc {

// Order is the wire format of runtime/package/plan.fbs.
enum class DType : std::uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  string,
  // One byte an element; see is_narrow.
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f4e2m1,
  i4,
  u4,
  f8e8m0,
  i2,
  u2
};

std::string_view name_of(DType dtype);  // "f32", ..., "bool", "string", "f8e4m3fn", ..., "u2"
std::optional<DType> dtype_of(std::string_view name);
std::size_t size_bytes(DType dtype);  // bool: 1, string: 4, see strings.h
bool is_float(DType dtype);           // not narrow
bool is_integer(DType dtype);         // signed or unsigned; not bool, not string, not narrow
// Floats of 8 and 4 bits, integers of 4 and 2: casts compute with them and others move them, nothing else.
bool is_narrow(DType dtype);
bool is_narrow_float(DType dtype);
int width_bits(DType dtype);         // of an element outside of memory: of a narrow one 8, 4 or 2
double largest_narrow(DType dtype);  // the largest finite number of a narrow float
bool is_signed(DType dtype);         // floats and signed integers

using Shape = std::vector<Expr>;

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  std::size_t rank() const { return shape.size(); }
  Expr elements() const { return product(shape); }
  bool is_static() const;
  std::string text() const;  // "f32[N, 3, 224, 224]"
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// A dense row-major tensor in host memory. Copies share the bytes; mutable_* detaches nothing, so write only to tensors just
// made.
class HostTensor {
 public:
  HostTensor() = default;
  // Zero-initialised.
  HostTensor(DType dtype, std::vector<std::int64_t> shape);
  // Views memory that `owner` keeps alive (a mapped file, say). `bytes` must hold all elements; no alignment is assumed.
  HostTensor(DType dtype, std::vector<std::int64_t> shape, const std::byte* bytes, std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_bytes(dtype_); }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data();  // only for tensors made by the first constructor
  TensorType type() const;

  // Element `i` of the row-major order, converted; integers saturate nothing: 64-bit values keep all bits in int_at.
  double at(std::int64_t i) const;
  std::int64_t int_at(std::int64_t i) const;
  // Converts from double as C does; integers outside the type's range wrap, bool is value != 0.
  void set(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);
  // Of type string; int_at and set_int are the text's number.
  const std::string& text_at(std::int64_t i) const;
  void set_text(std::int64_t i, std::string_view text);
  HostTensor reshaped(std::vector<std::int64_t> shape) const;  // shares bytes; element count must agree

  static HostTensor scalar(DType dtype, double value);
  static HostTensor from_ints(std::span<const std::int64_t> values);  // i64 vector
  static HostTensor from_texts(std::span<const std::string> values, std::vector<std::int64_t> shape);

 private:
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  const std::byte* data_ = nullptr;
  std::byte* mutable_data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// IEEE binary16 and bfloat16 conversions, round to nearest even.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat(float value);

}  // namespace oclc
