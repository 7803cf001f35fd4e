// Names of the strategies of a contraction; strategy.h has the table.
#pragma once
#include <optional>
#include <string_view>

namespace oclc {

enum class StrategyId {
  // What passes make of products and convolutions, and leave to the ranking.
  gemm,
  im2col,
  winograd,
  planes,
  implicit,
  // Asked for by a pass that knows the whole network: they take a share of the contract's error, or of a launch.
  winograd_2,
  winograd_4,
  quantized_4,
  quantized_8,
  quantized_20,
  quantized_24,
  strassen,
  small_gemm,
  small_gemm_f16,
  pack_b,
  lay_out_a,
  // CPUs.
  amx_rows,
  amx_window,
  amx_patches,
  amx_limbs,
  amx_limb_window,
  chunks_constant_a,
  few_rows,
  dots,
  amx_chunks,
  chunks,
  window,
  fma_copied_a,
  fma_copied_b,
  fma_in_place,
  // GPUs.
  wgmma_tf32,
  wgmma_f16x2,
  wgmma_f16,
  mma,
  mma_bf16,
  simt,
  // What no template computes.
  loops
};

std::string_view name_of(StrategyId strategy);
// The strategy of that name.
std::optional<StrategyId> strategy_named(std::string_view name);

}  // namespace oclc
