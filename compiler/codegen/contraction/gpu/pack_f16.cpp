#include "compiler/codegen/contraction/gpu/pack_f16.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace oclc {
namespace {

// Columns that are gathered together: rows of a matrix are read in pieces of so many neighbours.
constexpr std::int64_t kTogether = 16;

std::uint32_t exponent_of(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7f800000; }

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
  // By the row's part of a swizzle.
  using Places = std::array<std::int64_t, HalvesLayout::kStep>;
  std::array<Places, 4> places{};
  for (std::int64_t part = 0; part < 4; ++part)
    for (std::int64_t k = 0; k < step; ++k)
      places[static_cast<std::size_t>(part)][static_cast<std::size_t>(k)] = place_in_row(layout, 2 * part, k);
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
        for (std::int64_t i = 0; i < depth; ++i) largest = std::max(largest, exponent_of(column[i]));
        const float up = std::bit_cast<float>((268u << 23) - largest);
        const std::int64_t n = first + j, row = n % layout.tile_columns,
                           tile = g * layout.column_tiles() + n / layout.tile_columns;
        scales[g * layout.column_tiles() * layout.tile_columns + n] = std::bit_cast<float>(largest - (14u << 23));
        // Steps begin anew with each tap, or with `flat` run through all of them.
        const std::int64_t length = layout.flat ? depth : layout.inner;
        for (std::int64_t begin = 0; begin < depth; begin += length) {
          for (std::int64_t k = 0; k < length; k += step) {
            const std::int64_t image = tile * steps + layout.image_of(begin / length, k / step);
            std::uint16_t* at = halves + image * layout.image_words() * 2 + row * step;
            const float* numbers = column + begin + k;
            const Places& place = places[static_cast<std::size_t>(row / 2 % 4)];
            for (std::int64_t i = 0; i < std::min(step, length - k); ++i) {
              const float x = numbers[i] * up;
              std::uint16_t* half = at + place[static_cast<std::size_t>(i)];
              *half = float_to_half(x);
              if (layout.parts == 2) half[layout.tile_columns * step] = float_to_half(x - half_to_float(*half));
            }
          }
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
