// Constants that lie in a plan as integers of few bits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "runtime/package/error.h"
#include "runtime/package/quantized_constants.h"

using namespace oclc::package;

namespace {

struct Section {
  std::uint64_t bytes = 0;
  std::vector<QuantizedRun> runs;
  std::vector<std::byte> stored;

  std::vector<std::byte> text() const {
    const QuantizedHead head{bytes, runs.size()};
    std::vector<std::byte> all(sizeof head + runs.size() * sizeof(QuantizedRun));
    std::memcpy(all.data(), &head, sizeof head);
    if (!runs.empty()) std::memcpy(all.data() + sizeof head, runs.data(), runs.size() * sizeof(QuantizedRun));
    all.insert(all.end(), stored.begin(), stored.end());
    return all;
  }
};

void put(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  to.insert(to.end(), at, at + bytes);
}

// Five floats of two scales and an offset, then three raw bytes, then three halves.
Section three_runs() {
  Section s;
  s.bytes = 20 + 3 + 6;
  QuantizedRun floats;
  floats.bytes = 20;
  floats.period = 2;
  floats.stored = StoredAs::f32;
  floats.has_offsets = 1;
  QuantizedRun raw;
  raw.bytes = 3;
  QuantizedRun halves;
  halves.bytes = 6;
  halves.stored = StoredAs::bf16;
  halves.bits = 4;
  s.runs = {floats, raw, halves};
  const float scales[] = {0.5F, 2, 0, 100};
  put(s.stored, scales, sizeof scales);
  const std::int8_t integers[] = {1, -100, -2, 27, 127};
  put(s.stored, integers, sizeof integers);
  put(s.stored, "abc", 3);
  const unsigned char nibbles[] = {0xf7, 0x08};
  put(s.stored, nibbles, sizeof nibbles);
  return s;
}

// A panel of four columns, of which three are of filters of 3x3, for windows of four and two channels; then one raw byte.
Section panel() {
  constexpr double kMatrix[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  Section s;
  QuantizedRun filters;
  filters.bytes = 16 * 2 * 4 * 4;
  filters.period = 2;
  filters.stored = StoredAs::filters;
  filters.bits = 4;
  filters.has_offsets = 3;
  filters.lanes = 3;
  QuantizedRun raw;
  raw.bytes = 1;
  s.runs = {filters, raw};
  s.bytes = filters.bytes + 1;
  put(s.stored, kMatrix, sizeof kMatrix);
  for (int tap = 0; tap < 9; ++tap) {
    for (int filter = 0; filter < 6; ++filter) {
      const auto g = static_cast<float>(filter + 1) * (tap == 4 ? 1.0F : tap == 8 ? 16.0F : 0.0F);
      put(s.stored, &g, 4);
    }
  }
  put(s.stored, "z", 1);
  return s;
}

void check_refused(const char* what, const Section& right, const std::function<void(Section&)>& spoil) {
  Section s = right;
  spoil(s);
  CAPTURE(what);
  try {
    widened_bytes(s.text());
    FAIL_CHECK("it was taken");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::corrupt);
    CHECK(std::string(error.what()).find(what) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("integers are widened with their scales and offsets") {
  const std::vector<std::byte> section = three_runs().text();
  REQUIRE(widened_bytes(section) == 29);
  std::vector<std::byte> found(29);
  widen(section, found.data());
  float floats[5];
  std::memcpy(floats, found.data(), 20);
  CHECK(floats[0] == 0.5F);
  CHECK(floats[1] == 0);
  CHECK(floats[2] == -1);
  CHECK(floats[3] == 254);
  CHECK(floats[4] == 63.5F);
  CHECK(std::memcmp(found.data() + 20, "abc", 3) == 0);
  std::uint16_t halves[3];
  std::memcpy(halves, found.data() + 23, 6);
  CHECK(halves[0] == 0x40e0);  // 7
  CHECK(halves[1] == 0xbf80);  // -1
  CHECK(halves[2] == 0xc100);  // -8
}

TEST_CASE("a section that does not hold what it says is refused") {
  check_refused("runs do not add up", three_runs(), [](Section& s) { ++s.bytes; });
  check_refused("past the end", three_runs(), [](Section& s) { s.stored.pop_back(); });
  check_refused("after the last run", three_runs(), [](Section& s) { s.stored.push_back({}); });
  check_refused("no known form", three_runs(), [](Section& s) { s.runs[0].stored = static_cast<StoredAs>(4); });
  check_refused("no known form", three_runs(), [](Section& s) { s.runs[0].lanes = 1; });
  check_refused("integers of 5 bits", three_runs(), [](Section& s) { s.runs[0].bits = 5; });
  check_refused("within an element", three_runs(), [](Section& s) { s.runs[0].bytes = 19; });
  check_refused("scales of numbers of 16 bits", three_runs(), [](Section& s) { s.runs[2].period = 1; });
  check_refused("offsets without scales", three_runs(), [](Section& s) { s.runs[0].period = 0; });
  check_refused("more scales than elements", three_runs(), [](Section& s) { s.runs[0].period = 6; });
  check_refused("more constants than", three_runs(), [](Section& s) { s.runs[0].bytes = std::uint64_t{1} << 60; });
  CHECK_THROWS_AS(widened_bytes({}), Error);
  Section wild = three_runs();
  std::vector<std::byte> text = wild.text();
  const std::uint64_t runs = UINT64_MAX / 16;
  std::memcpy(text.data() + 8, &runs, 8);
  CHECK_THROWS_AS(widened_bytes(text), Error);
}

TEST_CASE("filters are transformed, and columns without one are zero") {
  const std::vector<std::byte> section = panel().text();
  REQUIRE(widened_bytes(section) == 513);
  CHECK(stores_filters(section));
  CHECK_FALSE(stores_filters(three_runs().text()));
  std::vector<std::byte> found(513, std::byte{7});
  widen(section, found.data());
  CHECK(found.back() == std::byte{'z'});
  // Of g with 1 in the middle and 16 in the last corner: G's second column by itself, and sixteen times its third.
  constexpr double kSecond[] = {0, 0.5, -0.5, 0}, kThird[] = {0, 0.5, 0.5, 1};
  for (std::size_t at = 0; at < 128; ++at) {
    float u = 0;
    std::memcpy(&u, found.data() + at * 4, 4);
    const std::size_t point = at / 8, channel = at / 4 % 2, lane = at % 4, y = point / 4, x = point % 4;
    const double g = kSecond[y] * kSecond[x] + 16 * kThird[y] * kThird[x];
    CAPTURE(at);
    CHECK(u == (lane == 3 ? 0 : static_cast<double>(channel * 3 + lane + 1) * g));
  }
}

TEST_CASE("filters that fill no panel are refused") {
  check_refused("filters of 1 taps", panel(), [](Section& s) { s.runs[0].has_offsets = 1; });
  check_refused("filters of 5 taps for a window of 4", panel(), [](Section& s) { s.runs[0].has_offsets = 5; });
  check_refused("for a window of 9", panel(), [](Section& s) { s.runs[0].bits = 9; });
  check_refused("a panel of no filters", panel(), [](Section& s) { s.runs[0].period = 0; });
  check_refused("a panel of no filters", panel(), [](Section& s) { s.runs[0].lanes = 0; });
  check_refused("do not fill", panel(), [](Section& s) { s.runs[0].lanes = 5; });
  check_refused("do not fill", panel(), [](Section& s) { s.runs[0].bytes -= 4; });
  check_refused("do not fill", panel(), [](Section& s) { s.runs[0].bytes = 0; });
  check_refused("past the end", panel(), [](Section& s) { s.stored.resize(s.stored.size() - 2); });
  check_refused("more constants than", panel(), [](Section& s) { s.runs[0].bytes = std::uint64_t{1} << 40; });
}
