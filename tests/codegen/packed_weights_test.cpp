// Constants of a kernel's own making: what is packed, and which of them are one.
#include <cmath>
#include <limits>
#include <random>

#include "compiler/codegen/contraction/gpu/pack_f16.h"
#include "compiler/codegen/launches/equal_constants.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;

namespace {

// [columns, inner] of random numbers, the first column of what is rounded in other ways.
HostTensor weights_of_kinds(std::int64_t columns, std::int64_t inner) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float edges[] = {0.0f,       -0.0f,      1.0f,        -0x1.ffcp-15f, 0x1p-14f,   0x1.8p-25f, -0x1p-24f, 0x1p-25f,
                         0x1.002p0f, 0x1.006p0f, -0x1.001p0f, 0x1.ffep0f,    0x1.fffp0f, 1e-30f,     -1e-38f};
  HostTensor w(DType::f32, {columns, inner});
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < w.elements(); ++i)
    w.set(i, std::ldexp(random() * 0x1p-31 - 1, -static_cast<int>(random() % 24)));
  for (std::size_t i = 0; i < std::size(edges); ++i) w.set(static_cast<std::int64_t>(i), edges[i]);
  w.set(inner, inf), w.set(inner + 1, -inf), w.set(inner + 2, nan);
  return w;
}

Buffer constant(HostTensor content) {
  Buffer buffer;
  buffer.kind = BufferKind::constant;
  buffer.dtype = content.dtype();
  buffer.elements = Expr(content.elements());
  buffer.constant = std::move(content);
  return buffer;
}

}  // namespace

TEST_CASE("packed halves are the nearest, and what is left of each number the nearest to that") {
  constexpr std::int64_t kColumns = 5, kInner = 44, kStep = HalvesLayout::kStep;
  HalvesLayout layout;
  layout.columns = kColumns;
  layout.inner = kInner;
  layout.tile_columns = 8;
  layout.in_order = true;
  const HostTensor w = weights_of_kinds(kColumns, kInner);
  const HostTensor packed =
      pack_halves(w, {.base = 0, .group_stride = 0, .inner_stride = 1, .column_stride = kInner, .tap_offsets = {0}}, layout);
  const auto* halves = reinterpret_cast<const std::uint16_t*>(packed.data());
  const auto* scales = reinterpret_cast<const float*>(packed.data()) + layout.scales_at();
  for (std::int64_t n = 0; n < kColumns; ++n) {
    for (std::int64_t k = 0; k < kInner; ++k) {
      CAPTURE(n);
      CAPTURE(k);
      const std::int64_t step = k % kStep;
      const std::uint16_t* at =
          halves + k / kStep * layout.image_words() * 2 + n * kStep + (step / 8 ^ n / 2 % 4) * 8 + step % 8;
      const float x = float_at(w, n * kInner + k) / scales[n];
      CHECK(at[0] == float_to_half(x));
      CHECK(at[layout.tile_columns * kStep] == float_to_half(x - half_to_float(at[0])));
    }
  }
}

TEST_CASE("constants that differ in their middle alone are two, equal ones are one") {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(constant(HostTensor(DType::f32, {1 << 14})));
  buffers[1].constant.set(1 << 13, 1);
  EqualConstants equal;
  const auto at = [&](int i) -> const Buffer& { return buffers[static_cast<std::size_t>(i)]; };
  CHECK(equal.number_of(buffers[0], 0, at) == 0);
  CHECK(equal.number_of(buffers[1], 1, at) == 1);
  CHECK(equal.number_of(buffers[2], 2, at) == 0);
  // Of another length, all of it zero as well.
  buffers.push_back(constant(HostTensor(DType::f32, {1 << 15})));
  CHECK(equal.number_of(buffers[3], 3, at) == 3);
}
