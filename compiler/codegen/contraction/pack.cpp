#include "compiler/codegen/contraction/pack.h"

#include <algorithm>
#include <cstring>

namespace oclc {

HostTensor pack_panels(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                       std::int64_t inner, std::int64_t panel_width) {
  const std::int64_t panels = (columns + panel_width - 1) / panel_width;
  const auto taps = static_cast<std::int64_t>(where.tap_offsets.size());
  HostTensor packed(source.dtype(), {groups * panels * taps * inner * panel_width});
  std::byte* to = packed.mutable_data();
  const std::byte* from = source.data();
  const auto bytes = static_cast<std::int64_t>(size_bytes(source.dtype()));
  const auto element = static_cast<std::size_t>(bytes), width = static_cast<std::size_t>(panel_width) * element;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t count = std::min(panel_width, columns - panel * panel_width);
      for (const std::int64_t tap : where.tap_offsets) {
        for (std::int64_t k = 0; k < inner; ++k, to += width) {
          const std::byte* at = from + (where.base + g * where.group_stride + tap + k * where.inner_stride +
                                        panel * panel_width * where.column_stride) *
                                           bytes;
          if (where.column_stride == 1) {
            std::memcpy(to, at, static_cast<std::size_t>(count) * element);
            continue;
          }
          for (std::int64_t j = 0; j < count; ++j) std::memcpy(to + j * bytes, at + j * where.column_stride * bytes, element);
        }
      }
    }
  }
  return packed;
}

HostTensor pack_columns(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                        std::int64_t inner, std::int64_t pitch) {
  HostTensor packed(source.dtype(), {groups * columns * pitch});
  const auto element = size_bytes(source.dtype());
  const auto bytes = static_cast<std::int64_t>(element);
  const std::byte* from = source.data();
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t n = 0; n < columns; ++n) {
      std::byte* to = packed.mutable_data() + (g * columns + n) * pitch * bytes;
      for (const std::int64_t tap : where.tap_offsets) {
        const std::int64_t first = where.base + g * where.group_stride + tap + n * where.column_stride;
        for (std::int64_t k = 0; k < inner; ++k, to += bytes)
          std::memcpy(to, from + (first + k * where.inner_stride) * bytes, element);
      }
    }
  }
  return packed;
}

}  // namespace oclc
