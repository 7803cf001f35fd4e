#include "runtime/package/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

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

// Comparisons of lives that a search may make, about a third of a second. Up to some 2,500 lives every order is tried.
constexpr std::uint64_t kMaxComparisons = std::uint64_t{1} << 26;

class TooManyComparisons {};

// Throws TooManyComparisons.
void count_comparisons(std::uint64_t& made, std::size_t more) {
  if ((made += more) > kMaxComparisons) throw TooManyComparisons{};
}

using Ties = std::vector<std::vector<std::size_t>>;  // by life: itself and those tied to it, if there are any

// Lowest offset at which `life` and what is tied to it meet nothing placed: each conflict moves them up to its end.
std::uint64_t lowest_offset(const std::vector<BufferLife>& lives, const std::vector<std::size_t>& tied,
                            const std::vector<std::size_t>& placed, const std::vector<std::uint64_t>& offsets,
                            std::uint64_t& comparisons) {
  std::uint64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    count_comparisons(comparisons, placed.size() * tied.size());
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
                std::uint64_t limit, std::uint64_t& comparisons) {
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
      const std::uint64_t offset = lowest_offset(lives, ties[i], placed, result.offsets, comparisons);
      for (const std::size_t tied : ties[i]) put(tied, offset + lives[tied].tied_bytes);
      if (result.bytes >= limit) return result;
      continue;
    }
    count_comparisons(comparisons, placed.size());
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

// Free space of an arena that has no end, by place and by size.
class FreeSpace {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) return std::exchange(end_, end_ + bytes);
    const auto [size, at] = *best;
    remove(at, size);
    if (size > bytes) add(at + bytes, size - bytes);
    return at;
  }
  void give(std::uint64_t at, std::uint64_t bytes) {
    const auto next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == at) {
        remove(before, size);
        at = before;
        bytes += size;
      }
    }
    if (const auto after = by_place_.find(at + bytes); after != by_place_.end()) {
      const std::uint64_t size = after->second;
      remove(at + bytes, size);
      bytes += size;
    }
    add(at, bytes);
  }
  std::uint64_t end() const { return end_; }

 private:
  void add(std::uint64_t at, std::uint64_t bytes) {
    by_place_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  void remove(std::uint64_t at, std::uint64_t bytes) {
    by_place_.erase(at);
    by_size_.erase({bytes, at});
  }
  std::map<std::uint64_t, std::uint64_t> by_place_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  std::uint64_t end_ = 0;
};

// For very many lives: in the order of their beginnings each takes the smallest hole there is, what is tied together as one.
Placement sweep(const std::vector<BufferLife>& lives, const Ties& ties) {
  struct Event {
    int index;
    bool begins;
    std::size_t life;
  };
  std::vector<Event> events;
  std::vector<std::uint64_t> bytes(lives.size(), 0);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].tied_to >= 0) continue;
    int first = lives[i].first, last = lives[i].last;
    bytes[i] = rounded(lives[i].bytes);
    for (const std::size_t tied : ties[i]) {
      bytes[i] = std::max(bytes[i], lives[tied].tied_bytes + rounded(lives[tied].bytes));
      first = std::min(first, lives[tied].first);
      last = std::max(last, lives[tied].last);
    }
    if (bytes[i] == 0) continue;
    events.push_back({first, true, i});
    events.push_back({last + 1, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.index, a.begins, a.life) < std::tuple(b.index, b.begins, b.life);  // what ends makes room first
  });
  Placement result;
  result.offsets.assign(lives.size(), 0);
  FreeSpace space;
  for (const Event& event : events) {
    std::uint64_t& offset = result.offsets[event.life];
    if (event.begins)
      offset = space.take(bytes[event.life]);
    else
      space.give(offset, bytes[event.life]);
  }
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (lives[i].tied_to >= 0)
      result.offsets[i] = result.offsets[static_cast<std::size_t>(lives[i].tied_to)] + lives[i].tied_bytes;
  result.bytes = space.end();
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
    try {
      for (const auto& candidate : orders)
        for (const bool lowest_hole : {false, true})
          if (attempt(candidate, lowest_hole)) return best_;
      improve();
    } catch (const TooManyComparisons&) {
      if (best_order_.empty()) return sweep(lives_, ties_);
    }
    return best_;
  }

 private:
  // True when the result cannot be better.
  bool attempt(const std::vector<std::size_t>& order, bool lowest_hole) {
    Placement placement = place(lives_, ties_, order, lowest_hole, best_.bytes, comparisons_);
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
      current = place(lives_, ties_, order, best_lowest_hole_, std::numeric_limits<std::uint64_t>::max(), comparisons_);
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
  std::uint64_t comparisons_ = 0;
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
