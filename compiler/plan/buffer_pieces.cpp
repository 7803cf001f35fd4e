#include "compiler/plan/buffer_pieces.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "runtime/package/arena.h"

namespace oclc {
namespace {

constexpr std::size_t kMostPieces = 64;
// A smaller buffer is not worth the bookkeeping.
constexpr std::int64_t kSmallestBytes = std::int64_t{1} << 16;

// Two neighbours become one, which begins with the earlier: those for which fewest bytes begin to live fewest steps too early.
void unite_cheapest(std::vector<BufferPiece>& pieces, std::int64_t bytes) {
  const auto size = [&](std::size_t i) { return (i + 1 < pieces.size() ? pieces[i + 1].offset : bytes) - pieces[i].offset; };
  std::size_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    const std::int64_t later = pieces[i].first > pieces[i + 1].first ? size(i) : size(i + 1);
    const std::int64_t waste = later * std::abs(pieces[i].first - pieces[i + 1].first);
    if (waste >= least) continue;
    least = waste;
    best = i;
  }
  pieces[best].first = std::min(pieces[best].first, pieces[best + 1].first);
  pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
}

}  // namespace

std::vector<BufferUse> uses_of(const Kernel& kernel, std::size_t operand, std::int64_t bytes, int at) {
  const std::vector<BufferUse> whole{{0, bytes, at}};
  const auto is_loaded = [&](const ScalarNode& node) {
    return node.kind == ScalarNode::Kind::load && node.operand == static_cast<int>(operand);
  };
  if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_loaded)) return whole;
  const auto element = static_cast<std::int64_t>(size_bytes(kernel.operands[operand].dtype));
  std::vector<BufferUse> uses;
  for (const Store& store : kernel.stores) {
    if (store.operand != static_cast<int>(operand)) continue;
    const std::int64_t lower = store.index.lower(), upper = store.index.upper();
    if (lower < 0 || upper < lower || upper >= bytes / element) return whole;
    uses.push_back({lower * element, (upper + 1) * element, at});
  }
  return uses.empty() ? whole : uses;
}

std::vector<BufferPiece> pieces_of(std::int64_t bytes, std::span<const BufferUse> uses) {
  if (bytes < kSmallestBytes) return {};
  const auto alignment = static_cast<std::int64_t>(package::kArenaAlignment);
  std::set<std::int64_t> cuts{0};
  for (const BufferUse& use : uses) {
    cuts.insert(use.begin / alignment * alignment);
    cuts.insert((use.end + alignment - 1) / alignment * alignment);
  }
  std::vector<BufferPiece> pieces;
  for (const std::int64_t cut : cuts) {
    if (cut >= bytes) break;
    int first = -1;
    for (const BufferUse& use : uses) {
      if (use.begin / alignment * alignment <= cut && use.end > cut && (first < 0 || use.at < first)) first = use.at;
    }
    if (first < 0) return {};
    if (pieces.empty() || pieces.back().first != first) pieces.push_back({cut, first});
  }
  while (pieces.size() > kMostPieces) unite_cheapest(pieces, bytes);
  return pieces.size() > 1 ? pieces : std::vector<BufferPiece>();
}

}  // namespace oclc
