#include "compiler/plan/buffer_pieces.h"

#include <algorithm>

#include "runtime/package/arena.h"

namespace oclc {
namespace {

constexpr std::int64_t kMostPieces = 64;
// A smaller buffer is not worth the bookkeeping.
constexpr std::int64_t kSmallestBytes = std::int64_t{1} << 16;

}  // namespace

BufferUse use_of(const Kernel& kernel, std::size_t operand, std::int64_t bytes, int at) {
  const BufferUse whole{0, bytes, at};
  const auto is_loaded = [&](const ScalarNode& node) {
    return node.kind == ScalarNode::Kind::load && node.operand == static_cast<int>(operand);
  };
  if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_loaded)) return whole;
  const auto element = static_cast<std::int64_t>(size_bytes(kernel.operands[operand].dtype));
  BufferUse use{bytes, 0, at};
  for (const Store& store : kernel.stores) {
    if (store.operand != static_cast<int>(operand)) continue;
    const std::int64_t lower = store.index.lower(), upper = store.index.upper();
    if (lower < 0 || upper < lower || upper >= bytes / element) return whole;
    use.begin = std::min(use.begin, lower * element);
    use.end = std::max(use.end, (upper + 1) * element);
  }
  return use.begin < use.end ? use : whole;
}

std::vector<BufferPiece> pieces_of(std::int64_t bytes, std::span<const BufferUse> uses) {
  if (bytes < kSmallestBytes) return {};
  const auto alignment = static_cast<std::int64_t>(package::kArenaAlignment);
  const std::int64_t step = (bytes / kMostPieces + alignment - 1) / alignment * alignment;
  std::vector<BufferPiece> pieces;
  for (std::int64_t offset = 0; offset < bytes; offset += step) {
    int first = -1;
    for (const BufferUse& use : uses) {
      if (use.begin < std::min(bytes, offset + step) && use.end > offset && (first < 0 || use.at < first)) first = use.at;
    }
    if (first < 0) return {};
    if (pieces.empty() || pieces.back().first != first) pieces.push_back({offset, first});
  }
  return pieces.size() > 1 ? pieces : std::vector<BufferPiece>();
}

}  // namespace oclc
