#include "compiler/codegen/pack_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

constexpr float kLargest = 3.38e38F;
constexpr std::int64_t kWidth = 32, kPartElems = 1024;

// Position in a part of the element at (k, column) of a step. Several parts pair the terms k and k + 16.
constexpr std::int64_t position(std::int64_t k, std::int64_t column, int parts) {
  const std::int64_t pair = parts == 1 ? k / 2 : k % 16, of_pair = parts == 1 ? k % 2 : k / 16;
  return column / 16 * 512 + pair * 32 + column % 16 * 2 + of_pair;
}

}  // namespace

std::optional<HostTensor> pack_parts(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                     std::int64_t columns, std::int64_t inner, int parts) {
  const std::int64_t panels = ceil_div(columns, kWidth), steps = ceil_div(inner, kWidth);
  HostTensor packed(DType::bf16,
                    {groups * panels * static_cast<std::int64_t>(where.tap_offsets.size()) * steps * parts * kPartElems});
  auto* to = reinterpret_cast<std::uint16_t*>(packed.mutable_data());
  const auto element = [&](std::int64_t at) {
    if (source.dtype() != DType::f32) return static_cast<float>(source.at(at));
    float x = 0;
    std::memcpy(&x, source.data() + at * 4, 4);
    return x;
  };
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t count = std::min(kWidth, columns - panel * kWidth);
      for (const std::int64_t tap : where.tap_offsets) {
        const std::int64_t first = where.base + g * where.group_stride + tap + panel * kWidth * where.column_stride;
        for (std::int64_t step = 0; step < steps; ++step, to += parts * kPartElems) {
          const std::int64_t depth = std::min(kWidth, inner - step * kWidth);
          for (std::int64_t k = 0; k < depth; ++k) {
            for (std::int64_t n = 0; n < count; ++n) {
              float x = element(first + (step * kWidth + k) * where.inner_stride + n * where.column_stride);
              if (!(std::fabs(x) <= kLargest)) return std::nullopt;
              for (int part = 0; part < parts; ++part) {
                const std::uint16_t bits = float_to_bfloat(x);
                to[part * kPartElems + position(k, n, parts)] = bits;
                x -= bfloat_to_float(bits);
              }
            }
          }
        }
      }
    }
  }
  return packed;
}

}  // namespace oclc
