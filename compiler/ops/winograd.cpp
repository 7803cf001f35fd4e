#include "compiler/ops/winograd.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/error.h"

namespace oclc {
namespace {

// Coefficients of the product of (x - root) over all points but `skip`, lowest power first.
std::vector<double> product_of_roots(const std::vector<double>& points, std::size_t skip) {
  std::vector<double> c{1};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == skip) continue;
    std::vector<double> next(c.size() + 1, 0);
    for (std::size_t k = 0; k < c.size(); ++k) {
      next[k] -= points[i] * c[k];
      next[k + 1] += c[k];
    }
    c = std::move(next);
  }
  return c;
}

double power(double x, std::size_t n) {
  double p = 1;
  for (std::size_t i = 0; i < n; ++i) p *= x;
  return p;
}

// The points beside infinity.
Winograd make(std::int64_t tile, std::int64_t taps, const std::vector<double>& points) {
  Winograd w;
  w.tile = tile;
  w.taps = taps;
  w.window = tile + taps - 1;
  const auto window = static_cast<std::size_t>(w.window), last = window - 1, m = static_cast<std::size_t>(tile),
             r = static_cast<std::size_t>(taps);
  for (std::size_t j = 0; j < last; ++j) {
    std::vector<double> row = product_of_roots(points, j);
    row.resize(window, 0);
    double scale = 1;
    for (std::size_t l = 0; l < last; ++l) scale *= l == j ? 1 : points[j] - points[l];
    // Rows are scaled so that they start with a positive number: fewer negations.
    std::size_t first = 0;
    while (row[first] == 0) ++first;
    const double sign = row[first] < 0 ? -1 : 1;
    for (double& x : row) x *= sign;
    w.input.push_back(std::move(row));
    std::vector<double> powers(r);
    for (std::size_t i = 0; i < r; ++i) powers[i] = sign * power(points[j], i) / scale;
    w.filter.push_back(std::move(powers));
  }
  w.input.push_back(product_of_roots(points, points.size()));
  std::vector<double> highest(r, 0);
  highest.back() = 1;
  w.filter.push_back(std::move(highest));
  for (std::size_t i = 0; i < m; ++i) {
    std::vector<double> row;
    for (std::size_t j = 0; j < last; ++j) row.push_back(power(points[j], i));
    row.push_back(i + 1 == m ? 1 : 0);
    w.output.push_back(std::move(row));
  }
  return w;
}

}  // namespace

bool has_winograd(std::int64_t tile, std::int64_t taps) {
  return taps == kWinogradFilter ? tile == 2 || tile == 4 : taps == kWideWinogradFilter && tile == 2;
}

const Winograd& winograd(std::int64_t tile, std::int64_t taps) {
  static const Winograd two = make(2, kWinogradFilter, {0, 1, -1});
  // These points err half as much as 0, 1, -1, 2, -2, and all constants but the filter's are exact in single precision.
  static const Winograd four = make(4, kWinogradFilter, {0, 0.75, -0.75, 1.5, -1.5});
  static const Winograd wide = make(2, kWideWinogradFilter, {0, 0.75, -0.75, 1.5, -1.5});
  OCLC_CHECK(has_winograd(tile, taps), "Winograd F(" + std::to_string(tile) + ", " + std::to_string(taps) + ")");
  return taps == kWideWinogradFilter ? wide : tile == 2 ? two : four;
}

const Winograd& winograd_of(const Node& node) { return winograd(node.get<std::int64_t>("tile")); }

Cost transform_cost(const Expr& pieces, const Matrix& m) {
  std::int64_t flops = 0;
  for (const auto& row : m) {
    for (const double x : row) flops += x == 0 ? 0 : 1;
  }
  return {pieces * Expr(flops * static_cast<std::int64_t>(m.size() + m[0].size()))};
}

Matrix transposed(const Matrix& m) {
  Matrix result(m[0].size(), std::vector<double>(m.size()));
  for (std::size_t i = 0; i < m.size(); ++i) {
    for (std::size_t j = 0; j < m[i].size(); ++j) result[j][i] = m[i][j];
  }
  return result;
}

Matrix on_both_sides(const Matrix& m, const Matrix& data) {
  Matrix result(m.size(), std::vector<double>(m.size(), 0));
  for (std::size_t i = 0; i < m.size(); ++i) {
    for (std::size_t j = 0; j < m.size(); ++j) {
      for (std::size_t k = 0; k < data.size(); ++k) {
        for (std::size_t l = 0; l < data.size(); ++l) result[i][j] += m[i][k] * data[k][l] * m[j][l];
      }
    }
  }
  return result;
}

HostTensor winograd_weights(const HostTensor& w, std::int64_t tile) {
  const Winograd& f = winograd(tile);
  const std::int64_t features = w.shape().at(0), channels = w.shape().at(1);
  const auto window = static_cast<std::size_t>(f.window);
  HostTensor u(w.dtype(), {f.window * f.window, channels, features});
  std::vector<std::vector<double>> half(window, std::vector<double>(3));
  for (std::int64_t o = 0; o < features; ++o) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t at = (o * channels + c) * 9;
      for (std::size_t i = 0; i < window; ++i) {
        for (std::size_t k = 0; k < 3; ++k) {
          double sum = 0;
          for (std::size_t l = 0; l < 3; ++l) sum += f.filter[i][l] * w.at(at + static_cast<std::int64_t>(l * 3 + k));
          half[i][k] = sum;
        }
      }
      for (std::size_t i = 0; i < window; ++i) {
        for (std::size_t j = 0; j < window; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < 3; ++k) sum += half[i][k] * f.filter[j][k];
          u.set((static_cast<std::int64_t>(i * window + j) * channels + c) * features + o, sum);
        }
      }
    }
  }
  return u;
}

namespace {

constexpr std::int64_t kSampledFeatures = 8, kSampledTiles = 4;
// Kernels add up sums of so many products.
constexpr std::int64_t kChain = 64;

// Uniform in [-1, 1): the splitmix64 sequence.
double random_number(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<double>((z ^ (z >> 31)) >> 40) / static_cast<double>(1 << 23) - 1;
}

// matrix * x * matrix^T in the arithmetic of T; x is n x n, row-major.
template <class T>
std::vector<T> both_sides(const Matrix& matrix, const std::vector<T>& x, std::size_t n) {
  const std::size_t m = matrix.size();
  std::vector<T> half(m * n), y(m * m);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      T sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += static_cast<T>(matrix[i][k]) * x[k * n + j];
      half[i * n + j] = sum;
    }
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      T sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += half[i * n + k] * static_cast<T>(matrix[j][k]);
      y[i * m + j] = sum;
    }
  }
  return y;
}

}  // namespace

double winograd_error(const HostTensor& w, std::int64_t tile) {
  const std::int64_t channels = w.shape().at(1), features = std::min(w.shape().at(0), kSampledFeatures), taps = w.shape().at(2),
                     area = taps * taps;
  const Winograd& f = winograd(tile, taps);
  const auto window = static_cast<std::size_t>(f.window), points = window * window, m = static_cast<std::size_t>(tile);
  std::uint64_t state = 1;
  double results = 0, errors = 0;
  for (std::int64_t t = 0; t < kSampledTiles; ++t) {
    std::vector<std::vector<float>> images, transformed;
    for (std::int64_t c = 0; c < channels; ++c) {
      std::vector<float> d(points);
      for (float& x : d) x = static_cast<float>(random_number(state));
      transformed.push_back(both_sides(f.input, d, window));
      images.push_back(std::move(d));
    }
    for (std::int64_t o = 0; o < features; ++o) {
      std::vector<float> total(points), sum(points);
      std::vector<double> exact(m * m);
      for (std::int64_t c = 0; c < channels; ++c) {
        std::vector<double> g(static_cast<std::size_t>(area));
        for (std::int64_t i = 0; i < area; ++i) g[static_cast<std::size_t>(i)] = w.at((o * channels + c) * area + i);
        const auto at = static_cast<std::size_t>(c), r = static_cast<std::size_t>(taps);
        const std::vector<double> u = both_sides(f.filter, g, r);
        for (std::size_t p = 0; p < points; ++p) sum[p] = std::fma(transformed[at][p], static_cast<float>(u[p]), sum[p]);
        if ((c + 1) % kChain == 0 || c + 1 == channels) {
          for (std::size_t p = 0; p < points; ++p) total[p] += sum[p], sum[p] = 0;
        }
        for (std::size_t y = 0; y < m; ++y) {
          for (std::size_t x = 0; x < m; ++x) {
            for (std::size_t i = 0; i < g.size(); ++i)
              exact[y * m + x] += g[i] * static_cast<double>(images[at][(y + i / r) * window + x + i % r]);
          }
        }
      }
      const std::vector<float> found = both_sides(f.output, total, window);
      for (std::size_t i = 0; i < m * m; ++i) {
        const double difference = static_cast<double>(found[i]) - exact[i];
        results += exact[i] * exact[i];
        errors += difference * difference;
      }
    }
  }
  return results > 0 ? std::sqrt(errors / results) : 0;
}

double typical_winograd_error(std::int64_t channels, std::int64_t tile, std::int64_t taps) {
  HostTensor w(DType::f32, {kSampledFeatures, channels, taps, taps});
  std::uint64_t state = 2;
  for (std::int64_t i = 0; i < w.elements(); ++i) w.set(i, random_number(state));
  return winograd_error(w, tile);
}

}  // namespace oclc
