#include "compiler/codegen/contraction/amx/pack_digits.h"

#include <algorithm>
#include <cmath>
#include <span>

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

std::optional<ColumnUnit> unit_of(std::span<const float> column) {
  double largest = 0, squares = 0;
  for (const float element : column) {
    const double x = std::fabs(static_cast<double>(element));
    largest = std::max(largest, x);
    squares += x * x;
  }
  if (!std::isfinite(squares)) return std::nullopt;  // squares of floats overflow no double
  if (largest == 0) return ColumnUnit{};
  const int exponent = unit_exponent(largest);
  if (exponent + 16 > 127) return std::nullopt;
  const double rms = std::sqrt(squares / static_cast<double>(column.size()));
  return ColumnUnit{std::pow(std::ldexp(static_cast<double>(kLargestInteger), exponent) / rms, 2), exponent};
}

// Columns of fewer elements are integers of 8 bits times a scale by chance.
constexpr std::size_t kFewestOfScale = 32;

// A column of a quantised model: its integers are the first digits, the others are 0, and nothing is rounded. Nothing where the
// column is of other floats.
std::optional<float> scale_of_first_digits(std::span<const float> column) {
  if (column.size() < kFewestOfScale) return std::nullopt;
  const auto multiples = multiples_of(column, 8);
  if (!multiples || multiples->scale == 0 || multiples->low < -128 || multiples->high > 127) return std::nullopt;
  return multiples->scale;
}

// The columns of a constant, kPanelColumns at a time: memory is read by rows, which lie together.
class ColumnReader {
 public:
  ColumnReader(const HostTensor& source, const PackedOperand& where, std::int64_t columns, std::int64_t inner)
      : source_(source),
        where_(where),
        columns_(columns),
        inner_(inner),
        depth_(static_cast<std::int64_t>(where.tap_offsets.size()) * inner) {}

  // The elements of column `n` of group `g`, tap by tap; valid until the next call.
  std::span<const float> column(std::int64_t g, std::int64_t n) {
    const std::int64_t from = n / kPanelColumns * kPanelColumns;
    if (g != group_ || from != from_) read(g, from);
    return std::span(numbers_).subspan(static_cast<std::size_t>((n - from) * depth_), static_cast<std::size_t>(depth_));
  }

 private:
  void read(std::int64_t g, std::int64_t from) {
    const std::int64_t count = std::min(kPanelColumns, columns_ - from);
    numbers_.resize(static_cast<std::size_t>(count * depth_));
    std::int64_t term = 0;
    for (const std::int64_t tap : where_.tap_offsets) {
      for (std::int64_t k = 0; k < inner_; ++k, ++term) {
        const std::int64_t first =
            where_.base + g * where_.group_stride + tap + k * where_.inner_stride + from * where_.column_stride;
        for (std::int64_t i = 0; i < count; ++i)
          numbers_[static_cast<std::size_t>(i * depth_ + term)] = float_at(source_, first + i * where_.column_stride);
      }
    }
    group_ = g, from_ = from;
  }

  const HostTensor& source_;
  const PackedOperand& where_;
  const std::int64_t columns_, inner_, depth_;
  std::int64_t group_ = -1, from_ = -1;
  std::vector<float> numbers_;
};

// The nearest integer, ties to even, of numbers below 2^51.
double nearest_even(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

bool is_spread(double spread, std::int64_t columns) {
  return spread > cost::kMostSpreadOfLimbs * cost::kMostSpreadOfLimbs * static_cast<double>(columns);
}

}  // namespace

bool has_digits(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                std::int64_t inner) {
  ColumnReader reader(source, where, columns, inner);
  double spread = 0;
  for (std::int64_t column = 0; column < groups * columns; ++column) {
    const auto unit = unit_of(reader.column(column / columns, column % columns));
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
  ColumnReader reader(source, where, columns, inner);
  double spread = 0;
  for (std::int64_t column = 0; column < groups * columns; ++column) {
    const std::int64_t g = column / columns, n = column % columns;
    const std::span<const float> elements = reader.column(g, n);
    const auto unit = unit_of(elements);
    if (!unit) return std::nullopt;
    if (!unit->exponent) continue;
    const int exponent = *unit->exponent;
    spread += unit->spread;
    const auto scale = source.dtype() == DType::f32 ? scale_of_first_digits(elements) : std::nullopt;
    units[(g * panels + n / kPanelColumns) * kPanelColumns + n % kPanelColumns] =
        scale ? *scale : static_cast<float>(std::ldexp(1.0, exponent + 16));
    const double raise = std::ldexp(1.0, -exponent);
    std::int8_t* panel =
        digits + (g * panels + n / kPanelColumns) * taps * steps * 3 * kDigitBytes + n % kPanelColumns / 16 * 1024 + n % 16 * 4;
    for (std::int64_t tap = 0; tap < taps; ++tap, panel += steps * 3 * kDigitBytes) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const double x = elements[static_cast<std::size_t>(tap * inner + k)];
        // Digits are bytes of the integer raised by 128 in each.
        const double integer = scale ? 65536 * nearest_even(x / static_cast<double>(*scale)) : nearest_even(x * raise);
        const auto raised = static_cast<std::uint32_t>(static_cast<std::int32_t>(integer) + 0x808080);
        const std::int64_t of_step = k % kStepTerms;
        std::int8_t* at = panel + k / kStepTerms * 3 * kDigitBytes + of_step % 16 * 64 + of_step / 16;
        for (int digit = 0; digit < 3; ++digit)
          at[digit * kDigitBytes] = static_cast<std::int8_t>((raised >> (16 - 8 * digit) & 0xff) ^ 0x80);
      }
    }
  }
  if (is_spread(spread, groups * columns)) return std::nullopt;
  return packed;
}

}  // namespace oclc
