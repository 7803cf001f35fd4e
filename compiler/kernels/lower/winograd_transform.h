// Transforms of Winograd convolution as scalar expressions, with the sums that points of opposite sign share.
#pragma once
#include <vector>

#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/ops/winograd.h"

namespace oclc {

// matrix * x.
using WinogradTransform = std::vector<NodeId> (*)(KernelBuilder& b, const Matrix& matrix, const std::vector<NodeId>& x);

// Points p and -p give rows that differ in the sign of every second term: the two halves of their sums are shared.
std::vector<NodeId> transform_rows(KernelBuilder& b, const Matrix& matrix, const std::vector<NodeId>& x);
// The same where columns 2k + 1 and 2k + 2 belong to the points p and -p: their sums and differences are shared by all rows.
std::vector<NodeId> transform_columns(KernelBuilder& b, const Matrix& matrix, const std::vector<NodeId>& x);

// matrix * data * matrix^T, row-major; data[i * n + j].
std::vector<NodeId> transform_both_sides(KernelBuilder& b, const Matrix& matrix, const std::vector<NodeId>& data,
                                         WinogradTransform transform);

}  // namespace oclc
