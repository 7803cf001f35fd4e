// Weights in 12 bits for products of one row, which memory's bytes bound.
#pragma once
#include <optional>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// A sum over `terms` of row[term] * weights[result * terms + term] for each of `results`: nodes of its kernel, plain loads.
struct RowProduct {
  NodeId row = -1, weights = -1;
  std::int64_t results = 0, terms = 0;
};

// The kernel as such a product of constants, where operands of products are rounded and weights take longer than a launch.
std::optional<RowProduct> row_product(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);

// Terms that eight work-items of contraction_row_gpu.cl read together, and 32-bit words of a result's weights there.
constexpr std::int64_t kTermsOfChunk = 256;
constexpr std::int64_t words_of_row(std::int64_t terms) { return (terms / kTermsOfChunk * 100 + 31) / 32 * 32; }
// What in_twelve_bits() makes.
constexpr std::int64_t packed_bytes(const RowProduct& p) { return p.results * (words_of_row(p.terms) + 1) * 4; }

// f32[results, terms] as that template reads them, u32: integers of 12 bits with a scale for every eight of a result. Nothing
// where that rounds a result's weights more than both operands of a product are rounded to TF32: the row is not.
std::optional<HostTensor> in_twelve_bits(const HostTensor& weights, const RowProduct& product);

}  // namespace oclc
