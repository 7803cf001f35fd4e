// The transforms of Winograd convolution. One point of the iteration space computes a tile of one channel with everything in
// registers; channels are innermost, so that vectors run over them.
#include <cmath>

#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/lower_kernel.h"
#include "compiler/ops/winograd.h"

namespace oclc {
namespace {

using Nodes = std::vector<NodeId>;

NodeId negated(KernelBuilder& b, NodeId x) { return b.apply("neg", {x}); }

// sum of coefficients[i] * x[i], without multiplications by one; -1 if all are zero.
NodeId combine(KernelBuilder& b, const std::vector<double>& coefficients, const Nodes& x) {
  NodeId sum = -1;
  const DType dtype = b.at(x[0]).dtype;
  for (const bool positive : {true, false}) {  // starts with a positive term where there is one
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double c = coefficients[i];
      if (c == 0 || (c > 0) != positive) continue;
      if (sum < 0)
        sum = c == 1 ? x[i] : c == -1 ? negated(b, x[i]) : b.apply("mul", {x[i], b.number(dtype, c)});
      else if (std::abs(c) == 1)
        sum = b.apply(c > 0 ? "add" : "sub", {sum, x[i]});
      else
        sum = b.apply("fma", {x[i], b.number(dtype, c), sum});
    }
  }
  return sum;
}

bool opposite_rows(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != (i % 2 == 0 ? b[i] : -b[i])) return false;
  }
  return true;
}

// matrix * x. Points p and -p give rows that differ in the sign of every second term: the two halves of their sums are shared.
Nodes transform_rows(KernelBuilder& b, const Matrix& matrix, const Nodes& x) {
  Nodes y(matrix.size(), -1);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (y[i] >= 0) continue;
    std::size_t partner = i + 1;
    bool flip = false;
    for (; partner < matrix.size(); ++partner) {
      std::vector<double> negative = matrix[partner];
      for (double& v : negative) v = -v;
      flip = opposite_rows(matrix[i], negative);
      if (flip || opposite_rows(matrix[i], matrix[partner])) break;
    }
    std::vector<double> even = matrix[i], odd = matrix[i];
    for (std::size_t k = 0; k < even.size(); ++k) (k % 2 == 0 ? odd : even)[k] = 0;
    const NodeId e = partner < matrix.size() ? combine(b, even, x) : -1, o = partner < matrix.size() ? combine(b, odd, x) : -1;
    if (e < 0 || o < 0) {
      y[i] = combine(b, matrix[i], x);
      continue;
    }
    y[i] = b.apply("add", {e, o});
    y[partner] = flip ? b.apply("sub", {o, e}) : b.apply("sub", {e, o});
  }
  return y;
}

// The same where columns 2k + 1 and 2k + 2 belong to the points p and -p: their sums and differences are shared by all rows.
Nodes transform_columns(KernelBuilder& b, const Matrix& matrix, const Nodes& x) {
  const std::size_t last = x.size() - 1;
  Nodes sums(x.size(), -1), differences(x.size(), -1);
  for (std::size_t k = 1; k < last; k += 2) {
    sums[k] = b.apply("add", {x[k], x[k + 1]});
    differences[k] = b.apply("sub", {x[k], x[k + 1]});
  }
  Nodes y;
  for (const auto& row : matrix) {
    std::vector<double> coefficients{row[0], row[last]};
    Nodes operands{x[0], x[last]};
    for (std::size_t k = 1; k < last; k += 2) {
      operands.push_back(row[k] == row[k + 1] ? sums[k] : differences[k]);
      coefficients.push_back(row[k]);
    }
    y.push_back(combine(b, coefficients, operands));
  }
  return y;
}

using Transform = Nodes (*)(KernelBuilder&, const Matrix&, const Nodes&);

// matrix * data * matrix^T, row-major; data[i * n + j].
Nodes both_sides(KernelBuilder& b, const Matrix& matrix, const Nodes& data, Transform transform) {
  const std::size_t n = matrix[0].size(), m = matrix.size();
  std::vector<Nodes> columns;  // of matrix * data
  for (std::size_t j = 0; j < n; ++j) {
    Nodes column;
    for (std::size_t i = 0; i < n; ++i) column.push_back(data[i * n + j]);
    columns.push_back(transform(b, matrix, column));
  }
  Nodes result;
  for (std::size_t i = 0; i < m; ++i) {
    Nodes row;
    for (std::size_t j = 0; j < n; ++j) row.push_back(columns[j][i]);
    for (const NodeId y : transform(b, matrix, row)) result.push_back(y);
  }
  return result;
}

// Axes n, ty, tx and channel; the tile's number.
struct TileAxes {
  Expr n, y, x, channel, number;
};

TileAxes add_tile_axes(KernelBuilder& b, const Expr& batch, const Expr& height, const Expr& width, const Expr& channels,
                       std::int64_t tile) {
  const Expr down = ceil_div(height, Expr(tile)), across = ceil_div(width, Expr(tile));
  TileAxes t;
  t.n = b.add_axis("image", batch);
  t.y = b.add_axis("tile_y", down);
  t.x = b.add_axis("tile_x", across);
  t.channel = b.add_axis("channel", channels);
  t.number = (t.n * down + t.y) * across + t.x;
  return t;
}

}  // namespace

void lower_winograd_input(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const auto& pads = node.get<std::vector<std::int64_t>>("pads");
  const Shape& sx = x->type.shape;
  const std::int64_t lost = kWinogradFilter - 1;
  const Expr height = sx[2] + Expr(pads[0] + pads[2] - lost), width = sx[3] + Expr(pads[1] + pads[3] - lost);
  const TileAxes t = add_tile_axes(b, sx[0], height, width, sx[1], f.tile);
  Nodes data;
  for (std::int64_t i = 0; i < f.window; ++i) {
    for (std::int64_t j = 0; j < f.window; ++j) {
      const Expr row = t.y * Expr(f.tile) + Expr(i - pads[0]), column = t.x * Expr(f.tile) + Expr(j - pads[1]);
      std::vector<Expr> guard;
      for (const auto& [at, extent] : {std::pair(row, sx[2]), std::pair(column, sx[3])}) {
        add_condition(guard, at);
        add_condition(guard, extent - 1 - at);
      }
      data.push_back(b.guarded(b.element(x, {t.n, t.channel, row, column}, guard), {}, guard, 0));
    }
  }
  const Nodes v = both_sides(b, f.input, data, transform_rows);
  for (std::size_t k = 0; k < v.size(); ++k)
    b.parts.push_back({{Expr(static_cast<std::int64_t>(k)), t.channel, t.number}, v[k], {}});
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

void lower_winograd_output(KernelBuilder& b, const Node& node) {
  const Value *m = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const Shape& shape = result->type.shape;
  const TileAxes t = add_tile_axes(b, shape[0], shape[2], shape[3], shape[1], f.tile);
  Nodes data;
  for (std::int64_t k = 0; k < f.window * f.window; ++k) data.push_back(b.element(m, {Expr(k), t.number, t.channel}));
  const Nodes y = both_sides(b, f.output, data, transform_columns);
  for (std::size_t k = 0; k < y.size(); ++k) {
    const auto i = static_cast<std::int64_t>(k) / f.tile, j = static_cast<std::int64_t>(k) % f.tile;
    const Expr row = t.y * Expr(f.tile) + Expr(i), column = t.x * Expr(f.tile) + Expr(j);
    std::vector<Expr> guard;
    add_condition(guard, shape[2] - 1 - row);
    add_condition(guard, shape[3] - 1 - column);
    b.parts.push_back({{t.n, t.channel, row, column}, y[k], std::move(guard)});
  }
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

}  // namespace oclc
