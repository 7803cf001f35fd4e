// Offsets in the arena from live ranges. Runs in the compiler (to print a plan's memory) and in the runtime (when symbols are
// bound), so a plan with symbolic dimensions is packed as tightly as a static one.
#pragma once
#include <cstdint>
#include <vector>

namespace oclc::package {

struct BufferLife {
  std::uint64_t bytes = 0;
  int first = 0;  // schedule indices, inclusive
  int last = 0;
  // Not negative: stands `tied_bytes` behind this other life, which is tied to none itself. Ties of one life do not overlap and
  // are multiples of kArenaAlignment.
  int tied_to = -1;
  std::uint64_t tied_bytes = 0;
};

struct ArenaLayout {
  std::vector<std::uint64_t> offsets;  // one per life, multiples of kArenaAlignment
  std::uint64_t bytes = 0;             // size of the arena
  std::uint64_t live_bytes = 0;        // largest sum of bytes alive at one schedule index: no layout can be smaller
};

inline constexpr std::uint64_t kArenaAlignment = 128;

// Deterministic. Lives that overlap in time never overlap in space. Bytes are rounded up to kArenaAlignment.
ArenaLayout layout_arena(const std::vector<BufferLife>& lives);

}  // namespace oclc::package
