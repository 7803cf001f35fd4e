#include "compiler/codegen/contraction/cpu/pack_narrow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "compiler/contraction/multiples.h"
#include "compiler/ir/division.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::int64_t kBlocks[] = {256, 128, 64, 32, 16};  // terms of a scale, those that are tried

// Blocks of the columns of an operand, each as numbers that lie one after another.
class Blocks {
 public:
  Blocks(const HostTensor& source, const PackedOperand& where, std::int64_t inner, std::int64_t block)
      : from_(reinterpret_cast<const float*>(source.data())), where_(where), inner_(inner), block_(block) {}

  std::span<const float> at(std::int64_t g, std::int64_t column, std::int64_t tap, std::int64_t first) {
    const std::int64_t count = std::min(block_, inner_ - first);
    const float* from = from_ + where_.base + g * where_.group_stride + where_.tap_offsets[static_cast<std::size_t>(tap)] +
                        first * where_.inner_stride + column * where_.column_stride;
    numbers_.resize(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) numbers_[static_cast<std::size_t>(k)] = from[k * where_.inner_stride];
    return numbers_;
  }

 private:
  const float* from_;
  const PackedOperand& where_;
  const std::int64_t inner_, block_;
  std::vector<float> numbers_;
};

int offset_of(const Multiples& m, int bits) {
  const int half = 1 << (bits - 1);
  return m.low >= -half && m.high < half ? 0 : m.low + half;
}

std::optional<NarrowForm> form_of(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                  std::int64_t columns, std::int64_t inner, int bits, std::int64_t block) {
  Blocks blocks(source, where, inner, block);
  NarrowForm form{bits, block, false};
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t n = 0; n < columns; ++n) {
      for (std::size_t tap = 0; tap < where.tap_offsets.size(); ++tap) {
        for (std::int64_t k = 0; k < inner; k += block) {
          const auto m = multiples_of(blocks.at(g, n, static_cast<std::int64_t>(tap), k), bits);
          if (!m) return std::nullopt;
          form.offsets = form.offsets || offset_of(*m, bits) != 0;
        }
      }
    }
  }
  return form;
}

}  // namespace

std::optional<NarrowForm> narrow_form(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                      std::int64_t columns, std::int64_t inner) {
  if (source.dtype() != DType::f32) return std::nullopt;
  for (const int bits : {4, 8}) {
    for (const std::int64_t block : kBlocks) {
      if (const auto form = form_of(source, where, groups, columns, inner, bits, block)) return form;
    }
  }
  return std::nullopt;
}

HostTensor pack_narrow(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                       std::int64_t inner, std::int64_t panel_width, const NarrowForm& form) {
  const std::int64_t of_byte = 8 / form.bits, panels = ceil_div(columns, panel_width),
                     taps = static_cast<std::int64_t>(where.tap_offsets.size()),
                     head = 4 * panel_width * (form.offsets ? 2 : 1),
                     panel_bytes = taps * (head * ceil_div(inner, form.block) + panel_width * ceil_div(inner, of_byte));
  HostTensor packed(DType::i8, {groups * panels * panel_bytes});
  std::byte* to = packed.mutable_data();
  Blocks blocks(source, where, inner, form.block);
  for (std::int64_t i = 0; i < groups * panels; ++i) {
    const std::int64_t g = i / panels, first = i % panels * panel_width, count = std::min(panel_width, columns - first);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t k0 = 0; k0 < inner; k0 += form.block) {
        const std::int64_t terms = std::min(form.block, inner - k0);
        std::byte* const rows = to + head;
        for (std::int64_t j = 0; j < count; ++j) {
          const std::span<const float> numbers = blocks.at(g, first + j, tap, k0);
          const auto m = multiples_of(numbers, form.bits);
          OCLC_CHECK(m, "numbers that have the form");
          const int offset = offset_of(*m, form.bits);
          const auto shift = static_cast<float>(offset);
          std::memcpy(to + 4 * j, &m->scale, 4);
          if (form.offsets) std::memcpy(to + 4 * (panel_width + j), &shift, 4);
          for (std::int64_t k = 0; k < terms; ++k) {
            const double x = numbers[static_cast<std::size_t>(k)];
            const int q = (m->scale == 0 ? 0 : static_cast<int>(std::nearbyint(x / static_cast<double>(m->scale)))) - offset;
            const int lower = form.bits * static_cast<int>(k % of_byte), mask = (1 << form.bits) - 1;
            rows[k / of_byte * panel_width + j] |= static_cast<std::byte>((q & mask) << lower);
          }
        }
        to += head + panel_width * ceil_div(terms, of_byte);
      }
    }
  }
  return packed;
}

}  // namespace oclc
