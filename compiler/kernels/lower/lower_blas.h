// Contractions as GEMMs of a library.
#pragma once
#include <functional>
#include <optional>

#include "compiler/kernels/kernel.h"

namespace oclc {

struct BlasLowering {
  Gemm gemm;
  std::optional<Kernel> epilogue;  // absent: the GEMM stores the result itself
};

// The kernel's product as one (batched) GEMM and what follows the sum as a pointwise kernel. Nothing, with the reason in
// `why_not`, if an operand is computed on the way, padded, not single precision, or not a matrix with regular strides.
// `new_buffer` makes a buffer for the product.
std::optional<BlasLowering> lower_blas(const Kernel& kernel, const std::function<int(const Expr& elements)>& new_buffer,
                                       std::string& why_not);

}  // namespace oclc
