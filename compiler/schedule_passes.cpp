#include "compiler/schedule_passes.h"

#include "compiler/codegen/contraction/cpu/contraction_short.h"
#include "compiler/codegen/contraction/cpu/contraction_strassen.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/gpu/packed_right.h"
#include "compiler/codegen/launches/side_by_side.h"
#include "compiler/schedule/attention.h"
#include "compiler/schedule/chains.h"
#include "compiler/schedule/images.h"
#include "compiler/schedule/join_rows.h"
#include "compiler/schedule/loops_apart.h"
#include "compiler/schedule/persistent.h"
#include "compiler/schedule/pool_products.h"
#include "compiler/schedule/prefetch_weights.h"
#include "compiler/schedule/resident.h"
#include "compiler/schedule/short_products.h"
#include "compiler/schedule/split_sums.h"
#include "compiler/schedule/stripes.h"
#include "compiler/schedule/turn_weights.h"

namespace oclc {
namespace {

// Loops of any length; else the iterations of all that is fused would count together.
bool loops_freely(const ScheduleContext& c) { return !c.target.counts_loops(); }
bool is_cpu(const ScheduleContext& c) { return c.target.items_are_cores(); }
bool is_gpu(const ScheduleContext& c) { return !c.target.items_are_cores(); }
bool claims_on_cores(const ScheduleContext& c) { return c.target.megakernel() == Megakernel::cores; }
bool has_group_templates(const ScheduleContext& c) { return c.target.has_group_templates(); }
bool is_multicore(const ScheduleContext& c) { return claims_on_cores(c) && c.target.compute_units >= 2; }
bool has_wgmma(const ScheduleContext& c) { return c.target.has.wgmma; }
bool multiplies_groups(const ScheduleContext& c) { return c.target.multiplies_groups(); }
bool rounds_in_groups(const ScheduleContext& c) { return has_wgmma(c) && c.target.precision.products == Products::rounded; }
bool shares_launches(const ScheduleContext& c) { return c.target.megakernel() != Megakernel::none; }
bool rounds_on_gpu(const ScheduleContext& c) {
  return has_group_templates(c) && c.target.precision.products == Products::rounded;
}
bool multiplies_on_vectors(const ScheduleContext& c) { return c.target.has_vector_templates(); }
bool rounds_weights(const ScheduleContext& c) { return multiplies_on_vectors(c) && c.rounds_weights; }
bool multiplies_by_fma(const ScheduleContext& c) { return multiplies_on_vectors(c) && !c.target.multiplies_tiles(); }
bool has_attention(const ScheduleContext& c) { return c.target.multiplies_tiles() || c.target.multiplies_tf32_fragments(); }

using Needs = SchedulePass::Needs;

constexpr SchedulePass kSchedulePasses[] = {
    {"persistent", persistent, Needs::fuse, loops_freely, "", "takes whole loops, before passes look at the kernels of a trip"},
    {"short_products", short_products, Needs::fuse, has_wgmma, "persistent",
     "marks products before others choose how to divide them"},
    {"split_sums", split_sums, Needs::fuse, loops_freely, "short_products", "leaves the sums of marked products whole"},
    {"pool_products", pool_products, Needs::fuse, rounds_in_groups, "split_sums", "asks which products share their terms"},
    {"attention", attention, Needs::fuse, has_attention, "", "sees products and softmax while each is a kernel"},
    {"turn_weights", turn_weights, Needs::fuse, has_group_templates, "split_sums",
     "split sums read their weights in other lines"},
    {"read_through", read_through, Needs::fuse, has_group_templates, "attention",
     "attention reads what lies side by side as it is"},
    {"join_rows", join_rows, Needs::fuse, has_group_templates, "read_through", "a sum's operands are final"},
    {"join_pointwise", join_pointwise, Needs::fuse, has_group_templates, "join_rows", "takes what no sum took"},
    {"chains", chains, Needs::fuse, has_group_templates, "join_pointwise", "fewer kernels make longer chains"},
    {"stripes", batched_stripes, Needs::resident, claims_on_cores, "attention",
     "a loop over stripes keeps less than one over images"},
    {"images", images, Needs::resident, claims_on_cores, "stripes", "takes the kernels that stripes left"},
    {"stripes", stripes, Needs::resident, claims_on_cores, "images", "single images, and what no loop over images took"},
    {"pack_right_operands", pack_right_operands, Needs::fuse, multiplies_groups, "attention",
     "attention's products pack theirs"},
    {"transform_filters", transform_filters, Needs::nothing, is_cpu, "stripes",
     "loops leave out the kernels that transform their weights"},
    {"shorten_weights", shorten_weights, Needs::nothing, rounds_weights, "stripes",
     "weights that every trip of a loop reads stay in a cache"},
    {"multiply_halves", multiply_halves, Needs::fuse, multiplies_by_fma, "shorten_weights",
     "takes the products whose weights keep their bits"},
    {"side_by_side", side_by_side, Needs::fuse, is_gpu, "pack_right_operands", "packing is what most products wait for"},
    {"loops_apart", loops_apart, Needs::resident, is_multicore, "stripes", "leaves loops over stripes and images alone"},
    {"resident", resident, Needs::resident, shares_launches, "loops_apart",
     "all other passes have made the steps that it gathers"},
    {"prefetch_weights", prefetch_weights, Needs::fuse, rounds_on_gpu, "resident", "launches stand in their final order"},
};

}  // namespace

std::span<const SchedulePass> schedule_passes() { return kSchedulePasses; }

}  // namespace oclc
