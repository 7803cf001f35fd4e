// Updates written to rows one after another, so that sums have the bits of that order on every device.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/package/half.h"
#include "runtime/package/order/keys.h"
#include "runtime/package/order/order.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {
namespace {

enum class Reduction : std::int64_t { none, add, mul, max, min };

template <class T>
T wrapped(T a, T b, Reduction reduction) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(reduction == Reduction::add ? x + y : x * y);
  } else {
    return reduction == Reduction::add ? a + b : a * b;
  }
}

// The larger or smaller one; NaN if either is.
template <class T>
T extreme(T a, T b, bool larger) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return (larger ? b > a : b < a) ? b : a;
}

template <class T>
T combined(T a, T b, Reduction reduction) {
  if (reduction == Reduction::add || reduction == Reduction::mul) return wrapped(a, b, reduction);
  return extreme(a, b, reduction == Reduction::max);
}

// visit(row of the result, row of the updates) for each update that names a row.
template <class Visit>
void each_update(const HostValue& rows, std::size_t count, Visit&& visit) {
  for (std::size_t u = 0; u < rows.elements(); ++u) {
    const auto row = element_at<std::int64_t>(rows.data.data(), u);
    if (row >= 0 && static_cast<std::uint64_t>(row) < count) visit(static_cast<std::size_t>(row), u);
  }
}

template <class T>
void combine_rows(const HostValue& rows, const HostValue& updates, std::size_t slice, Reduction reduction, HostValue& out) {
  const std::byte* from = updates.data.data();
  std::byte* to = out.data.data();
  each_update(rows, static_cast<std::size_t>(out.shape[0]), [&](std::size_t row, std::size_t u) {
    for (std::size_t i = 0; i < slice; ++i) {
      const std::size_t at = row * slice + i;
      set_element(to, at, combined(element_at<T>(to, at), element_at<T>(from, u * slice + i), reduction));
    }
  });
}

// Through single precision, rounded after each update.
void combine_half_rows(const HostValue& rows, const HostValue& updates, std::size_t slice, Reduction reduction,
                       HostValue& out) {
  const plan::DType dtype = out.dtype;
  const std::byte* from = updates.data.data();
  std::byte* to = out.data.data();
  const auto number = [&](const std::byte* data, std::size_t i) { return widened(dtype, element_at<std::uint16_t>(data, i)); };
  each_update(rows, static_cast<std::size_t>(out.shape[0]), [&](std::size_t row, std::size_t u) {
    for (std::size_t i = 0; i < slice; ++i) {
      const std::size_t at = row * slice + i;
      const float sum = combined(number(to, at), number(from, u * slice + i), reduction);
      set_element(to, at, narrowed(dtype, static_cast<double>(sum)));
    }
  });
}

void combine(const HostValue& rows, const HostValue& updates, std::size_t slice, Reduction reduction, HostValue& out) {
  switch (out.dtype) {
    case plan::DType::f32:
      return combine_rows<float>(rows, updates, slice, reduction, out);
    case plan::DType::f64:
      return combine_rows<double>(rows, updates, slice, reduction, out);
    case plan::DType::f16:
    case plan::DType::bf16:
      return combine_half_rows(rows, updates, slice, reduction, out);
    case plan::DType::i8:
      return combine_rows<std::int8_t>(rows, updates, slice, reduction, out);
    case plan::DType::i16:
      return combine_rows<std::int16_t>(rows, updates, slice, reduction, out);
    case plan::DType::i32:
      return combine_rows<std::int32_t>(rows, updates, slice, reduction, out);
    case plan::DType::i64:
      return combine_rows<std::int64_t>(rows, updates, slice, reduction, out);
    case plan::DType::u8:
      return combine_rows<std::uint8_t>(rows, updates, slice, reduction, out);
    case plan::DType::u16:
      return combine_rows<std::uint16_t>(rows, updates, slice, reduction, out);
    case plan::DType::u32:
      return combine_rows<std::uint32_t>(rows, updates, slice, reduction, out);
    case plan::DType::u64:
      return combine_rows<std::uint64_t>(rows, updates, slice, reduction, out);
    default:
      throw HostOpError("wanted numbers of a type that the host can add");
  }
}

}  // namespace

std::string reduction_problem(const HostSettings& settings) {
  return settings.integers[0] >= 0 && settings.integers[0] <= 4 ? "" : "reduction is 0 to 4";
}

void scatter_rows(const HostSettings& settings, std::span<const HostValue> in, std::span<HostValue> out) {
  const HostValue &data = in[0], &rows = in[1], &updates = in[2];
  require(data.shape.size() == 2 && updates.shape.size() == 2 && data.shape == out[0].shape &&
              data.shape[1] == updates.shape[1] && data.dtype == out[0].dtype && data.dtype == updates.dtype &&
              rows.elements() == static_cast<std::size_t>(updates.shape[0]),
          "wanted rows of one size and type, and a row for each update");
  const auto slice = static_cast<std::size_t>(data.shape[1]);
  const std::size_t bytes = slice * dtype_bytes(data.dtype);
  if (data.data.empty()) return;
  std::memcpy(out[0].data.data(), data.data.data(), data.data.size());
  const auto reduction = static_cast<Reduction>(settings.integers[0]);
  if (reduction != Reduction::none) return combine(rows, updates, slice, reduction, out[0]);
  const auto copy = [&](auto size) {
    each_update(rows, static_cast<std::size_t>(data.shape[0]), [&](std::size_t row, std::size_t u) {
      std::memcpy(out[0].data.data() + row * size, updates.data.data() + u * size, size);
    });
  };
  // Of a known size a copy is one instruction.
  if (bytes == 4) return copy(std::integral_constant<std::size_t, 4>());
  if (bytes == 8) return copy(std::integral_constant<std::size_t, 8>());
  copy(bytes);
}

}  // namespace oclc::package
