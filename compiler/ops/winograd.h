// Winograd's minimal filtering F(m, r) by Toom and Cook: m outputs of a filter of r taps from m + r - 1 products.
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ir/tensor.h"

namespace oclc {

using Matrix = std::vector<std::vector<double>>;  // rows

// y = output (filter g * input d) elementwise products; for two dimensions each matrix is applied to rows and columns.
struct Winograd {
  std::int64_t tile = 0;    // m
  std::int64_t taps = 0;    // r
  std::int64_t window = 0;  // m + r - 1: the points
  Matrix input;             // [window][window], exact
  Matrix filter;            // [window][taps]
  Matrix output;            // [tile][window], exact
};

inline constexpr std::int64_t kWinogradFilter = 3, kWideWinogradFilter = 5;

// True of F(2, 3), F(4, 3) and F(2, 5).
bool has_winograd(std::int64_t tile, std::int64_t taps);
// InternalError where there is none.
const Winograd& winograd(std::int64_t tile, std::int64_t taps = kWinogradFilter);
// F(m, 3) of the node's attribute `tile`.
const Winograd& winograd_of(const Node& node);
// Multiplications and additions of the one-dimensional transform `m`, applied to rows and columns of each piece.
Cost transform_cost(const Expr& pieces, const Matrix& m);

Matrix transposed(const Matrix& m);
// m * data * m^T.
Matrix on_both_sides(const Matrix& m, const Matrix& data);

// Error of F(m x m, r x r) in single precision on these weights w[O, C, r, r] and an image of random numbers, as a share of the
// results, root mean square of both: measured on a few tiles of a few features. Deterministic.
double winograd_error(const HostTensor& w, std::int64_t tile);
// The same for filters of random numbers.
double typical_winograd_error(std::int64_t channels, std::int64_t tile, std::int64_t taps);

// w[O, C, 3, 3] as u[window * window, C, O], computed in double.
HostTensor winograd_weights(const HostTensor& w, std::int64_t tile);

}  // namespace oclc
