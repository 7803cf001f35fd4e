#include "compiler/codegen/contraction/cpu/pack_short.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

constexpr std::int64_t kSampledColumns = 64;

// Of a block whose largest element is that large; 0 for zeros alone.
float scale_of(float largest, const ShortLayout& layout) { return largest / static_cast<float>(layout.largest()); }
bool is_legal(float scale) { return scale == 0 || (std::isfinite(scale) && scale >= std::numeric_limits<float>::min()); }

std::int32_t rounded(float x, float scale, const ShortLayout& layout) {
  if (scale == 0) return 0;
  const auto limit = static_cast<double>(layout.largest());
  return static_cast<std::int32_t>(
      std::clamp(std::nearbyint(static_cast<double>(x) / static_cast<double>(scale)), -limit, limit));
}

}  // namespace

bool has_short_form(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout) {
  const auto* const from = reinterpret_cast<const float*>(source.data());
  std::vector<float> largest(static_cast<std::size_t>(layout.columns));
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    for (const std::int64_t tap : where.tap_offsets) {
      for (std::int64_t k0 = 0; k0 < layout.inner; k0 += ShortLayout::kBlock) {
        std::fill(largest.begin(), largest.end(), 0.0f);
        for (std::int64_t k = k0; k < std::min(layout.inner, k0 + ShortLayout::kBlock); ++k) {
          const float* const at = from + where.base + g * where.group_stride + tap + k * where.inner_stride;
          for (std::int64_t n = 0; n < layout.columns; ++n) {
            const float x = std::fabs(at[n * where.column_stride]);
            if (!(x <= std::numeric_limits<float>::max())) return false;
            auto& most = largest[static_cast<std::size_t>(n)];
            most = std::max(most, x);
          }
        }
        if (!std::all_of(largest.begin(), largest.end(), [&](float x) { return is_legal(scale_of(x, layout)); })) return false;
      }
    }
  }
  return true;
}

std::optional<HostTensor> pack_short(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout) {
  constexpr std::int64_t block = ShortLayout::kBlock;
  const std::int64_t step = layout.step(), step_words = step / 2 + 1, width = layout.panel_width,
                     panels = ceil_div(layout.columns, width), blocks = ceil_div(layout.inner, block),
                     steps = ceil_div(layout.inner, step), taps = static_cast<std::int64_t>(where.tap_offsets.size());
  const std::uint32_t mask = (1u << layout.lower_bits) - 1;
  HostTensor packed(DType::f32, {layout.groups * panels * taps * width * (blocks + step_words * steps)});
  auto* to = reinterpret_cast<float*>(packed.mutable_data());
  const auto* const from = reinterpret_cast<const float*>(source.data());
  std::vector<float> values(static_cast<std::size_t>(block * width));
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    for (std::int64_t first = 0; first < layout.columns; first += width) {
      const std::int64_t count = std::min(width, layout.columns - first);
      for (const std::int64_t tap : where.tap_offsets) {
        for (std::int64_t k0 = 0; k0 < layout.inner; k0 += block) {
          const std::int64_t terms = std::min(block, layout.inner - k0);
          float* const scales = to;
          to += width;
          std::fill_n(scales, width, 0.0f);
          const float* const at =
              from + where.base + g * where.group_stride + tap + k0 * where.inner_stride + first * where.column_stride;
          for (std::int64_t k = 0; k < terms; ++k) {
            for (std::int64_t j = 0; j < count; ++j) {
              const float x = values[static_cast<std::size_t>(k * width + j)] =
                  at[k * where.inner_stride + j * where.column_stride];
              if (!std::isfinite(x)) return std::nullopt;
              scales[j] = std::max(scales[j], std::fabs(x));
            }
          }
          for (std::int64_t j = 0; j < count; ++j) {
            scales[j] = scale_of(scales[j], layout);
            if (!is_legal(scales[j])) return std::nullopt;
          }
          for (std::int64_t k1 = 0; k1 < terms; k1 += step, to += step_words * width) {
            for (std::int64_t j = 0; j < count; ++j) {
              std::uint32_t lower = 0;
              for (std::int64_t k = k1; k < std::min(terms, k1 + step); ++k) {
                const std::int32_t q = rounded(values[static_cast<std::size_t>(k * width + j)], scales[j], layout);
                const auto upper = static_cast<std::int16_t>(q >> layout.lower_bits);
                std::memcpy(reinterpret_cast<std::byte*>(to) + ((k - k1) * width + j) * 2, &upper, 2);
                lower |= (static_cast<std::uint32_t>(q) & mask) << (layout.lower_bits * (k - k1));
              }
              std::memcpy(to + (step_words - 1) * width + j, &lower, 4);
            }
          }
        }
      }
    }
  }
  return packed;
}

double short_error(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout) {
  const auto* const from = reinterpret_cast<const float*>(source.data());
  const std::int64_t sampled = std::min(kSampledColumns, layout.columns);
  double elements = 0, errors = 0;
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    for (std::int64_t i = 0; i < sampled; ++i) {
      const std::int64_t column = i * layout.columns / sampled;
      for (const std::int64_t tap : where.tap_offsets) {
        const float* const at = from + where.base + g * where.group_stride + tap + column * where.column_stride;
        for (std::int64_t k0 = 0; k0 < layout.inner; k0 += ShortLayout::kBlock) {
          const std::int64_t end = std::min(layout.inner, k0 + ShortLayout::kBlock);
          float largest = 0;
          for (std::int64_t k = k0; k < end; ++k) largest = std::max(largest, std::fabs(at[k * where.inner_stride]));
          const float scale = scale_of(largest, layout);
          for (std::int64_t k = k0; k < end; ++k) {
            const auto x = static_cast<double>(at[k * where.inner_stride]);
            const double error =
                x - static_cast<double>(rounded(static_cast<float>(x), scale, layout)) * static_cast<double>(scale);
            elements += x * x;
            errors += error * error;
          }
        }
      }
    }
  }
  return elements == 0 ? 0 : std::sqrt(errors / elements);
}

}  // namespace oclc
