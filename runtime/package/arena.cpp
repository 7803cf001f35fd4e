#include "runtime/package/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace oclc::package {
namespace {

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// Largest sum over the schedule, by a sweep over the lives' ends.
std::uint64_t largest_live(const std::vector<BufferLife>& lives, bool aligned) {
  std::vector<std::pair<int, std::int64_t>> events;
  for (const BufferLife& life : lives) {
    const auto bytes = static_cast<std::int64_t>(aligned ? rounded(life.bytes) : life.bytes);
    if (bytes == 0) continue;
    events.emplace_back(life.first, bytes);
    events.emplace_back(life.last + 1, -bytes);
  }
  std::sort(events.begin(), events.end());  // at one index, ends (negative) come before starts
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [index, bytes] : events) most = std::max(most, now += bytes);
  return static_cast<std::uint64_t>(most);
}

struct Placement {
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = 0;
};

using Ties = std::vector<std::vector<std::size_t>>;  // by life: itself and those tied to it, if there are any

// Lowest offset at which `life` and what is tied to it meet nothing placed: each conflict moves them up to its end.
std::uint64_t lowest_offset(const std::vector<BufferLife>& lives, const std::vector<std::size_t>& tied,
                            const std::vector<std::size_t>& placed, const std::vector<std::uint64_t>& offsets) {
  std::uint64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::size_t other : placed) {
      const BufferLife& there = lives[other];
      const std::uint64_t begin = offsets[other], end = begin + rounded(there.bytes);
      for (const std::size_t i : tied) {
        const BufferLife& life = lives[i];
        if (there.last < life.first || life.last < there.first) continue;
        const std::uint64_t at = offset + life.tied_bytes;
        if (at >= end || at + rounded(life.bytes) <= begin) continue;
        offset = end - life.tied_bytes;
        moved = true;
      }
    }
  }
  return offset;
}

// Places lives in `order`, each into the smallest hole between the placed lives it meets in time (or the lowest, with
// `lowest_hole`). Gives up when the arena reaches `limit`.
Placement place(const std::vector<BufferLife>& lives, const Ties& ties, const std::vector<std::size_t>& order, bool lowest_hole,
                std::uint64_t limit) {
  Placement result;
  result.offsets.assign(lives.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  placed.reserve(lives.size());
  const auto put = [&](std::size_t i, std::uint64_t offset) {
    result.offsets[i] = offset;
    result.bytes = std::max(result.bytes, offset + rounded(lives[i].bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](std::uint64_t value, std::size_t other) { return value < result.offsets[other]; }),
                  i);
  };
  for (const std::size_t i : order) {
    const BufferLife& life = lives[i];
    const std::uint64_t bytes = rounded(life.bytes);
    if (bytes == 0 || life.tied_to >= 0) continue;
    if (!ties[i].empty()) {
      const std::uint64_t offset = lowest_offset(lives, ties[i], placed, result.offsets);
      for (const std::size_t tied : ties[i]) put(tied, offset + lives[tied].tied_bytes);
      if (result.bytes >= limit) return result;
      continue;
    }
    std::uint64_t end = 0;  // of the placed lives below that meet this one
    std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t best_hole = best;
    for (const std::size_t other : placed) {
      if (lives[other].last < life.first || life.last < lives[other].first) continue;
      const std::uint64_t begin = result.offsets[other];
      if (begin > end && begin - end >= bytes && begin - end < best_hole) {
        best = end;
        best_hole = begin - end;
        if (lowest_hole) break;
      }
      end = std::max(end, begin + rounded(lives[other].bytes));
    }
    put(i, best_hole != std::numeric_limits<std::uint64_t>::max() ? best : end);
    if (result.bytes >= limit) return result;
  }
  return result;
}

class Search {
 public:
  explicit Search(const std::vector<BufferLife>& lives)
      : lives_(lives), bound_(largest_live(lives, true)), ties_(lives.size()) {
    best_.bytes = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < lives.size(); ++i) {
      if (lives[i].tied_to < 0) continue;
      auto& ties = ties_[static_cast<std::size_t>(lives[i].tied_to)];
      if (ties.empty()) ties.push_back(static_cast<std::size_t>(lives[i].tied_to));
      ties.push_back(i);
    }
  }

  Placement run() {
    std::vector<std::size_t> order(lives_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto length = [&](std::size_t i) { return static_cast<std::uint64_t>(lives_[i].last - lives_[i].first + 1); };
    const auto bytes = [&](std::size_t i) { return lives_[i].bytes; };
    const auto by = [&](auto key) {
      auto sorted = order;
      std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
      // What is alive in steps fits nowhere as well as at the bottom.
      std::stable_partition(sorted.begin(), sorted.end(), [&](std::size_t i) { return !ties_[i].empty(); });
      return sorted;
    };
    const std::vector<std::size_t> orders[] = {
        by([&](std::size_t i) { return bytes(i); }),
        by([&](std::size_t i) { return std::pair(length(i), bytes(i)); }),
        by([&](std::size_t i) { return static_cast<double>(bytes(i)) * static_cast<double>(length(i)); }),
        by([&](std::size_t i) { return std::pair(-lives_[i].first, bytes(i)); }),
        by([&](std::size_t i) { return std::pair(lives_[i].last, bytes(i)); }),
    };
    for (const auto& candidate : orders)
      for (const bool lowest_hole : {false, true})
        if (attempt(candidate, lowest_hole)) return best_;
    improve();
    return best_;
  }

 private:
  // True when the result cannot be better.
  bool attempt(const std::vector<std::size_t>& order, bool lowest_hole) {
    Placement placement = place(lives_, ties_, order, lowest_hole, best_.bytes);
    if (placement.bytes < best_.bytes) {
      best_ = std::move(placement);
      best_order_ = order;
      best_lowest_hole_ = lowest_hole;
    }
    return best_.bytes <= bound_;
  }

  // Moves what stands at the top of the best arena to the front of its order: what did not fit gets to choose first.
  void improve() {
    const std::size_t n = lives_.size();
    const std::size_t attempts = std::clamp<std::size_t>(4'000'000 / std::max<std::size_t>(1, n * n), 8, 200);
    std::vector<std::size_t> order = best_order_;
    Placement current = best_;
    for (std::size_t t = 0; t < attempts; ++t) {
      std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
        return lives_[i].bytes != 0 && current.offsets[i] + rounded(lives_[i].bytes) == current.bytes;
      });
      current = place(lives_, ties_, order, best_lowest_hole_, std::numeric_limits<std::uint64_t>::max());
      if (current.bytes >= best_.bytes) continue;
      best_ = current;
      if (best_.bytes <= bound_) return;
    }
  }

  const std::vector<BufferLife>& lives_;
  std::uint64_t bound_;
  Ties ties_;
  Placement best_;
  std::vector<std::size_t> best_order_;
  bool best_lowest_hole_ = false;
};

}  // namespace

ArenaLayout layout_arena(const std::vector<BufferLife>& lives) {
  std::uint64_t total = 0;
  for (const BufferLife& life : lives)
    if (__builtin_add_overflow(total, life.bytes, &total) || total > (std::uint64_t{1} << 60))
      throw std::length_error("the buffers of a plan exceed 2^60 bytes");
  Placement best = Search(lives).run();
  if (lives.empty() || total == 0) best = {std::vector<std::uint64_t>(lives.size(), 0), 0};
  return {std::move(best.offsets), best.bytes, largest_live(lives, false)};
}

}  // namespace oclc::package
