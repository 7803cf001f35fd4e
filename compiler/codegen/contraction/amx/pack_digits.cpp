#include "compiler/codegen/contraction/amx/pack_digits.h"

#include <algorithm>
#include <cmath>

#include "compiler/contraction/multiples.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::int64_t kPanelColumns = 32, kStepTerms = 64, kDigitBytes = 2048;
// The largest integer of three digits of -128 to 127, and what the products that are left out make of it: sums err by about
// 7e-7 where the largest of a row and of a column are each five times their root mean square.
constexpr int kLargestInteger = 127 * 65536 + 127 * 256 + 127;

// The exponent of the unit in which the largest element is an integer of three digits.
int unit_exponent(double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  exponent -= 23;
  if (std::ldexp(largest, -exponent) > kLargestInteger) ++exponent;
  return std::max(exponent, -126);
}

// The unit of a column and the square of how its largest integer stands to its root mean square; nothing where there is none.
// A column of zeros has the unit 0.
struct ColumnUnit {
  double spread = 0;
  std::optional<int> exponent;
};

std::optional<ColumnUnit> unit_of(const HostTensor& source, const PackedOperand& where, std::int64_t first,
                                  std::int64_t inner) {
  double largest = 0, squares = 0;
  for (const std::int64_t tap : where.tap_offsets) {
    for (std::int64_t k = 0; k < inner; ++k) {
      const double x = std::fabs(float_at(source, first + tap + k * where.inner_stride));
      if (!std::isfinite(x)) return std::nullopt;
      largest = std::max(largest, x);
      squares += x * x;
    }
  }
  if (largest == 0) return ColumnUnit{};
  const int exponent = unit_exponent(largest);
  if (exponent + 16 > 127) return std::nullopt;
  const double rms = std::sqrt(squares / static_cast<double>(static_cast<std::int64_t>(where.tap_offsets.size()) * inner));
  return ColumnUnit{std::pow(std::ldexp(static_cast<double>(kLargestInteger), exponent) / rms, 2), exponent};
}

// Columns of fewer elements are integers of 8 bits times a scale by chance.
constexpr std::size_t kFewestOfScale = 32;

// A column of a quantised model: its integers are the first digits, the others are 0, and nothing is rounded. Its elements lie
// at `first` + tap + k * inner_stride. Nothing where the column is of other floats.
std::optional<float> scale_of_first_digits(const HostTensor& source, const PackedOperand& where, std::int64_t first,
                                           std::int64_t inner, std::vector<float>& column) {
  column.clear();
  for (const std::int64_t tap : where.tap_offsets) {
    for (std::int64_t k = 0; k < inner; ++k)
      column.push_back(static_cast<float>(float_at(source, first + tap + k * where.inner_stride)));
  }
  if (source.dtype() != DType::f32 || column.size() < kFewestOfScale) return std::nullopt;
  const auto multiples = multiples_of(column, 8);
  if (!multiples || multiples->scale == 0 || multiples->low < -128 || multiples->high > 127) return std::nullopt;
  return multiples->scale;
}

bool is_spread(double spread, std::int64_t columns) {
  return spread > cost::kMostSpreadOfLimbs * cost::kMostSpreadOfLimbs * static_cast<double>(columns);
}

}  // namespace

bool has_digits(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                std::int64_t inner) {
  double spread = 0;
  for (std::int64_t column = 0; column < groups * columns; ++column) {
    const std::int64_t first = where.base + column / columns * where.group_stride + column % columns * where.column_stride;
    const auto unit = unit_of(source, where, first, inner);
    if (!unit) return false;
    spread += unit->spread;
  }
  return !is_spread(spread, groups * columns);
}

std::optional<PackedDigits> pack_digits(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                        std::int64_t columns, std::int64_t inner) {
  const std::int64_t panels = ceil_div(columns, kPanelColumns), steps = ceil_div(inner, kStepTerms);
  const auto taps = static_cast<std::int64_t>(where.tap_offsets.size());
  PackedDigits packed{HostTensor(DType::i8, {groups * panels * taps * steps * 3 * kDigitBytes}),
                      HostTensor(DType::f32, {groups * panels * kPanelColumns})};
  auto* digits = reinterpret_cast<std::int8_t*>(packed.digits.mutable_data());
  auto* units = reinterpret_cast<float*>(packed.units.mutable_data());
  double spread = 0;
  std::vector<float> numbers;
  for (std::int64_t column = 0; column < groups * columns; ++column) {
    const std::int64_t g = column / columns, n = column % columns,
                       first = where.base + g * where.group_stride + n * where.column_stride;
    const auto unit = unit_of(source, where, first, inner);
    if (!unit) return std::nullopt;
    if (!unit->exponent) continue;
    const int exponent = *unit->exponent;
    spread += unit->spread;
    const auto scale = scale_of_first_digits(source, where, first, inner, numbers);
    units[(g * panels + n / kPanelColumns) * kPanelColumns + n % kPanelColumns] =
        scale ? *scale : static_cast<float>(std::ldexp(1.0, exponent + 16));
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int8_t* panel = digits + ((g * panels + n / kPanelColumns) * taps + tap) * steps * 3 * kDigitBytes;
      for (std::int64_t k = 0; k < inner; ++k) {
        const double x = float_at(source, first + where.tap_offsets[static_cast<std::size_t>(tap)] + k * where.inner_stride);
        // Digits are bytes of the integer raised by 128 in each.
        const double integer =
            scale ? 65536 * std::nearbyint(x / static_cast<double>(*scale)) : std::nearbyint(std::ldexp(x, -exponent));
        const auto raised = static_cast<std::uint32_t>(static_cast<std::int32_t>(integer) + 0x808080);
        const std::int64_t of_step = k % kStepTerms,
                           at = n % kPanelColumns / 16 * 1024 + of_step % 16 * 64 + n % 16 * 4 + of_step / 16;
        for (int digit = 0; digit < 3; ++digit)
          panel[(k / kStepTerms * 3 + digit) * kDigitBytes + at] =
              static_cast<std::int8_t>((raised >> (16 - 8 * digit) & 0xff) ^ 0x80);
      }
    }
  }
  if (is_spread(spread, groups * columns)) return std::nullopt;
  return packed;
}

}  // namespace oclc
