#include "compiler/codegen/contraction/amx/pack_parts.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

constexpr float kLargest = 3.38e38F;
constexpr std::int64_t kPartsWidth = 32, kPartElems = 1024;

// Position in a part of the element at (k, column) of a step. Several parts pair the terms k and k + 16.
constexpr std::int64_t position(std::int64_t k, std::int64_t column, int parts) {
  const std::int64_t pair = parts == 1 ? k / 2 : k % 16, of_pair = parts == 1 ? k % 2 : k / 16;
  return column / 16 * 512 + pair * 32 + column % 16 * 2 + of_pair;
}

// Parts of one operand, step after step.
class PartsPacker {
 public:
  PartsPacker(const HostTensor& source, std::int64_t steps, int parts)
      : packed(DType::bf16, {steps * parts * kPartElems}),
        source_(source),
        parts_(parts),
        to_(reinterpret_cast<std::uint16_t*>(packed.mutable_data())) {}

  // A step of up to 32 terms: element (k, column) at terms[k] + column * stride. False if an element has no parts.
  bool add(std::span<const std::int64_t> terms, std::int64_t columns, std::int64_t stride) {
    for (std::size_t k = 0; k < terms.size(); ++k) {
      for (std::int64_t n = 0; n < columns; ++n) {
        float x = float_at(source_, terms[k] + n * stride);
        if (!(std::fabs(x) <= kLargest)) return false;
        for (int part = 0; part < parts_; ++part) {
          const std::uint16_t bits = float_to_bfloat(x);
          to_[part * kPartElems + position(static_cast<std::int64_t>(k), n, parts_)] = bits;
          x -= bfloat_to_float(bits);
        }
      }
    }
    to_ += parts_ * kPartElems;
    return true;
  }

  HostTensor packed;

 private:
  const HostTensor& source_;
  const int parts_;
  std::uint16_t* to_;
};

}  // namespace

bool has_parts(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
               std::int64_t inner) {
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t panel = 0; panel < columns; panel += kPartsWidth) {
      const std::int64_t width = std::min(kPartsWidth, columns - panel);
      for (const std::int64_t tap : where.tap_offsets) {
        for (std::int64_t k = 0; k < inner; ++k) {
          const std::int64_t first =
              where.base + g * where.group_stride + tap + k * where.inner_stride + panel * where.column_stride;
          for (std::int64_t n = 0; n < width; ++n) {
            if (!(std::fabs(float_at(source, first + n * where.column_stride)) <= kLargest)) return false;
          }
        }
      }
    }
  }
  return true;
}

std::optional<HostTensor> pack_parts(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                     std::int64_t columns, std::int64_t inner, int parts) {
  const std::int64_t panels = ceil_div(columns, kPartsWidth), steps = ceil_div(inner, kPartsWidth);
  PartsPacker packer(source, groups * panels * static_cast<std::int64_t>(where.tap_offsets.size()) * steps, parts);
  std::vector<std::int64_t> terms;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      for (const std::int64_t tap : where.tap_offsets) {
        const std::int64_t first = where.base + g * where.group_stride + tap + panel * kPartsWidth * where.column_stride;
        for (std::int64_t step = 0; step < steps; ++step) {
          terms.clear();
          for (std::int64_t k = step * kPartsWidth; k < std::min(inner, (step + 1) * kPartsWidth); ++k)
            terms.push_back(first + k * where.inner_stride);
          if (!packer.add(terms, std::min(kPartsWidth, columns - panel * kPartsWidth), where.column_stride))
            return std::nullopt;
        }
      }
    }
  }
  return std::move(packer.packed);
}

std::optional<HostTensor> pack_patch_parts(const HostTensor& source, const PackedOperand& where, std::int64_t columns,
                                           std::int64_t channels, int parts) {
  const std::int64_t panels = ceil_div(columns, kPartsWidth);
  const auto taps = static_cast<std::int64_t>(where.tap_offsets.size()), count = channels * taps;
  PartsPacker packer(source, panels * ceil_div(count, kPartsWidth), parts);
  std::vector<std::int64_t> terms;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t first = where.base + panel * kPartsWidth * where.column_stride;
    for (std::int64_t k0 = 0; k0 < count; k0 += kPartsWidth) {
      terms.clear();
      for (std::int64_t k = k0; k < std::min(count, k0 + kPartsWidth); ++k)
        terms.push_back(first + k / taps * where.inner_stride + where.tap_offsets[static_cast<std::size_t>(k % taps)]);
      if (!packer.add(terms, std::min(kPartsWidth, columns - panel * kPartsWidth), where.column_stride)) return std::nullopt;
    }
  }
  return std::move(packer.packed);
}

}  // namespace oclc
