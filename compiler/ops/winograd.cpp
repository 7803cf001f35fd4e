#include "compiler/ops/winograd.h"

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
Winograd make(std::int64_t tile, const std::vector<double>& points) {
  Winograd w;
  w.tile = tile;
  w.window = tile + kWinogradFilter - 1;
  const auto window = static_cast<std::size_t>(w.window), last = window - 1, m = static_cast<std::size_t>(tile);
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
    w.filter.push_back({sign / scale, sign * points[j] / scale, sign * points[j] * points[j] / scale});
  }
  w.input.push_back(product_of_roots(points, points.size()));
  w.filter.push_back({0, 0, 1});
  for (std::size_t i = 0; i < m; ++i) {
    std::vector<double> row;
    for (std::size_t j = 0; j < last; ++j) row.push_back(power(points[j], i));
    row.push_back(i + 1 == m ? 1 : 0);
    w.output.push_back(std::move(row));
  }
  return w;
}

}  // namespace

const Winograd& winograd(std::int64_t tile) {
  static const Winograd two = make(2, {0, 1, -1});
  static const Winograd four = make(4, {0, 1, -1, 2, -2});
  OCLC_CHECK(tile == 2 || tile == 4, "Winograd tile of size " + std::to_string(tile));
  return tile == 2 ? two : four;
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

}  // namespace oclc
