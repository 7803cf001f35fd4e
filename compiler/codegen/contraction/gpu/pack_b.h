// Right operands that are packed when the plan runs, for products on matrix units: see templates/contraction_f16x2_sm90a.cl.
// Without it, training and products of two inputs multiply in TF32 parts, at half the rate.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"
#include "compiler/codegen/contraction/gpu/pack_f16.h"
#include "compiler/contraction/gpu/sm90a_tiles.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// The product of a kernel as the tiles' estimates want it.
GpuProduct product_of(const ContractionView& view);
// True if A's elements lie in memory as the template copies them.
bool copies_a(const GpuLoad& a);
// Elements from row to row of a left operand that is laid out: whole vectors.
std::int64_t row_pitch(const ContractionView& view);
// The tiles of a product whose B would be packed when the plan runs.
std::optional<Sm90aTiles> packed_tiles(const ContractionView& view, const Target& target);
// How such tiles want B, all of whose extents are numbers.
HalvesLayout halves_layout(const ContractionView& view, const Sm90aTiles& tiles, const Target& target);
// Whether the code of the choice packs a constant B into halves as it is generated, which takes time for many weights.
bool packs_halves(const ContractionView& view, const Choice& choice, const Target& target);

// Puts a kernel that packs the right operand before each contraction outside of loops that saves time by it. The contraction
// reads the images through an operand named kImages; the packing kernel has the same name, "_pack" behind it, and the strategy
// pack_b.
void pack_b(Schedule& schedule, const ScheduleContext& context);
// Where the left operand does not lie as it is copied, a kernel of the strategy lay_out_a writes its rows before that.
inline constexpr std::string_view kImages = "images";
// The operand of a contraction that has the images of its B; -1 if there is none.
int images_of(const Kernel& kernel);

// Code for kernels of the strategies pack_b and lay_out_a.
GeneratedKernel emit_pack_b(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                            const Target& target);
GeneratedKernel emit_lay_out_a(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                               const Target& target);

}  // namespace oclc
