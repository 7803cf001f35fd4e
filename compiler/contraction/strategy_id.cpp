#include "compiler/contraction/strategy_id.h"

#include <algorithm>
#include <array>

namespace oclc {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 37> kNames = {"gemm",
                                                     "im2col",
                                                     "winograd",
                                                     "planes",
                                                     "conv_implicit",
                                                     "conv_winograd_2",
                                                     "conv_winograd_4",
                                                     "quantized_4",
                                                     "quantized_8",
                                                     "quantized_20",
                                                     "quantized_24",
                                                     "strassen",
                                                     "small_gemm",
                                                     "small_gemm_f16",
                                                     "pack_b",
                                                     "lay_out_a",
                                                     "amx_rows",
                                                     "amx_window",
                                                     "amx_patches",
                                                     "amx_limbs",
                                                     "amx_limb_window",
                                                     "chunks_constant_a",
                                                     "few_rows",
                                                     "dots",
                                                     "amx_chunks",
                                                     "chunks",
                                                     "window",
                                                     "fma_copied_a",
                                                     "fma_copied_b",
                                                     "fma_in_place",
                                                     "wgmma_tf32",
                                                     "wgmma_f16x2",
                                                     "wgmma_f16",
                                                     "mma",
                                                     "mma_bf16",
                                                     "simt",
                                                     "loops"};
static_assert(kNames.size() == static_cast<std::size_t>(StrategyId::loops) + 1);

}  // namespace

std::string_view name_of(StrategyId strategy) { return kNames[static_cast<std::size_t>(strategy)]; }

std::optional<StrategyId> strategy_named(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? std::nullopt : std::optional(static_cast<StrategyId>(found - kNames.begin()));
}

}  // namespace oclc
