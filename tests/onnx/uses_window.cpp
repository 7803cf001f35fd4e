// Windows: pools (18, 19, 22), convolutions (22), columns of windows (18), and the determinant and the transform that are
// theirs alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

// Windows over one axis, or over two with the first of height 1: sizes are of the last axis.
struct Window {
  std::int64_t kernel, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t places(std::int64_t size) const { return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1; }
  std::int64_t at(std::int64_t place, std::int64_t tap) const { return place * stride - before + tap * dilation; }
};

void set_window(NodeProto& node, const Window& w, bool dilates = true) {
  set_list(node, "kernel_shape", {w.kernel});
  if (w.stride != 1) set_list(node, "strides", {w.stride});
  if (dilates && w.dilation != 1) set_list(node, "dilations", {w.dilation});
  if (w.before + w.after > 0) set_list(node, "pads", {w.before, w.after});
}

const Window kWindows[] = {{3}, {3, 2, 2, 1, 1}, {1, 3}, {4, 1, 3, 2, 4}};

// fold(elements of the window that lie inside)
template <class Fold>
void pool(Sheet& s, const char* op, const std::vector<DType>& dtypes, Fold&& fold,
          const std::function<void(NodeProto&)>& more = {}) {
  for (const DType dtype : dtypes) {
    for (const Window& w : kWindows) {
      const HostTensor x = noise(dtype, {2, w.kernel == 1 ? 1 : 3, 13}, 1);
      NodeProto& node = s.use(op, {s.input(x)}, w.kernel == 1);
      set_window(node, w);
      if (more) more(node);
      const std::int64_t places = w.places(13);
      s.gives(dtype, {2, x.shape()[1], places}, [=](std::int64_t i) {
        std::vector<double> inside;
        for (std::int64_t k = 0; k < w.kernel; ++k) {
          const std::int64_t at = w.at(i % places, k);
          if (at >= 0 && at < 13) inside.push_back(x.at(i / places * 13 + at));
        }
        return fold(inside, w);
      });
    }
  }
}

void average(Sheet& s, const std::vector<DType>& dtypes) {
  const auto sum = [](const std::vector<double>& v) {
    double all = 0;
    for (const double e : v) all += e;
    return all;
  };
  pool(s, "AveragePool", dtypes, [=](const auto& v, const Window&) { return sum(v) / static_cast<double>(v.size()); });
  pool(
      s, "AveragePool", {DType::f32}, [=](const auto& v, const Window& w) { return sum(v) / static_cast<double>(w.kernel); },
      [](NodeProto& node) { set_int(node, "count_include_pad", 1); });
}

void power(Sheet& s, const std::vector<DType>& dtypes) {
  for (const std::int64_t p : {1, 2, 3}) {
    pool(
        s, "LpPool", dtypes,
        [p](const auto& v, const Window&) {
          double all = 0;
          for (const double e : v) all += std::pow(std::fabs(e), static_cast<double>(p));
          return std::pow(all, 1 / static_cast<double>(p));
        },
        [p](NodeProto& node) { set_int(node, "p", p); });
  }
}

void global_pools(Sheet& s) {
  for (const HostTensor& x :
       {noise(DType::f32, {2, 3, 4, 5}, 1), noise(DType::bf16, {1, 2, 6}, 2), noise(DType::f32, {3, 1, 1, 7, 1}, 3)}) {
    const Dims& shape = x.shape();
    const std::int64_t size = x.elements() / (shape[0] * shape[1]);
    Dims result{shape[0], shape[1]};
    result.resize(shape.size(), 1);
    const bool awkward = shape.size() == 5;
    const auto fold = [=](double start, auto&& step) {
      return [=](std::int64_t i) {
        double all = start;
        for (std::int64_t k = 0; k < size; ++k) all = step(all, x.at(i * size + k));
        return all;
      };
    };
    s.use("GlobalAveragePool", {s.input(x)}, awkward);
    s.gives(x.dtype(), result, fold(0, [=](double a, double b) { return a + b / static_cast<double>(size); }), 0, 0.03);
    s.use("GlobalMaxPool", {s.input(x)}, awkward);
    s.gives(x.dtype(), result, fold(-INFINITY, [](double a, double b) { return std::max(a, b); }));
    s.use("GlobalLpPool", {s.input(x)}, awkward);
    const auto squares = fold(0, [](double a, double b) { return a + b * b; });
    s.gives(x.dtype(), result, [=](std::int64_t i) { return std::sqrt(squares(i)); });
  }
}

void convolutions(Sheet& s) {
  struct Case {
    DType dtype;
    std::int64_t images, channels, features, group, size;
    Window w;
  };
  for (const Case& c : {Case{DType::f32, 2, 4, 6, 2, 11, {3, 2, 1, 1, 1}}, Case{DType::bf16, 1, 3, 2, 1, 7, {2, 1, 2}},
                        Case{DType::f32, 1, 1, 1, 1, 5, {5, 1, 1, 2, 1}}, Case{DType::f32, 3, 5, 5, 5, 9, {3, 3, 2, 0, 2}}}) {
    const std::int64_t each = c.channels / c.group, given = c.features / c.group, places = c.w.places(c.size);
    const HostTensor x = noise(c.dtype, {c.images, c.channels, c.size}, 1),
                     w = noise(c.dtype, {c.features, each, c.w.kernel}, 2), bias = noise(c.dtype, {c.features}, 3);
    NodeProto& node = s.use("Conv", {s.input(x), s.input(w), s.input(bias)}, c.channels == 1);
    set_window(node, c.w);
    if (c.group > 1) set_int(node, "group", c.group);
    s.gives(c.dtype, {c.images, c.features, places}, [=](std::int64_t i) {
      const std::int64_t place = i % places, f = i / places % c.features, n = i / (places * c.features);
      double sum = bias.at(f);
      for (std::int64_t ch = 0; ch < each; ++ch) {
        for (std::int64_t k = 0; k < c.w.kernel; ++k) {
          const std::int64_t at = c.w.at(place, k);
          if (at < 0 || at >= c.size) continue;
          sum += w.at((f * each + ch) * c.w.kernel + k) * x.at((n * c.channels + f / given * each + ch) * c.size + at);
        }
      }
      return sum;
    });
    // Its transpose: each of x's places adds its weights to the window.
    const HostTensor v = noise(c.dtype, {c.channels, given, c.w.kernel}, 4);
    const std::int64_t wide = (c.size - 1) * c.w.stride + (c.w.kernel - 1) * c.w.dilation + 1 - c.w.before - c.w.after;
    NodeProto& back = s.use("ConvTranspose", {s.input(x), s.input(v), s.input(bias)}, c.channels == 1);
    set_window(back, c.w);
    if (c.group > 1) set_int(back, "group", c.group);
    s.gives(c.dtype, {c.images, c.features, wide}, [=](std::int64_t i) {
      const std::int64_t at = i % wide, f = i / wide % c.features, n = i / (wide * c.features), first = f / given * each;
      double sum = bias.at(f);
      for (std::int64_t ch = first; ch < first + each; ++ch) {
        for (std::int64_t p = 0; p < c.size; ++p) {
          for (std::int64_t k = 0; k < c.w.kernel; ++k) {
            if (c.w.at(p, k) == at)
              sum += x.at((n * c.channels + ch) * c.size + p) * v.at((ch * given + f % given) * c.w.kernel + k);
          }
        }
      }
      return sum;
    });
  }
}

void unpool(Sheet& s) {
  struct Case {
    Dims shape;
    std::int64_t kernel;
    std::vector<double> places;
  };
  for (const Case& c : {Case{{1, 1, 3}, 2, {1, 2, 5}}, Case{{1, 2, 2}, 3, {0, 5, 7, 9}}, Case{{2, 1, 1}, 1, {0, 1}}}) {
    HostTensor x = noise(DType::f32, c.shape, 1);
    x.set(0, INFINITY);  // numbers are moved: nothing of one reaches another's place
    NodeProto& node = s.use("MaxUnpool", {s.input(x), s.input(listed(DType::i64, c.shape, c.places))}, c.kernel == 1);
    set_list(node, "kernel_shape", {c.kernel});
    set_list(node, "strides", {c.kernel});
    s.gives(DType::f32, {c.shape[0], c.shape[1], c.shape[2] * c.kernel}, [=](std::int64_t i) {
      for (std::int64_t k = 0; k < x.elements(); ++k) {
        if (static_cast<std::int64_t>(c.places[static_cast<std::size_t>(k)]) == i) return x.at(k);
      }
      return 0.0;
    });
  }
}

void columns(Sheet& s) {
  struct Case {
    Dims image;
    Window high, wide;
    std::int64_t channels;
  };
  for (const Case& c :
       {Case{{4, 5}, {2}, {3}, 1}, Case{{6, 6}, {2, 2, 2, 1, 0}, {3, 1, 1, 1, 1}, 2}, Case{{1, 7}, {1}, {3, 2, 1, 0, 1}, 3}}) {
    const std::int64_t rows = c.high.places(c.image[0]), line = c.wide.places(c.image[1]), blocks = rows * line,
                       taps = c.high.kernel * c.wide.kernel;
    const HostTensor x = noise(DType::f32, {2, c.channels * taps, blocks}, 1);
    NodeProto& node =
        s.use("Col2Im", {s.input(x), s.known_ints(c.image), s.known_ints({c.high.kernel, c.wide.kernel})}, c.image[0] == 1);
    set_list(node, "strides", {c.high.stride, c.wide.stride});
    set_list(node, "dilations", {c.high.dilation, c.wide.dilation});
    set_list(node, "pads", {c.high.before, c.wide.before, c.high.after, c.wide.after});
    const Dims shape{2, c.channels, c.image[0], c.image[1]};
    s.gives(DType::f32, shape, [=](std::int64_t i) {
      const Dims at = unflat(i, shape);
      double sum = 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t b = 0; b < blocks; ++b) {
          if (c.high.at(b / line, tap / c.wide.kernel) == at[2] && c.wide.at(b % line, tap % c.wide.kernel) == at[3])
            sum += x.at(((at[0] * c.channels + at[1]) * taps + tap) * blocks + b);
        }
      }
      return sum;
    });
  }
}

void determinants(Sheet& s) {
  s.use("Det", {s.input(listed(DType::f32, {2, 2}, {3, 1, 4, 2}))});
  s.gives(DType::f32, {}, of({2}));
  s.use("Det", {s.input(listed(DType::f32, {2, 3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4, 0, 1, 0, 1, 0, 0, 0, 0, 2}))});
  s.gives(DType::f32, {2}, of({18, -2}));
  s.use("Det", {s.input(listed(DType::f32, {3, 1, 1, 1}, {5, -2, 0}))}, true);
  s.gives(DType::f32, {3, 1}, of({5, -2, 0}));
}

void transforms(Sheet& s) {
  struct Case {
    Dims shape;
    std::int64_t axis, length;
    bool half, inverse;
  };
  for (const Case& c : {Case{{2, 7, 3, 1}, 1, 7, true, false}, Case{{1, 6, 2}, -2, 6, false, true},
                        Case{{5, 1, 1}, 0, 8, false, false}, Case{{1, 4, 2}, 1, 6, true, true}}) {
    const HostTensor x = noise(DType::f32, c.shape, 1);
    const std::int64_t rank = static_cast<std::int64_t>(c.shape.size()), axis = (c.axis + rank) % rank, parts = c.shape.back();
    NodeProto& node = s.use("DFT",
                            {s.input(x), s.known(listed(DType::i64, {}, {static_cast<double>(c.length)})),
                             s.known(listed(DType::i64, {}, {static_cast<double>(c.axis)}))},
                            c.shape[1] == 1);
    set_int(node, "onesided", c.half);
    set_int(node, "inverse", c.inverse);
    Dims result = c.shape;
    result[static_cast<std::size_t>(axis)] = c.half && !c.inverse ? c.length / 2 + 1 : c.length;
    result.back() = c.half && c.inverse ? 1 : 2;
    s.gives(DType::f32, result, [=](std::int64_t i) {
      Dims at = unflat(i, result);
      const auto out = static_cast<double>(at[static_cast<std::size_t>(axis)]);
      const bool imaginary = at.back() == 1;
      double re = 0, im = 0;
      for (std::int64_t n = 0; n < c.length; ++n) {
        // Behind the half of a real signal's spectrum it is conjugate; behind the operand there are zeros.
        const bool mirrored = c.half && c.inverse && n > c.length / 2;
        at[static_cast<std::size_t>(axis)] = mirrored ? c.length - n : n;
        if (at[static_cast<std::size_t>(axis)] >= c.shape[static_cast<std::size_t>(axis)]) continue;
        at.back() = 0;
        const double a = x.at(flat(at, c.shape));
        at.back() = 1;
        const double b = parts == 2 ? (mirrored ? -1 : 1) * x.at(flat(at, c.shape)) : 0;
        const double angle =
            (c.inverse ? 2 : -2) * std::acos(-1.0) * out * static_cast<double>(n) / static_cast<double>(c.length);
        re += a * std::cos(angle) - b * std::sin(angle);
        im += a * std::sin(angle) + b * std::cos(angle);
      }
      return (imaginary ? im : re) / (c.inverse ? static_cast<double>(c.length) : 1);
    });
  }
}

}  // namespace

void window_uses(Sheet& s) {
  if (s.opset == 18) {
    power(s, {DType::f32});
    columns(s);
  }
  if (s.opset == 19) average(s, {DType::f32, DType::f16});
  if (s.opset == 20) transforms(s);
  if (s.opset == 22) {
    power(s, {DType::f32, DType::bf16});
    average(s, {DType::f32, DType::bf16});
    pool(s, "MaxPool", {DType::f32, DType::bf16},
         [](const auto& v, const Window&) { return *std::max_element(v.begin(), v.end()); });
    global_pools(s);
    convolutions(s);
    unpool(s);
    determinants(s);
  }
}

}  // namespace oclc::test
