#include "compiler/ops/reference/contraction_eval.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

template <class T>
T element(const HostTensor& x, std::int64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return x.at(i);
  } else {
    return static_cast<T>(x.int_at(i));
  }
}

template <class T>
void store(HostTensor& y, std::int64_t i, T value) {
  if constexpr (std::is_same_v<T, double>) {
    y.set(i, value);
  } else {
    y.set_int(i, static_cast<std::int64_t>(value));
  }
}

// Matrix `at` of x as rows x columns, contiguous.
template <class T>
std::vector<T> matrix(const HostTensor& x, std::int64_t at, std::int64_t rows, std::int64_t columns, bool transposed) {
  std::vector<T> result;
  result.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      result.push_back(element<T>(x, at + (transposed ? j * rows + i : i * columns + j)));
  }
  return result;
}

template <class T>
void matmul(const Node& node, const HostTensor& a, const HostTensor& b, HostTensor& y) {
  const bool trans_a = node.get<std::int64_t>("trans_a") != 0, trans_b = node.get<std::int64_t>("trans_b") != 0;
  const Sizes& shape = y.shape();
  const std::int64_t m = shape[shape.size() - 2], n = shape[shape.size() - 1],
                     k = a.shape()[a.shape().size() - (trans_a ? 2 : 1)];
  const auto batch = [](const Sizes& s) { return Sizes(s.begin(), s.end() - 2); };
  const std::vector<Sizes> strides{broadcast_strides(batch(a.shape()), batch(shape)),
                                   broadcast_strides(batch(b.shape()), batch(shape))};
  std::vector<T> sums(static_cast<std::size_t>(n));
  walk(batch(shape), strides, [&](std::int64_t at, const Sizes& offset) {
    const std::vector<T> left = matrix<T>(a, offset[0] * m * k, m, k, trans_a),
                         right = matrix<T>(b, offset[1] * k * n, k, n, trans_b);
    for (std::int64_t i = 0; i < m; ++i) {
      std::fill(sums.begin(), sums.end(), T{});
      for (std::int64_t p = 0; p < k; ++p) {
        const T factor = left[static_cast<std::size_t>(i * k + p)];
        const T* row = right.data() + p * n;
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += factor * row[j];
      }
      for (std::int64_t j = 0; j < n; ++j) store(y, (at * m + i) * n + j, sums[static_cast<std::size_t>(j)]);
    }
  });
}

// A list of one value per spatial axis, preceded by `fill` to make three.
std::array<std::int64_t, 3> three(std::span<const std::int64_t> list, std::int64_t fill) {
  std::array<std::int64_t, 3> result{fill, fill, fill};
  for (std::size_t i = 0; i < list.size(); ++i) result[3 - list.size() + i] = list[i];
  return result;
}

}  // namespace

std::vector<HostTensor> eval_matmul(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  HostTensor y(inputs[0].dtype(), bind_shape(node.output(0)->type.shape, symbols));
  if (is_float(y.dtype())) {
    matmul<double>(node, inputs[0], inputs[1], y);
  } else {
    matmul<std::uint64_t>(node, inputs[0], inputs[1], y);
  }
  return {std::move(y)};
}

std::vector<HostTensor> eval_conv(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor &x = inputs[0], &w = inputs[1];
  HostTensor y(x.dtype(), bind_shape(node.output(0)->type.shape, symbols));
  const std::size_t axes = x.shape().size() - 2;
  const auto& pads = node.get<Sizes>("pads");
  const auto in = three(std::span(x.shape()).subspan(2), 1), out = three(std::span(y.shape()).subspan(2), 1),
             kernel = three(std::span(w.shape()).subspan(2), 1);
  const auto stride = three(node.get<Sizes>("strides"), 1), dilation = three(node.get<Sizes>("dilations"), 1),
             pad = three(std::span(pads).first(axes), 0);
  const std::int64_t channels = w.shape()[1], features = w.shape()[0], per_group = features / node.get<std::int64_t>("group");
  const std::int64_t in_size = in[0] * in[1] * in[2], out_size = out[0] * out[1] * out[2],
                     taps = kernel[0] * kernel[1] * kernel[2];
  std::vector<double> data(static_cast<std::size_t>(x.elements())), sums(static_cast<std::size_t>(out_size));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = x.at(static_cast<std::int64_t>(i));
  for (std::int64_t no = 0; no < y.shape()[0] * features; ++no) {
    const std::int64_t n = no / features, o = no % features;
    std::fill(sums.begin(), sums.end(), has_input(node, 2) ? inputs[2].at(o) : 0.0);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double* plane = data.data() + (n * x.shape()[1] + o / per_group * channels + c) * in_size;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const double weight = w.at((o * channels + c) * taps + tap);
        // Position of the tap relative to the window's first element, on each axis.
        const std::int64_t kd = tap / (kernel[1] * kernel[2]) * dilation[0] - pad[0],
                           kh = tap / kernel[2] % kernel[1] * dilation[1] - pad[1], kw = tap % kernel[2] * dilation[2] - pad[2];
        for (std::int64_t d = 0; d < out[0]; ++d) {
          const std::int64_t id = d * stride[0] + kd;
          if (id < 0 || id >= in[0]) continue;
          for (std::int64_t h = 0; h < out[1]; ++h) {
            const std::int64_t ih = h * stride[1] + kh;
            if (ih < 0 || ih >= in[1]) continue;
            const double* row = plane + (id * in[1] + ih) * in[2];
            double* sum = sums.data() + (d * out[1] + h) * out[2];
            for (std::int64_t v = 0; v < out[2]; ++v) {
              const std::int64_t iw = v * stride[2] + kw;
              if (iw >= 0 && iw < in[2]) sum[v] += weight * row[iw];
            }
          }
        }
      }
    }
    for (std::int64_t i = 0; i < out_size; ++i) y.set(no * out_size + i, sums[static_cast<std::size_t>(i)]);
  }
  return {std::move(y)};
}

}  // namespace oclc
