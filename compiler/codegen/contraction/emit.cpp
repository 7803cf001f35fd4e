#include "compiler/codegen/contraction/emit.h"

#include <algorithm>
#include <iterator>

#include "compiler/codegen/contraction/amx/contraction_amx.h"
#include "compiler/codegen/contraction/amx/contraction_chunks_amx.h"
#include "compiler/codegen/contraction/choose.h"
#include "compiler/codegen/contraction/cpu/contraction.h"
#include "compiler/codegen/contraction/cpu/contraction_chunks.h"
#include "compiler/codegen/contraction/cpu/contraction_few_rows.h"
#include "compiler/codegen/contraction/cpu/contraction_quantized.h"
#include "compiler/codegen/contraction/cpu/contraction_strassen.h"
#include "compiler/codegen/contraction/cpu/contraction_window.h"
#include "compiler/codegen/contraction/cpu/contraction_winograd.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu.h"
#include "compiler/codegen/contraction/gpu/contraction_small_gpu.h"
#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

struct EmitterRow {
  StrategyId strategy;
  GeneratedKernel (*emit)(const ContractionView&, const Choice&, const std::vector<Buffer>&, const Target&);
};

using Id = StrategyId;
constexpr EmitterRow kEmitters[] = {
    {Id::quantized_4, emit_quantized},
    {Id::quantized_8, emit_quantized},
    {Id::quantized_20, emit_quantized},
    {Id::quantized_24, emit_quantized},
    {Id::strassen, emit_strassen},
    {Id::winograd_2, emit_winograd},
    {Id::winograd_4, emit_winograd},
    {Id::amx_patches, emit_amx},
    {Id::amx_window, emit_amx},
    {Id::amx_rows, emit_amx},
    {Id::amx_limb_window, emit_amx},
    {Id::amx_limbs, emit_amx},
    {Id::amx_chunks, emit_amx_chunks},
    {Id::chunks_constant_a, emit_chunks},
    {Id::chunks, emit_chunks},
    {Id::few_rows, emit_few_rows},
    {Id::dots, emit_few_rows},
    {Id::window, emit_window},
    {Id::fma_copied_a, emit_fma},
    {Id::fma_copied_b, emit_fma},
    {Id::fma_in_place, emit_fma},
    {Id::pack_b, emit_pack_b},
    {Id::lay_out_a, emit_lay_out_a},
    {Id::small_gemm, emit_small_gemm},
    {Id::small_gemm_f16, emit_small_gemm},
    {Id::wgmma_f16, emit_gpu},
    {Id::wgmma_f16x2, emit_gpu},
    {Id::wgmma_tf32, emit_gpu},
    {Id::mma, emit_gpu},
    {Id::mma_bf16, emit_gpu},
    {Id::simt, emit_gpu},
};

}  // namespace

GeneratedKernel emit_contraction(const Kernel& kernel, const Choice& choice, const std::vector<Buffer>& buffers,
                                 const Target& target) {
  const auto* found = std::find_if(std::begin(kEmitters), std::end(kEmitters),
                                   [&](const EmitterRow& e) { return e.strategy == choice.strategy; });
  const auto view = ContractionView::of(kernel);
  OCLC_CHECK(found != std::end(kEmitters) && view, "a strategy has an emitter, and what it computes a product's form");
  return found->emit(*view, choice, buffers, target_of(kernel, target));
}

}  // namespace oclc
