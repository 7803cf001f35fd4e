#include "compiler/schedule_passes.h"

#include "compiler/codegen/contraction/cpu/contraction_quantized.h"
#include "compiler/codegen/contraction/cpu/contraction_strassen.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/codegen/launches/horizontal_fusion.h"
#include "compiler/schedule/attention.h"
#include "compiler/schedule/fuse_in_work_group.h"
#include "compiler/schedule/fuse_over_batch.h"
#include "compiler/schedule/fuse_row_tiles.h"
#include "compiler/schedule/inline_row_statistics.h"
#include "compiler/schedule/loop_kernel.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/schedule/parallel_loops.h"
#include "compiler/schedule/pool_products.h"
#include "compiler/schedule/prefetch_weights.h"
#include "compiler/schedule/ragged_groups.h"
#include "compiler/schedule/small_gemm.h"
#include "compiler/schedule/split_k.h"
#include "compiler/schedule/transpose_weights.h"

namespace oclc {
namespace {

// Loops of any length; else the iterations of all that is fused would count together.
bool loops_freely(const ScheduleContext& c) { return !c.target.counts_loops(); }
bool fuses_horizontally(const ScheduleContext& c) { return c.target.has.horizontal_fusion; }
bool claims_on_cores(const ScheduleContext& c) { return c.target.megakernel() == Megakernel::cores; }
bool has_group_templates(const ScheduleContext& c) { return c.target.has_group_templates(); }
bool is_multicore(const ScheduleContext& c) { return claims_on_cores(c) && c.target.compute_units >= 2; }
bool has_wgmma(const ScheduleContext& c) { return c.target.has.wgmma; }
bool multiplies_groups(const ScheduleContext& c) { return c.target.multiplies_groups(); }
bool rounds_in_groups(const ScheduleContext& c) { return has_wgmma(c) && c.target.precision.rounds_operands(); }
bool shares_launches(const ScheduleContext& c) { return c.target.megakernel() != Megakernel::none; }
bool rounds_on_gpu(const ScheduleContext& c) { return has_group_templates(c) && c.target.precision.rounds_operands(); }
bool multiplies_on_vectors(const ScheduleContext& c) { return c.target.has_vector_templates(); }
bool rounds_weights(const ScheduleContext& c) { return multiplies_on_vectors(c) && c.rounds_weights; }
bool multiplies_by_fma(const ScheduleContext& c) { return multiplies_on_vectors(c) && !c.target.multiplies_tiles(); }
bool has_attention(const ScheduleContext& c) { return c.target.multiplies_tiles() || c.target.multiplies_tf32_fragments(); }

using Needs = SchedulePass::Needs;

constexpr SchedulePass kSchedulePasses[] = {
    {"loop_kernel", loop_kernel, Needs::fuse, loops_freely, "",
     "takes whole loops, before passes look at the kernels of a trip"},
    {"small_gemm", small_gemm, Needs::fuse, has_wgmma, "loop_kernel", "marks products before others choose how to divide them"},
    {"split_k", split_k, Needs::fuse, loops_freely, "small_gemm", "leaves the sums of marked products whole"},
    {"pool_products", pool_products, Needs::fuse, rounds_in_groups, "split_k", "asks which products share their terms"},
    {"attention", attention, Needs::fuse, has_attention, "", "sees products and softmax while each is a kernel"},
    {"transpose_weights", transpose_weights, Needs::fuse, has_group_templates, "split_k",
     "split sums read their weights in other lines"},
    {"forward_copies", forward_copies, Needs::fuse, has_group_templates, "attention",
     "attention reads what lies side by side as it is"},
    {"inline_row_statistics", inline_row_statistics, Needs::fuse, has_group_templates, "forward_copies",
     "a sum's operands are final"},
    {"fuse_pointwise", fuse_pointwise, Needs::fuse, has_group_templates, "inline_row_statistics", "takes what no sum took"},
    {"fuse_in_work_group", fuse_in_work_group, Needs::fuse, has_group_templates, "fuse_pointwise",
     "fewer kernels make longer chains"},
    {"fuse_row_tiles", fuse_batched_row_tiles, Needs::megakernel, claims_on_cores, "attention",
     "a loop over row tiles keeps less than one over images"},
    {"fuse_over_batch", fuse_over_batch, Needs::megakernel, claims_on_cores, "fuse_row_tiles",
     "takes the kernels that tiles of rows left"},
    {"fuse_row_tiles", fuse_row_tiles, Needs::megakernel, claims_on_cores, "fuse_over_batch",
     "single images, and what no loop over images took"},
    {"pack_b", pack_b, Needs::fuse, multiplies_groups, "attention", "attention's products pack theirs"},
    {"transform_filters", transform_filters, Needs::nothing, multiplies_on_vectors, "fuse_row_tiles",
     "loops leave out the kernels that transform their weights"},
    {"quantize_weights", quantize_weights, Needs::nothing, rounds_weights, "fuse_row_tiles",
     "weights that every trip of a loop reads stay in a cache"},
    {"strassen", strassen, Needs::fuse, multiplies_by_fma, "quantize_weights",
     "takes the products whose weights keep their bits"},
    {"ragged_groups", ragged_groups, Needs::fuse, loops_freely, "strassen",
     "other passes see kernels one by one; kernels of one text are grouped before horizontal_fusion would join them"},
    {"horizontal_fusion", horizontal_fusion, Needs::fuse, fuses_horizontally, "pack_b",
     "packing is what most products wait for"},
    {"parallel_loops", parallel_loops, Needs::megakernel, is_multicore, "fuse_row_tiles",
     "leaves loops over row tiles and images alone"},
    {"megakernel", megakernel, Needs::megakernel, shares_launches, "parallel_loops",
     "all other passes have made the steps that it gathers"},
    {"prefetch_weights", prefetch_weights, Needs::fuse, rounds_on_gpu, "megakernel", "launches stand in their final order"},
};

}  // namespace

std::span<const SchedulePass> schedule_passes() { return kSchedulePasses; }

}  // namespace oclc
