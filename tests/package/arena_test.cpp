#include "runtime/package/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace oclc::package;

namespace {

void check_disjoint(const std::vector<BufferLife>& lives, const ArenaLayout& layout) {
  REQUIRE(layout.offsets.size() == lives.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    REQUIRE(layout.offsets[i] % kArenaAlignment == 0);
    REQUIRE(layout.offsets[i] + lives[i].bytes <= layout.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool overlap =
          layout.offsets[i] < layout.offsets[j] + lives[j].bytes && layout.offsets[j] < layout.offsets[i] + lives[i].bytes;
      if (meet && overlap) FAIL("buffers ", i, " and ", j, " share memory while both are alive");
    }
  }
}

// A network-like schedule: chains with skip connections and some long lives.
std::vector<BufferLife> random_schedule(unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<BufferLife> lives;
  for (int s = 0; s < steps; ++s) {
    const std::uint64_t bytes = std::uint64_t{1} << (8 + random() % 12);
    const int length = random() % 8 == 0 ? static_cast<int>(random() % 40) : 1 + static_cast<int>(random() % 3);
    lives.push_back({bytes * (1 + random() % 3), s, std::min(steps - 1, s + length)});
  }
  return lives;
}

}  // namespace

TEST_CASE("arena: nothing to place") {
  CHECK(layout_arena({}).bytes == 0);
  const ArenaLayout zero = layout_arena({{0, 0, 3}, {0, 1, 2}});
  CHECK(zero.bytes == 0);
  CHECK(zero.offsets.size() == 2);
}

TEST_CASE("arena: lives that do not meet share memory") {
  const std::vector<BufferLife> lives = {{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 5}};
  const ArenaLayout layout = layout_arena(lives);
  CHECK(layout.bytes == 1024);
  CHECK(layout.live_bytes == 1000);
}

TEST_CASE("arena: a chain needs two neighbours at a time") {
  std::vector<BufferLife> lives;
  for (int i = 0; i < 50; ++i) lives.push_back({std::uint64_t{256} * static_cast<std::uint64_t>(1 + i % 5), i, i + 1});
  const ArenaLayout layout = layout_arena(lives);
  check_disjoint(lives, layout);
  CHECK(layout.live_bytes == 256 * 9);
  CHECK(static_cast<double>(layout.bytes) <= 1.05 * static_cast<double>(layout.live_bytes));
}

TEST_CASE("arena: what is alive in steps leaves room until then") {
  // Four quarters, the last first, each from the time on at which a buffer of that size dies.
  std::vector<BufferLife> lives;
  for (int i = 0; i < 4; ++i) lives.push_back({1024, 4 - i, 9, i == 0 ? -1 : 0, static_cast<std::uint64_t>(i) * 1024});
  for (int i = 0; i < 4; ++i) lives.push_back({1024, 0, i});
  const ArenaLayout layout = layout_arena(lives);
  check_disjoint(lives, layout);
  for (std::size_t i = 1; i < 4; ++i) CHECK(layout.offsets[i] == layout.offsets[0] + i * 1024);
  CHECK(layout.live_bytes == 4096);
  CHECK(layout.bytes == 4096);
}

TEST_CASE("arena: ties hold in random schedules") {
  double sum = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto lives = random_schedule(seed, 30 + static_cast<int>(seed));
    std::mt19937 random(seed);
    const int last = lives.back().last;
    const auto root = static_cast<int>(lives.size());
    std::vector<std::pair<std::size_t, std::uint64_t>> ties;
    for (std::uint64_t i = 0, at = 0; i < 8; ++i) {
      const std::uint64_t bytes = 128 * (1 + random() % 32);
      ties.emplace_back(lives.size(), at);
      lives.push_back({bytes, last / 2 + static_cast<int>(random() % 8), last, i == 0 ? -1 : root, at});
      at += bytes;
    }
    const ArenaLayout layout = layout_arena(lives);
    check_disjoint(lives, layout);
    for (const auto& [life, at] : ties) CHECK(layout.offsets[life] == layout.offsets[static_cast<std::size_t>(root)] + at);
    sum += static_cast<double>(layout.bytes) / static_cast<double>(layout.live_bytes);
  }
  MESSAGE("arena over live bytes with ties: mean ", sum / 60);
  CHECK(sum / 60 <= 1.06);
}

TEST_CASE("arena: random schedules stay disjoint and near the lower bound") {
  double worst = 0;
  double sum = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto lives = random_schedule(seed, 20 + static_cast<int>(seed) * 4);
    const ArenaLayout layout = layout_arena(lives);
    check_disjoint(lives, layout);
    const double ratio = static_cast<double>(layout.bytes) / static_cast<double>(layout.live_bytes);
    worst = std::max(worst, ratio);
    sum += ratio;
    CHECK(layout.bytes >= layout.live_bytes);
    CHECK(layout_arena(lives).offsets == layout.offsets);
  }
  MESSAGE("arena over live bytes: mean ", sum / 60, ", worst ", worst);
  CHECK(sum / 60 <= 1.03);
  CHECK(worst <= 1.10);
}

TEST_CASE("arena: two thousand buffers are placed near the lower bound") {
  const auto lives = random_schedule(7, 2000);
  const ArenaLayout layout = layout_arena(lives);
  check_disjoint(lives, layout);
  CHECK(static_cast<double>(layout.bytes) <= 1.10 * static_cast<double>(layout.live_bytes));
}

TEST_CASE("arena: sizes whose sum overflows are refused") {
  CHECK_THROWS_WITH(layout_arena({{UINT64_MAX - 5, 0, 1}, {100, 0, 1}}), "the buffers of a plan exceed 2^60 bytes");
}
