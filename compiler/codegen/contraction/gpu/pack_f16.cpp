#include "compiler/codegen/contraction/gpu/pack_f16.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace oclc {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000;
// Columns that are gathered together: rows of a matrix are read in pieces of so many neighbours.
constexpr std::int64_t kTogether = 16;

// To the nearest half, ties to even, and the half's value.
struct Half {
  explicit Half(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits & 0x80000000, size = bits & 0x7fffffff;
    if (size >= kExponent) {
      code = static_cast<std::uint16_t>(sign >> 16 | 0x7c00 | (size > kExponent ? 0x200 : 0));
      value = x;
    } else if (size >= std::bit_cast<std::uint32_t>(0x1p-14f)) {
      const std::uint32_t rounded = (size + 0xfff + (size >> 13 & 1)) & ~std::uint32_t{0x1fff};
      code = static_cast<std::uint16_t>(sign >> 16 | ((rounded - (112u << 23)) >> 13));
      value = std::bit_cast<float>(sign | rounded);
    } else {
      // The last bit of 0.5's neighbours is that of the smallest halves.
      const float shifted = std::bit_cast<float>(size) + 0.5f;
      code =
          static_cast<std::uint16_t>(sign >> 16 | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
      value = std::copysign(shifted - 0.5f, x);
    }
  }
  std::uint16_t code;
  float value;
};

// Of element k of a step in its row: see the templates' heads.
std::int64_t place_in_row(const HalvesLayout& layout, std::int64_t row, std::int64_t k) {
  const std::int64_t in_block = k % 16;
  if (layout.fragments) return in_block / 4 * 8 + k / 16 * 4 + in_block % 4;
  if (layout.in_order) return (k / 8 ^ (row / 2 % 4)) * 8 + k % 8;
  const std::int64_t piece = k / 16 * 2 + in_block % 4 / 2;
  return (piece ^ (row / 2 % 4)) * 8 + in_block / 4 * 2 + in_block % 2;
}

}  // namespace

HostTensor pack_halves(const HostTensor& source, const PackedOperand& where, const HalvesLayout& layout) {
  HostTensor packed(DType::f32, {layout.words()});
  auto* const halves = reinterpret_cast<std::uint16_t*>(packed.mutable_data());
  auto* const scales = reinterpret_cast<float*>(packed.mutable_data()) + layout.scales_at();
  std::fill_n(scales, layout.words() - layout.scales_at(), 1.0f);
  const auto* const from = reinterpret_cast<const float*>(source.data());
  const std::int64_t depth = layout.taps * layout.inner, steps = layout.steps(), step = HalvesLayout::kStep;
  std::vector<float> columns(static_cast<std::size_t>(kTogether * depth));
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    for (std::int64_t first = 0; first < layout.columns; first += kTogether) {
      const std::int64_t count = std::min(kTogether, layout.columns - first);
      float* to = columns.data();
      for (const std::int64_t tap : where.tap_offsets) {
        for (std::int64_t k = 0; k < layout.inner; ++k, ++to) {
          const float* at =
              from + where.base + g * where.group_stride + tap + k * where.inner_stride + first * where.column_stride;
          for (std::int64_t j = 0; j < count; ++j) to[j * depth] = at[j * where.column_stride];
        }
      }
      for (std::int64_t j = 0; j < count; ++j) {
        const float* column = columns.data() + j * depth;
        std::uint32_t largest = 16u << 23;
        for (std::int64_t i = 0; i < depth; ++i)
          largest = std::max(largest, std::bit_cast<std::uint32_t>(column[i]) & kExponent);
        const float up = std::bit_cast<float>((268u << 23) - largest);
        const std::int64_t n = first + j, row = n % layout.tile_columns,
                           tile = g * layout.column_tiles() + n / layout.tile_columns;
        scales[g * layout.column_tiles() * layout.tile_columns + n] = std::bit_cast<float>(largest - (14u << 23));
        for (std::int64_t i = 0; i < depth; ++i) {
          const std::int64_t k = layout.flat ? i : i % layout.inner;
          const std::int64_t image = tile * steps + layout.image_of(layout.flat ? 0 : i / layout.inner, k / step);
          std::uint16_t* at = halves + image * layout.image_words() * 2 + row * step + place_in_row(layout, row, k % step);
          const float x = column[i] * up;
          const Half number(x);
          *at = number.code;
          if (layout.parts == 2) at[layout.tile_columns * step] = Half(x - number.value).code;
        }
      }
    }
  }
  return packed;
}

std::string packed_halves_text(const HalvesLayout& layout, const std::string& packed) {
  const std::int64_t bn = layout.tile_columns;
  std::string text = fmt::format(
      "const int at = {};\nconst int row = n % {};\n"
      "const __global half* from = (const __global half*)({} + ((size_t)(g * {} + n / {}) * {} + {}) * {}) + row * 32;\n",
      layout.flat ? "tap * K + k" : "k", bn, packed, layout.column_tiles(), bn, layout.steps(),
      layout.flat       ? "at / 32"
      : layout.line > 1 ? fmt::format("(tap / {0} * {1} + k / 32) * {0} + tap % {0}", layout.line, layout.steps() / layout.taps)
                        : fmt::format("tap * {} + k / 32", layout.steps() / layout.taps),
      layout.image_words());
  text += layout.fragments  ? "v = vload_half4(0, from + at % 16 / 4 * 8 + at % 32 / 16 * 4);\n"
          : layout.in_order ? "v = vload_half4(0, from + (at % 32 / 8 ^ row / 2 % 4) * 8 + at % 8);\n"
                            : "const int low = (at % 32 / 16 * 2 ^ row / 2 % 4) * 8 + at % 16 / 4 * 2;\n"
                              "v = (float4)(vload_half2(0, from + low), vload_half2(0, from + (low ^ 8)));\n";
  if (layout.parts == 2)
    text += fmt::format("v += (float4)(vload_half2(0, from + low + {0}), vload_half2(0, from + (low ^ 8) + {0}));\n", bn * 32);
  if (layout.step_scales)
    text += fmt::format("v *= *((const __global float*)(from - row * 32) + {} + row);\n", layout.number_words());
  else
    text += fmt::format("v *= {}[{} + g * {} + n];\n", packed, layout.scales_at(), layout.column_tiles() * bn);
  return text;
}

}  // namespace oclc
