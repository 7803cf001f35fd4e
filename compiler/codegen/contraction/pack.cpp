#include "compiler/codegen/contraction/pack.h"

#include <algorithm>
#include <cstring>

namespace oclc {
namespace {

// A strided gather of `count` elements into contiguous memory, neither of which need be aligned.
template <class Element>
void gather(std::byte* to, const std::byte* from, std::int64_t count, std::int64_t stride) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * kBytes, from + i * stride * kBytes, sizeof(Element));
}

using Gather = void (*)(std::byte*, const std::byte*, std::int64_t, std::int64_t);

// Copies of a size that is a constant are moves, of another one calls of memcpy.
Gather gather_of(DType dtype) {
  switch (size_bytes(dtype)) {
    case 1:
      return gather<std::uint8_t>;
    case 2:
      return gather<std::uint16_t>;
    case 4:
      return gather<std::uint32_t>;
    default:
      return gather<std::uint64_t>;
  }
}

}  // namespace

HostTensor pack_panels(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                       std::int64_t inner, std::int64_t panel_width) {
  const std::int64_t panels = (columns + panel_width - 1) / panel_width;
  const auto taps = static_cast<std::int64_t>(where.tap_offsets.size());
  HostTensor packed(source.dtype(), {groups * panels * taps * inner * panel_width});
  std::byte* to = packed.mutable_data();
  const std::byte* from = source.data();
  const auto bytes = static_cast<std::int64_t>(size_bytes(source.dtype()));
  const auto element = static_cast<std::size_t>(bytes), width = static_cast<std::size_t>(panel_width) * element;
  const Gather copy = gather_of(source.dtype());
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t count = std::min(panel_width, columns - panel * panel_width);
      for (const std::int64_t tap : where.tap_offsets) {
        for (std::int64_t k = 0; k < inner; ++k, to += width) {
          const std::byte* at = from + (where.base + g * where.group_stride + tap + k * where.inner_stride +
                                        panel * panel_width * where.column_stride) *
                                           bytes;
          if (where.column_stride == 1)
            std::memcpy(to, at, static_cast<std::size_t>(count) * element);
          else
            copy(to, at, count, where.column_stride);
        }
      }
    }
  }
  return packed;
}

HostTensor pack_columns(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                        std::int64_t inner, std::int64_t pitch) {
  HostTensor packed(source.dtype(), {groups * columns * pitch});
  const auto bytes = static_cast<std::int64_t>(size_bytes(source.dtype()));
  const std::byte* from = source.data();
  const Gather copy = gather_of(source.dtype());
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t n = 0; n < columns; ++n) {
      std::byte* to = packed.mutable_data() + (g * columns + n) * pitch * bytes;
      for (const std::int64_t tap : where.tap_offsets) {
        const std::int64_t first = where.base + g * where.group_stride + tap + n * where.column_stride;
        copy(to, from + first * bytes, inner, where.inner_stride);
        to += inner * bytes;
      }
    }
  }
  return packed;
}

}  // namespace oclc
