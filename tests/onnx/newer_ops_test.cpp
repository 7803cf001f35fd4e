// Operators of opsets 18 to 23, from the specification's text: results beside loops written down here.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::newer_ops_test {

using oclc_onnx::TensorProto;
using test::Writer;

// Numbers from -1 to 1 that differ from element to element.
HostTensor noise(std::vector<std::int64_t> shape, int seed) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, std::sin(static_cast<double>(i * 7 + seed * 13) * 0.7));
  return t;
}

// By the reference; the device gives the same.
std::vector<HostTensor> run(const Writer& w, const std::vector<HostTensor>& inputs) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  CHECK(test::compare_with_reference(*module->entries[0], inputs).max_rel < 1e-5);
  return evaluate(*module->entries[0], inputs);
}

void check(const HostTensor& found, const std::vector<std::int64_t>& shape, const std::function<double(std::int64_t)>& wanted) {
  REQUIRE(found.shape() == shape);
  for (std::int64_t i = 0; i < found.elements(); ++i) CHECK(found.at(i) == doctest::Approx(wanted(i)).epsilon(1e-4));
}

TEST_CASE("RMSNormalization divides by the root of the mean square") {
  for (const std::int64_t axis : {-1, 1, 2}) {
    const std::int64_t last = axis == 1 ? 15 : 5;
    Writer w(23);
    w.input("x", {2, 3, 5}).output("y");
    w.floats("scale", axis == 1 ? std::vector<std::int64_t>{3, 5} : std::vector<std::int64_t>{5},
             std::vector<float>(static_cast<std::size_t>(last), 2.0f));
    test::set_int(w.node("RMSNormalization", {"x", "scale"}, {"y"}), "axis", axis);
    const HostTensor x = noise({2, 3, 5}, 1);
    check(run(w, {x})[0], {2, 3, 5}, [&](std::int64_t i) {
      double squares = 0;
      for (std::int64_t k = 0; k < last; ++k) squares += std::pow(x.at(i / last * last + k), 2);
      return 2 * x.at(i) / std::sqrt(squares / static_cast<double>(last) + 1e-5);
    });
  }
}

TEST_CASE("RotaryEmbedding turns pairs of a head's numbers") {
  for (const bool interleaved : {false, true}) {
    for (const std::int64_t turned : {0, 4}) {
      const std::int64_t heads = 3, width = 6, steps = 5, half = (turned ? turned : width) / 2;
      Writer w(23);
      w.input("x", {2, heads, steps, width}).input("c", {7, half}).input("s", {7, half});
      w.input("p", {2, steps}, TensorProto::INT64).output("y");
      auto& node = w.node("RotaryEmbedding", {"x", "c", "s", "p"}, {"y"});
      test::set_int(node, "interleaved", interleaved);
      test::set_int(node, "rotary_embedding_dim", turned);
      const HostTensor x = noise({2, heads, steps, width}, 1), c = noise({7, half}, 2), s = noise({7, half}, 3);
      HostTensor p(DType::i64, {2, steps});
      for (std::int64_t i = 0; i < 10; ++i) p.set_int(i, (i * 3) % 7);
      check(run(w, {x, c, s, p})[0], {2, heads, steps, width}, [&](std::int64_t i) {
        const std::int64_t d = i % width, row = i - d, step = i / width % steps, batch = i / (heads * steps * width);
        if (d >= 2 * half) return x.at(i);
        const std::int64_t k = interleaved ? d / 2 : d % half;
        const bool second = interleaved ? d % 2 == 1 : d >= half;
        const double a = x.at(row + (interleaved ? 2 * k : k)), b = x.at(row + (interleaved ? 2 * k + 1 : k + half));
        const std::int64_t at = p.int_at(batch * steps + step) * half + k;
        return second ? s.at(at) * a + c.at(at) * b : c.at(at) * a - s.at(at) * b;
      });
    }
  }
}

// softmax(scale * q k^T + bias(b, h, i, j)) v for q[B, H, S, D], k[B, G, T, D], v[B, G, T, E].
double attended(const HostTensor& q, const HostTensor& k, const HostTensor& v, std::int64_t element, double scale,
                const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t, double)>& score) {
  const std::int64_t h = q.shape()[1], s = q.shape()[2], d = q.shape()[3], g = k.shape()[1], t = k.shape()[2], e = v.shape()[3];
  const std::int64_t column = element % e, i = element / e % s, head = element / (e * s) % h, b = element / (e * s * h);
  const std::int64_t group = head / (h / g);
  double sum = 0, top = 0;
  for (std::int64_t j = 0; j < t; ++j) {
    double dot = 0;
    for (std::int64_t n = 0; n < d; ++n)
      dot += q.at(((b * h + head) * s + i) * d + n) * k.at(((b * g + group) * t + j) * d + n);
    const double share = std::exp(score(b, head, i, j, dot * scale));
    sum += share;
    top += share * v.at(((b * g + group) * t + j) * e + column);
  }
  return top / sum;
}

TEST_CASE("Attention of heads that share keys, causal") {
  Writer w(23);
  w.input("q", {2, 6, 3, 4}).input("k", {2, 2, 5, 4}).input("v", {2, 2, 5, 7}).output("y");
  test::set_int(w.node("Attention", {"q", "k", "v"}, {"y"}), "is_causal", 1);
  const HostTensor q = noise({2, 6, 3, 4}, 1), k = noise({2, 2, 5, 4}, 2), v = noise({2, 2, 5, 7}, 3);
  check(run(w, {q, k, v})[0], {2, 6, 3, 7}, [&](std::int64_t i) {
    return attended(q, k, v, i, 0.5,
                    [](auto, auto, std::int64_t row, std::int64_t column, double x) { return column > row ? -INFINITY : x; });
  });
}

TEST_CASE("Attention with a mask, a cap and a scale gives its scores") {
  Writer w(23);
  w.input("q", {1, 2, 3, 4}).input("k", {1, 2, 5, 4}).input("v", {1, 2, 5, 4}).input("m", {3, 5}).output("y").output("scores");
  auto& node = w.node("Attention", {"q", "k", "v", "m"}, {"y", "", "", "scores"});
  test::set_float(node, "softcap", 2.0f);
  test::set_float(node, "scale", 0.25f);
  test::set_int(node, "qk_matmul_output_mode", 2);
  const HostTensor q = noise({1, 2, 3, 4}, 1), k = noise({1, 2, 5, 4}, 2), v = noise({1, 2, 5, 4}, 3), m = noise({3, 5}, 4);
  const auto found = run(w, {q, k, v, m});
  check(found[0], {1, 2, 3, 4}, [&](std::int64_t i) {
    return attended(q, k, v, i, 0.25, [&](auto, auto, std::int64_t row, std::int64_t column, double x) {
      return 2 * std::tanh(x / 2) + m.at(row * 5 + column);
    });
  });
  CHECK(found[1].shape() == std::vector<std::int64_t>{1, 2, 3, 5});
}

TEST_CASE("Attention of a query that may look at no key is 0") {
  for (const bool boolean : {true, false}) {
    for (const bool causal : {true, false}) {
      Writer w(23);
      w.input("q", {2, 2, 3, 4}).input("k", {2, 2, 5, 4}).input("v", {2, 2, 5, 7});
      w.input("m", {3, 4}, boolean ? TensorProto::BOOL : TensorProto::FLOAT).output("y").output("shares");
      auto& node = w.node("Attention", {"q", "k", "v", "m"}, {"y", "", "", "shares"});
      test::set_int(node, "is_causal", causal);
      test::set_int(node, "qk_matmul_output_mode", 3);
      const HostTensor q = noise({2, 2, 3, 4}, 1), k = noise({2, 2, 5, 4}, 2), v = noise({2, 2, 5, 7}, 3);
      // Row 0 may look at key 2 alone, which is behind it; row 1 at none; row 2 at keys 0 and 3.
      HostTensor m(boolean ? DType::boolean : DType::f32, {3, 4});
      const auto open = [](std::int64_t row, std::int64_t column) {
        return row == 0 ? column == 2 : row == 2 && (column == 0 || column == 3);
      };
      for (std::int64_t i = 0; i < 12; ++i)
        m.set(i, boolean ? open(i / 4, i % 4) : open(i / 4, i % 4) ? 0.5 * static_cast<double>(i % 4) : -INFINITY);
      const auto may = [&](std::int64_t row, std::int64_t column) {
        return column < 4 && open(row, column) && (!causal || column <= row);
      };
      const auto found = run(w, {q, k, v, m});
      check(found[0], {2, 2, 3, 7}, [&](std::int64_t i) {
        const std::int64_t row = i / 7 % 3;
        if (row == 1 || (row == 0 && causal)) return 0.0;
        return attended(q, k, v, i, 0.5, [&](auto, auto, std::int64_t r, std::int64_t column, double x) {
          return may(r, column) ? x + (boolean ? 0 : m.at(r * 4 + column)) : -INFINITY;
        });
      });
      for (std::int64_t i = 0; i < found[1].elements(); ++i) CHECK((found[1].at(i) > 0) == may(i / 5 % 3, i % 5));
    }
  }
}

TEST_CASE("Attention of rank 3 with past keys and a symbolic length") {
  Writer w(23);
  w.input("q", {1, "S", 6}).input("k", {1, "S", 6}).input("v", {1, "S", 6});
  w.input("pk", {1, 2, 2, 3}).input("pv", {1, 2, 2, 3}).output("y").output("keys").output("values");
  auto& node = w.node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "keys", "values"});
  test::set_int(node, "q_num_heads", 2);
  test::set_int(node, "kv_num_heads", 2);
  const HostTensor q = noise({1, 4, 6}, 1), k = noise({1, 4, 6}, 2), v = noise({1, 4, 6}, 3), pk = noise({1, 2, 2, 3}, 4),
                   pv = noise({1, 2, 2, 3}, 5);
  const auto by_heads = [](const HostTensor& x, const HostTensor* past) {
    const std::int64_t before = past ? 2 : 0;
    HostTensor out(DType::f32, {1, 2, before + 4, 3});
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t t = 0; t < before + 4; ++t) {
        for (std::int64_t d = 0; d < 3; ++d)
          out.set((h * (before + 4) + t) * 3 + d,
                  t < before ? past->at((h * 2 + t) * 3 + d) : x.at((t - before) * 6 + h * 3 + d));
      }
    }
    return out;
  };
  const HostTensor wide_q = by_heads(q, nullptr), wide_k = by_heads(k, &pk), wide_v = by_heads(v, &pv);
  const auto found = run(w, {q, k, v, pk, pv});
  check(found[0], {1, 4, 6}, [&](std::int64_t i) {
    const std::int64_t element = (i % 6 / 3 * 4 + i / 6) * 3 + i % 3;
    return attended(wide_q, wide_k, wide_v, element, 1 / std::sqrt(3.0), [](auto, auto, auto, auto, double x) { return x; });
  });
  check(found[1], {1, 2, 6, 3}, [&](std::int64_t i) { return wide_k.at(i); });
}

TEST_CASE("Col2Im sums the columns whose windows hold a pixel") {
  struct Case {
    std::vector<std::int64_t> image, block, strides, dilations, pads;
  };
  for (const Case& at : {Case{{5, 5}, {1, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, Case{{6, 7}, {2, 3}, {2, 3}, {1, 2}, {1, 0, 2, 1}},
                         Case{{11}, {3}, {2}, {2}, {1, 1}}}) {
    const std::size_t axes = at.image.size();
    std::vector<std::int64_t> windows;
    std::int64_t places = 1, positions = 1, pixels = 1;
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t room = at.image[i] + at.pads[i] + at.pads[axes + i] - (at.block[i] - 1) * at.dilations[i] - 1;
      windows.push_back(room / at.strides[i] + 1);
      places *= at.block[i];
      positions *= windows[i];
      pixels *= at.image[i];
    }
    Writer w(18);
    w.input("x", {2, 3 * places, positions}).output("y");
    const auto length = static_cast<std::int64_t>(axes);
    w.ints("image", {length}, at.image).ints("block", {length}, at.block);
    auto& node = w.node("Col2Im", {"x", "image", "block"}, {"y"});
    test::set_list(node, "strides", at.strides);
    test::set_list(node, "dilations", at.dilations);
    test::set_list(node, "pads", at.pads);
    const HostTensor x = noise({2, 3 * places, positions}, 1);
    std::vector<double> wanted(static_cast<std::size_t>(6 * pixels), 0);
    for (std::int64_t plane = 0; plane < 6; ++plane) {
      for (std::int64_t place = 0; place < places; ++place) {
        for (std::int64_t window = 0; window < positions; ++window) {
          std::int64_t pixel = 0, p = place, v = window, scale = 1;
          bool inside = true;
          for (std::size_t i = axes; i-- > 0;) {
            const std::int64_t o = v % windows[i] * at.strides[i] + p % at.block[i] * at.dilations[i] - at.pads[i];
            inside = inside && o >= 0 && o < at.image[i];
            pixel += o * scale;
            scale *= at.image[i];
            p /= at.block[i];
            v /= windows[i];
          }
          if (inside)
            wanted[static_cast<std::size_t>(plane * pixels + pixel)] += x.at((plane * places + place) * positions + window);
        }
      }
    }
    std::vector<std::int64_t> shape{2, 3};
    shape.insert(shape.end(), at.image.begin(), at.image.end());
    check(run(w, {x})[0], shape, [&](std::int64_t i) { return wanted[static_cast<std::size_t>(i)]; });
  }
}

TEST_CASE("CenterCropPad cuts and fills both sides, the later one more") {
  Writer w(18);
  w.input("x", {3, 8}).output("y");
  w.ints("shape", {2}, {6, 5});
  w.node("CenterCropPad", {"x", "shape"}, {"y"});
  const HostTensor x = noise({3, 8}, 1);
  check(run(w, {x})[0], {6, 5}, [&](std::int64_t i) {
    const std::int64_t row = i / 5 - 1, column = i % 5 + 1;
    return row < 0 || row > 2 ? 0 : x.at(row * 8 + column);
  });
  Writer one(18);
  one.input("x", {3, "N"}).output("y");
  one.ints("shape", {1}, {2});
  test::set_list(one.node("CenterCropPad", {"x", "shape"}, {"y"}), "axes", {-2});
  check(run(one, {x})[0], {2, 8}, [&](std::int64_t i) { return x.at(i); });
}

TEST_CASE("AffineGrid maps the centres or the corners of cells") {
  for (const bool corners : {false, true}) {
    Writer w(20);
    w.input("theta", {2, 2, 3}).output("y");
    w.ints("size", {4}, {2, 1, 3, 4});
    test::set_int(w.node("AffineGrid", {"theta", "size"}, {"y"}), "align_corners", corners);
    const HostTensor theta = noise({2, 2, 3}, 1);
    check(run(w, {theta})[0], {2, 3, 4, 2}, [&](std::int64_t i) {
      const auto at = [&](std::int64_t k, std::int64_t n) {
        return corners ? 2.0 * static_cast<double>(k) / static_cast<double>(n - 1) - 1
                       : static_cast<double>(2 * k + 1) / static_cast<double>(n) - 1;
      };
      const std::int64_t row = i % 2, batch = i / 24, base = batch * 6 + row * 3;
      return theta.at(base) * at(i / 2 % 4, 4) + theta.at(base + 1) * at(i / 8 % 3, 3) + theta.at(base + 2);
    });
  }
}

}  // namespace oclc::newer_ops_test
