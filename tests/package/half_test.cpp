// Floating-point numbers of 16 bits: every bit pattern, and rounding between neighbours.
#include "runtime/package/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace oclc::package {
namespace {

constexpr plan::DType kHalves[] = {plan::DType::f16, plan::DType::bf16};

TEST_CASE("every number of 16 bits comes back from its value") {
  for (const plan::DType dtype : kHalves) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const float value = widened(dtype, static_cast<std::uint16_t>(bits));
      if (std::isnan(value)) continue;
      CAPTURE(bits);
      REQUIRE(narrowed(dtype, static_cast<double>(value)) == bits);
    }
  }
}

TEST_CASE("zero is zero, and keeps its sign") {
  for (const plan::DType dtype : kHalves) {
    CHECK(narrowed(dtype, 0.0) == 0);
    CHECK(narrowed(dtype, -0.0) == 0x8000);
    CHECK(widened(dtype, 0) == 0.0f);
  }
}

TEST_CASE("a value between two neighbours goes to the nearer one, the middle to the even one") {
  for (const plan::DType dtype : kHalves) {
    const std::uint32_t infinite = dtype == plan::DType::f16 ? 0x7c00 : 0x7f80;
    for (std::uint32_t bits = 0; bits + 1 < infinite; ++bits) {
      const double low = static_cast<double>(widened(dtype, static_cast<std::uint16_t>(bits))),
                   high = static_cast<double>(widened(dtype, static_cast<std::uint16_t>(bits + 1))), middle = (low + high) / 2;
      CAPTURE(bits);
      REQUIRE(narrowed(dtype, middle) == (bits % 2 == 0 ? bits : bits + 1));
      REQUIRE(narrowed(dtype, low + (high - low) * 0.25) == bits);
      REQUIRE(narrowed(dtype, low + (high - low) * 0.75) == bits + 1);
    }
  }
}

TEST_CASE("what is too large is infinite, and what is no number stays none") {
  CHECK(narrowed(plan::DType::f16, 65519.0) == 0x7bff);
  CHECK(narrowed(plan::DType::f16, 65520.0) == 0x7c00);
  CHECK(narrowed(plan::DType::f16, -1e300) == 0xfc00);
  CHECK(narrowed(plan::DType::bf16, 1e300) == 0x7f80);
  for (const plan::DType dtype : kHalves) CHECK(std::isnan(widened(dtype, narrowed(dtype, std::nan("")))));
}

}  // namespace
}  // namespace oclc::package
