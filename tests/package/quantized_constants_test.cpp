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

void check_refused(const char* what, const std::function<void(Section&)>& spoil) {
  Section s = three_runs();
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
  check_refused("runs do not add up", [](Section& s) { ++s.bytes; });
  check_refused("past the end", [](Section& s) { s.stored.pop_back(); });
  check_refused("after the last run", [](Section& s) { s.stored.push_back({}); });
  check_refused("no known form", [](Section& s) { s.runs[0].stored = static_cast<StoredAs>(3); });
  check_refused("no known form", [](Section& s) { s.runs[1].zero = 1; });
  check_refused("integers of 5 bits", [](Section& s) { s.runs[0].bits = 5; });
  check_refused("within an element", [](Section& s) { s.runs[0].bytes = 19; });
  check_refused("scales of numbers of 16 bits", [](Section& s) { s.runs[2].period = 1; });
  check_refused("offsets without scales", [](Section& s) { s.runs[0].period = 0; });
  check_refused("more scales than elements", [](Section& s) { s.runs[0].period = 6; });
  check_refused("more constants than", [](Section& s) { s.runs[0].bytes = std::uint64_t{1} << 60; });
  CHECK_THROWS_AS(widened_bytes({}), Error);
  Section wild = three_runs();
  std::vector<std::byte> text = wild.text();
  const std::uint64_t runs = UINT64_MAX / 16;
  std::memcpy(text.data() + 8, &runs, 8);
  CHECK_THROWS_AS(widened_bytes(text), Error);
}
