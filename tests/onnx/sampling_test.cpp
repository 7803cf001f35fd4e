// DeformConv, GridSample of volumes and Pad that wraps, from the specification's text: results beside loops written down here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::sampling_test {

using test::Writer;
using Dims = std::vector<std::int64_t>;

HostTensor noise(Dims shape, int seed, double size = 1) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, size * std::sin(static_cast<double>(i * 7 + seed * 13) * 0.7));
  return t;
}

// By the reference, and on the device.
void check(const Writer& w, const std::vector<HostTensor>& inputs, const Dims& shape,
           const std::function<double(std::int64_t)>& wanted) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  const HostTensor found = evaluate(*module->entries[0], inputs)[0];
  REQUIRE(found.shape() == shape);
  for (std::int64_t i = 0; i < found.elements(); ++i) CHECK(found.at(i) == doctest::Approx(wanted(i)).epsilon(1e-4));
  CHECK(test::compare_with_reference(*module->entries[0], inputs).max_rel < 1e-5);
}

// x[n, c, h, w] at a row and a column between its elements; 0 outside.
double between(const HostTensor& x, std::int64_t plane, double row, double column) {
  const std::int64_t h = x.shape()[2], w = x.shape()[3];
  const auto r = static_cast<std::int64_t>(std::floor(row)), k = static_cast<std::int64_t>(std::floor(column));
  double sum = 0;
  for (std::int64_t i = r; i <= r + 1; ++i) {
    for (std::int64_t j = k; j <= k + 1; ++j) {
      if (i < 0 || i >= h || j < 0 || j >= w) continue;
      sum += (1 - std::fabs(row - static_cast<double>(i))) * (1 - std::fabs(column - static_cast<double>(j))) *
             x.at((plane * h + i) * w + j);
    }
  }
  return sum;
}

struct Deformed {
  std::int64_t batch, channels, height, width, features, kh, kw, group, offset_group, stride, dilation, pad;
  bool bias, mask;
};

void check_deformed(const Deformed& d, double moved) {
  const std::int64_t oh = (d.height + 2 * d.pad - d.dilation * (d.kh - 1) - 1) / d.stride + 1,
                     ow = (d.width + 2 * d.pad - d.dilation * (d.kw - 1) - 1) / d.stride + 1, taps = d.kh * d.kw,
                     each = d.channels / d.group;
  const HostTensor x = noise({d.batch, d.channels, d.height, d.width}, 1), w = noise({d.features, each, d.kh, d.kw}, 2),
                   offset = noise({d.batch, d.offset_group * taps * 2, oh, ow}, 3, moved), bias = noise({d.features}, 4),
                   mask = noise({d.batch, d.offset_group * taps, oh, ow}, 5);
  Writer m(19);
  std::vector<std::string> names{"x", "w", "offset"};
  std::vector<HostTensor> inputs{x, w, offset};
  const auto input = [&](const char* name, const HostTensor& value) {
    m.input(name, std::vector<test::Dim>(value.shape().begin(), value.shape().end()));
  };
  input("x", x);
  input("w", w);
  input("offset", offset);
  if (d.bias || d.mask) names.push_back(d.bias ? "bias" : "");
  if (d.bias) input("bias", bias), inputs.push_back(bias);
  if (d.mask) input("mask", mask), inputs.push_back(mask), names.push_back("mask");
  m.output("y");
  auto& node = m.node("DeformConv", names, {"y"});
  test::set_int(node, "group", d.group);
  test::set_int(node, "offset_group", d.offset_group);
  test::set_list(node, "strides", {d.stride, d.stride});
  test::set_list(node, "dilations", {d.dilation, d.dilation});
  test::set_list(node, "pads", {d.pad, d.pad, d.pad, d.pad});
  check(m, inputs, {d.batch, d.features, oh, ow}, [&](std::int64_t element) {
    const std::int64_t j = element % ow, i = element / ow % oh, f = element / (ow * oh) % d.features,
                       n = element / (ow * oh * d.features);
    double sum = d.bias ? bias.at(f) : 0;
    for (std::int64_t c = 0; c < each; ++c) {
      const std::int64_t channel = f / (d.features / d.group) * each + c, g = channel / (d.channels / d.offset_group);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t base = n * d.offset_group + g;
        const auto at = [&](std::int64_t k) { return offset.at((((base * taps + tap) * 2 + k) * oh + i) * ow + j); };
        const double row = static_cast<double>(i * d.stride - d.pad + tap / d.kw * d.dilation) + at(0),
                     column = static_cast<double>(j * d.stride - d.pad + tap % d.kw * d.dilation) + at(1);
        const double share = d.mask ? mask.at(((base * taps + tap) * oh + i) * ow + j) : 1;
        sum += w.at((f * each + c) * taps + tap) * share * between(x, n * d.channels + channel, row, column);
      }
    }
    return sum;
  });
}

TEST_CASE("DeformConv without offsets is a convolution") {
  check_deformed({2, 3, 5, 4, 2, 3, 2, 1, 1, 1, 1, 1, false, false}, 0);
}

TEST_CASE("DeformConv reads between elements and outside of them") {
  check_deformed({1, 2, 4, 5, 3, 2, 2, 1, 1, 1, 1, 0, true, false}, 2.7);
}

TEST_CASE("DeformConv with groups, a mask, strides and dilations of awkward sizes") {
  check_deformed({2, 6, 9, 7, 4, 3, 1, 2, 3, 2, 2, 2, true, true}, 1.3);
}

TEST_CASE("DeformConv says which offsets it wants") {
  Writer w(19);
  w.input("x", {1, 1, 3, 3}).input("w", {1, 1, 2, 2}).input("offset", {1, 8, 3, 2}).output("y");
  w.node("DeformConv", {"x", "w", "offset"}, {"y"}, "n");
  CHECK_THROWS_WITH_AS(w.import(), "node 'n' (DeformConv): wanted offsets [1, 8, 2, 2], found [1, 8, 3, 2]", CompileError);
}

TEST_CASE("GridSample of volumes takes the grid's last number for the first axis") {
  const std::int64_t n = 2, c = 3, d = 4, h = 3, w = 5, od = 2, oh = 1, ow = 3;
  for (const bool corners : {false, true}) {
    for (const char* mode : {"linear", "nearest"}) {
      const HostTensor x = noise({n, c, d, h, w}, 1), grid = noise({n, od, oh, ow, 3}, 2, 1.2);
      Writer m(20);
      m.input("x", {n, c, d, h, w}).input("grid", {n, od, oh, ow, 3}).output("y");
      auto& node = m.node("GridSample", {"x", "grid"}, {"y"});
      test::set_text(node, "mode", mode);
      test::set_int(node, "align_corners", corners);
      const bool nearest = mode == std::string("nearest");
      check(m, {x, grid}, {n, c, od, oh, ow}, [&](std::int64_t element) {
        const std::int64_t place = element % (od * oh * ow), plane = element / (od * oh * ow), image = plane / c;
        const auto position = [&](std::int64_t k, std::int64_t size) {
          const double g = grid.at((image * od * oh * ow + place) * 3 + k), s = static_cast<double>(size);
          const double at = corners ? (g + 1) / 2 * (s - 1) : ((g + 1) * s - 1) / 2;
          return nearest ? std::nearbyint(at) : at;
        };
        const double z = position(2, d), y = position(1, h), v = position(0, w);
        double sum = 0;
        for (std::int64_t i = 0; i < d; ++i) {
          for (std::int64_t j = 0; j < h; ++j) {
            for (std::int64_t k = 0; k < w; ++k) {
              const auto near = [](double at, std::int64_t to) {
                return std::max(0.0, 1 - std::fabs(at - static_cast<double>(to)));
              };
              sum += near(z, i) * near(y, j) * near(v, k) * x.at(((plane * d + i) * h + j) * w + k);
            }
          }
        }
        return sum;
      });
    }
  }
}

TEST_CASE("GridSample of lines stays within their border") {
  const HostTensor x = noise({1, 2, 7}, 1), grid = noise({1, 5, 1}, 2, 3);
  Writer m(20);
  m.input("x", {1, 2, 7}).input("grid", {1, 5, 1}).output("y");
  test::set_text(m.node("GridSample", {"x", "grid"}, {"y"}), "padding_mode", "border");
  check(m, {x, grid}, {1, 2, 5}, [&](std::int64_t element) {
    const double at = std::clamp(((grid.at(element % 5) + 1) * 7 - 1) / 2, 0.0, 6.0);
    const auto low = static_cast<std::int64_t>(std::floor(at));
    const std::int64_t row = element / 5 * 7;
    const double t = at - static_cast<double>(low);
    return (1 - t) * x.at(row + low) + (t > 0 ? t * x.at(row + low + 1) : 0);
  });
}

TEST_CASE("GridSample of volumes by cubic curves is not defined") {
  Writer m(20);
  m.input("x", {1, 1, 2, 2, 2}).input("grid", {1, 1, 1, 1, 3}).output("y");
  test::set_text(m.node("GridSample", {"x", "grid"}, {"y"}, "n"), "mode", "cubic");
  CHECK_THROWS_WITH_AS(m.import(), "node 'n' (GridSample): wanted inputs of rank 4 for mode cubic, found f32[1, 1, 2, 2, 2]",
                       CompileError);
}

TEST_CASE("Pad that wraps repeats the tensor, more than once if it must") {
  struct Wrapped {
    Dims shape, axes, pads;
  };
  for (const Wrapped& at : {Wrapped{{3, 4}, {0, 1}, {1, 2, 0, 3}}, Wrapped{{2, 5}, {-1}, {7, 11}},
                            Wrapped{{1, 3, 2}, {2, 0}, {5, 2, 0, 1}}, Wrapped{{5}, {0}, {3, -2}}}) {
    const HostTensor x = noise(at.shape, 1);
    const auto count = static_cast<std::int64_t>(at.axes.size());
    const auto rank = static_cast<std::int64_t>(at.shape.size());
    Writer w(19);
    w.input("x", std::vector<test::Dim>(at.shape.begin(), at.shape.end())).output("y");
    w.ints("pads", {2 * count}, at.pads).ints("axes", {count}, at.axes);
    test::set_text(w.node("Pad", {"x", "pads", "", "axes"}, {"y"}), "mode", "wrap");
    // A negative pad removes elements first.
    Dims shape = at.shape, before(at.shape.size(), 0), kept = at.shape;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto axis = static_cast<std::size_t>((at.axes[static_cast<std::size_t>(i)] + rank) % rank);
      const std::int64_t front = at.pads[static_cast<std::size_t>(i)], back = at.pads[static_cast<std::size_t>(i + count)];
      before[axis] = front;
      shape[axis] += front + back;
      kept[axis] += std::min<std::int64_t>(back, 0);
    }
    check(w, {x}, shape, [&](std::int64_t element) {
      std::int64_t from = 0, scale = 1;
      for (std::size_t i = shape.size(); i-- > 0;) {
        const std::int64_t position = element % shape[i] - before[i];
        from += ((position % kept[i]) + kept[i]) % kept[i] * scale;
        scale *= at.shape[i];
        element /= shape[i];
      }
      return x.at(from);
    });
  }
}

}  // namespace oclc::sampling_test
