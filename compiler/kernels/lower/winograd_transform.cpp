#include "compiler/kernels/lower/winograd_transform.h"

#include <cmath>

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

}  // namespace

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

Nodes transform_both_sides(KernelBuilder& b, const Matrix& matrix, const Nodes& data, WinogradTransform transform) {
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

}  // namespace oclc
