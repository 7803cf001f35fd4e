#include "compiler/contraction/prefetch.h"

namespace oclc {
namespace {

// Longest chain where sums need not be careful.
constexpr std::int64_t kLongestPiece = 256;
// How far ahead weights are asked for: with wide vectors from memory and from the second-level cache, and where registers are
// few. There the processor's own guesses suffice for one row, which takes a panel from its beginning to its end, and for so
// many rows that a panel is mostly in the cache.
constexpr std::int64_t kFirstPrefetchBytes = 8 << 10, kLaterPrefetchBytes = 2 << 10, kFewRegistersPrefetchBytes = 4 << 10,
                       kFewPrefetchRows = 128;
// With software prefetch, weights larger than this fraction of the L2 cache are prefetched one panel ahead.
constexpr std::int64_t kWideShare = 8;
}  // namespace

std::int64_t longest_chain(const Target& target) { return target.precision.blocked_summation ? kLongestChain : kLongestPiece; }

bool prefetches_panel(const Target& target, std::int64_t bytes) {
  return bytes > (target.has.software_prefetch ? target.l2_bytes / kWideShare : target.l2_bytes);
}

PrefetchDistance prefetch_rows(const Target& target, std::int64_t rows, std::int64_t panel_width) {
  const auto rows_of = [&](std::int64_t bytes) { return bytes / (panel_width * 4); };
  if (target.has.software_prefetch) return {rows_of(kFirstPrefetchBytes), rows_of(kLaterPrefetchBytes)};
  const std::int64_t ahead = rows > 1 && rows <= kFewPrefetchRows ? rows_of(kFewRegistersPrefetchBytes) : 0;
  return {ahead, ahead};
}

}  // namespace oclc
