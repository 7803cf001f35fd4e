// Floats of 8 and 4 bits, integers of 4 and 2: every code, and the nearest of all codes for many numbers.
#include "runtime/package/narrow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace oclc::package {
namespace {

using plan::DType;

constexpr DType kFloats[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1};

int codes_of(DType dtype) { return dtype == DType::f4e2m1 ? 16 : 256; }

TEST_CASE("floats of one byte: the numbers of the formats' tables") {
  struct Row {
    DType dtype;
    int bits;
    float value;
  };
  for (const Row& row : {Row{DType::f8e4m3fn, 0x7e, 448},     Row{DType::f8e4m3fn, 0x38, 1},
                         Row{DType::f8e4m3fn, 0x01, 0x1p-9f}, Row{DType::f8e4m3fn, 0x08, 0x1p-6f},
                         Row{DType::f8e4m3fn, 0xc8, -4},      Row{DType::f8e4m3fnuz, 0x7f, 240},
                         Row{DType::f8e4m3fnuz, 0x40, 1},     Row{DType::f8e4m3fnuz, 0x01, 0x1p-10f},
                         Row{DType::f8e5m2, 0x7b, 57344},     Row{DType::f8e5m2, 0x3c, 1},
                         Row{DType::f8e5m2, 0x01, 0x1p-16f},  Row{DType::f8e5m2, 0x7c, INFINITY},
                         Row{DType::f8e5m2, 0xfc, -INFINITY}, Row{DType::f8e5m2fnuz, 0x7f, 57344},
                         Row{DType::f8e5m2fnuz, 0x40, 1},     Row{DType::f8e5m2fnuz, 0x01, 0x1p-17f},
                         Row{DType::f4e2m1, 0x1, 0.5f},       Row{DType::f4e2m1, 0x2, 1},
                         Row{DType::f4e2m1, 0x5, 3},          Row{DType::f4e2m1, 0x7, 6},
                         Row{DType::f4e2m1, 0xb, -1.5f}}) {
    CHECK(narrow_value(row.dtype, static_cast<std::uint8_t>(row.bits)) == row.value);
  }
  for (const int bits : {0x7f, 0xff}) CHECK(std::isnan(narrow_value(DType::f8e4m3fn, static_cast<std::uint8_t>(bits))));
  for (const int bits : {0x7d, 0x7e, 0x7f, 0xfd})
    CHECK(std::isnan(narrow_value(DType::f8e5m2, static_cast<std::uint8_t>(bits))));
  for (const DType dtype : {DType::f8e4m3fnuz, DType::f8e5m2fnuz}) {
    CHECK(std::isnan(narrow_value(dtype, 0x80)));
    CHECK(narrow_bits(dtype, -0.0f) == 0);
    CHECK(narrow_bits(dtype, -1e-30f) == 0);
    CHECK(narrow_bits(dtype, INFINITY) == 0x80);
    CHECK(narrow_bits(dtype, std::nanf("")) == 0x80);
  }
  CHECK(std::signbit(narrow_value(DType::f8e4m3fn, 0x80)));
  CHECK(narrow_bits(DType::f8e4m3fn, -0.0f) == 0x80);
  CHECK(narrow_bits(DType::f8e4m3fn, -INFINITY) == 0xff);
  CHECK(narrow_bits(DType::f8e5m2, 1e9f) == 0x7c);
  CHECK(narrow_bits(DType::f8e5m2, -INFINITY) == 0xfc);
  CHECK(narrow_bits(DType::f4e2m1, 1e9f) == 0x7);
  CHECK(narrow_bits(DType::f4e2m1, -INFINITY) == 0xf);
  CHECK(narrow_bits(DType::f4e2m1, std::nanf("")) == 0x7);
  CHECK(narrow_bits(DType::f4e2m1, -std::nanf("")) == 0x7);
}

TEST_CASE("floats of one byte: every code is the code of its value") {
  for (const DType dtype : kFloats) {
    for (int code = 0; code < codes_of(dtype); ++code) {
      const float value = narrow_value(dtype, static_cast<std::uint8_t>(code));
      const std::uint8_t back = narrow_bits(dtype, value);
      if (std::isnan(value))
        CHECK(std::isnan(narrow_value(dtype, back)));
      else
        CHECK(back == code);
    }
  }
}

TEST_CASE("floats of one byte: the nearest of all, ties to the even code") {
  for (const DType dtype : kFloats) {
    std::vector<float> steps;  // the numbers from 0 on, in order of their codes
    for (int code = 0; code < codes_of(dtype) / 2; ++code) {
      const float value = narrow_value(dtype, static_cast<std::uint8_t>(code));
      if (!std::isfinite(value)) break;
      REQUIRE((steps.empty() || value > steps.back()));
      steps.push_back(value);
    }
    CHECK(steps.back() == largest_narrow(dtype));
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      const float middle = (steps[i] + steps[i + 1]) / 2;
      CHECK(narrow_bits(dtype, middle) == (i % 2 == 0 ? i : i + 1));
      CHECK(narrow_bits(dtype, std::nextafter(middle, 0.0f)) == i);
      CHECK(narrow_bits(dtype, std::nextafter(middle, INFINITY)) == i + 1);
    }
    // Beyond the largest: half a step further still rounds to it if its code is even.
    const float last = steps.back() - steps[steps.size() - 2], edge = steps.back() + last / 2;
    const std::size_t top = steps.size() - 1;
    CHECK(narrow_bits(dtype, std::nextafter(edge, 0.0f)) == top);
    CHECK((narrow_bits(dtype, edge) == top) == (top % 2 == 0 || dtype == DType::f4e2m1));
    CHECK((narrow_bits(dtype, std::nextafter(edge, INFINITY)) == top) == (dtype == DType::f4e2m1));
  }
}

TEST_CASE("powers of two are rounded up, up to the largest, and have no infinity") {
  constexpr DType kPower = DType::f8e8m0;
  for (int code = 0; code < 255; ++code) {
    const float value = narrow_value(kPower, static_cast<std::uint8_t>(code));
    CHECK(value == std::ldexp(1.0f, code - 127));
    CHECK(narrow_bits(kPower, value) == code);
    CHECK(narrow_bits(kPower, -value) == code);
    CHECK(narrow_bits(kPower, std::nextafter(value, INFINITY)) == std::min(code + 1, 254));
  }
  CHECK(std::isnan(narrow_value(kPower, 255)));
  CHECK(narrow_bits(kPower, 0.0f) == 0);
  CHECK(narrow_bits(kPower, std::nextafter(0.0f, 1.0f)) == 0);
  CHECK(narrow_bits(kPower, INFINITY) == 255);
  CHECK(narrow_bits(kPower, std::nanf("")) == 255);
  CHECK(largest_narrow(kPower) == 0x1p127f);
}

TEST_CASE("integers of 2 bits keep the low bits of a number without its fraction") {
  for (int i = -9; i <= 9; ++i) {
    const int low = i & 3;
    CHECK(narrow_value(DType::u2, narrow_bits(DType::u2, static_cast<float>(i))) == static_cast<float>(low));
    CHECK(narrow_value(DType::i2, narrow_bits(DType::i2, static_cast<float>(i))) ==
          static_cast<float>(low < 2 ? low : low - 4));
  }
  CHECK(narrow_bits(DType::i2, -1.75f) == 0xff);
  CHECK(narrow_width(DType::i2) == 2);
  CHECK(narrow_width(DType::f4e2m1) == 4);
  CHECK(narrow_width(DType::f8e8m0) == 8);
}

TEST_CASE("integers of 4 bits keep the low bits of a number without its fraction") {
  for (int i = -100; i <= 100; ++i) {
    for (const float fraction : {0.0f, 0.75f}) {
      const float value = static_cast<float>(i) + (i < 0 ? -fraction : fraction);
      const int low = ((i % 16) + 16) % 16;
      CHECK(narrow_value(DType::u4, narrow_bits(DType::u4, value)) == static_cast<float>(low));
      CHECK(narrow_value(DType::i4, narrow_bits(DType::i4, value)) == static_cast<float>(low < 8 ? low : low - 16));
    }
  }
  CHECK(narrow_bits(DType::i4, -1) == 0xff);
  CHECK(is_narrow(DType::u4));
  CHECK(!is_narrow_float(DType::i4));
  CHECK(!is_narrow(DType::string_));
}

}  // namespace
}  // namespace oclc::package
