#include "compiler/contraction/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/contraction/cpu/amx.h"
#include "compiler/contraction/cpu/cpu_rows.h"
#include "compiler/contraction/cpu/fma.h"
#include "compiler/contraction/cpu/winograd.h"
#include "compiler/contraction/gpu/gpu_rows.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

Planned plan_loops(const StrategyCase& c, StrategyId strategy) {
  const auto shortly = short_loops_seconds(c.problem, c.target);
  return {Choice{strategy, {}, shortly.value_or(loops_seconds(c.problem, c.target))}, {}};
}

// Orders. Asked: rows that a pass asked for. Tile units are taken where they gain over fused multiply-adds, and those of
// run-time operands behind few rows, which read B once. Chunks are taken where they gain over what reads or copies all terms.
enum Order { kAsked, kTileUnits, kReadOnce, kTileChunks, kChunks, kWindow, kAllTerms, kNoTemplate };

using Id = StrategyId;
constexpr Strategy kStrategies[] = {
    {Id::quantized_4, "contraction_quantized_cpu", "weights of 4 bits and a scale a block", TargetNeeds::cpu_vectors, kAsked,
     plan_quantized},
    {Id::quantized_8, "contraction_quantized_cpu", "weights of 8 bits and a scale a block", TargetNeeds::cpu_vectors, kAsked,
     plan_quantized},
    {Id::quantized_20, "contraction_quantized_cpu", "weights in 20 bits by blocks", TargetNeeds::cpu_vectors, kAsked,
     plan_quantized},
    {Id::quantized_24, "contraction_quantized_cpu", "weights in 24 bits by blocks", TargetNeeds::cpu_vectors, kAsked,
     plan_quantized},
    {Id::strassen, "contraction_strassen_cpu", "seven products of quadrants instead of eight", TargetNeeds::cpu_vectors, kAsked,
     plan_strassen},
    {Id::winograd_2, "contraction_winograd_cpu", "fused transforms, 2x2 outputs a tile", TargetNeeds::cpu_vectors, kAsked,
     plan_winograd},
    {Id::winograd_4, "contraction_winograd_cpu", "fused transforms, 4x4 outputs a tile", TargetNeeds::cpu_vectors, kAsked,
     plan_winograd},
    {Id::amx_patches, "contraction_patches_amx", "bfloat16 tiles on patches of few channels", TargetNeeds::amx, kTileUnits,
     plan_amx_patches},
    {Id::amx_window, "contraction_window_amx", "bfloat16 tiles on a window of the image", TargetNeeds::amx, kTileUnits,
     plan_amx_window},
    {Id::amx_rows, "contraction_amx", "bfloat16 tiles, rows split into parts for each tap", TargetNeeds::amx, kTileUnits,
     plan_amx_rows},
    {Id::amx_limb_window, "contraction_window_digits_amx", "tiles of int8 limbs on a window of the image", TargetNeeds::amx,
     kTileUnits, plan_amx_limb_window},
    {Id::amx_limbs, "contraction_digits_amx", "tiles of int8 limbs, rows for each tap", TargetNeeds::amx, kTileUnits,
     plan_amx_limbs},
    {Id::chunks_constant_a, "contraction_chunks_cpu", "A packed at compile time, B copied chunk by chunk",
     TargetNeeds::cpu_vectors, kReadOnce, plan_chunks_constant_a},
    {Id::few_rows, "contraction_rows_cpu", "B read once, row by row", TargetNeeds::cpu_vectors, kReadOnce, plan_few_rows},
    {Id::dots, "contraction_dots_cpu", "B read once, column by column", TargetNeeds::cpu_vectors, kReadOnce, plan_dots},
    {Id::amx_chunks, "contraction_chunks_amx", "bfloat16 tiles on chunks of two operands of run time", TargetNeeds::amx,
     kTileChunks, plan_amx_chunks},
    {Id::chunks, "contraction_chunks_cpu", "operands of run time copied chunk by chunk", TargetNeeds::cpu_vectors, kChunks,
     plan_chunks},
    {Id::window, "contraction_window_cpu", "a window of an image of few channels copied for all taps", TargetNeeds::cpu_vectors,
     kWindow, plan_window},
    {Id::fma_copied_a, "contraction_packed_a_cpu", "A copied whole, B in place, packed or copied", TargetNeeds::cpu_vectors,
     kAllTerms, plan_fma},
    {Id::fma_copied_b, "contraction_packed_b_cpu", "panels of B copied whole, A in place", TargetNeeds::cpu_vectors, kAllTerms,
     plan_fma},
    {Id::fma_in_place, "contraction_cpu", "A in place, B in place or packed", TargetNeeds::cpu_vectors, kAllTerms, plan_fma},
    {Id::pack_b, "", "packs the right operand of another product", TargetNeeds::wgmma, kAsked, plan_pack_b},
    {Id::lay_out_a, "", "lays out the left operand of another product", TargetNeeds::wgmma, kAsked, plan_lay_out_a},
    {Id::small_gemm, "contraction_small_gpu", "a short launch, terms shared by sub-groups", TargetNeeds::wgmma, kAsked,
     plan_small_gemm},
    {Id::small_gemm_f16, "contraction_small_gpu", "the same of operands rounded to 16 bits", TargetNeeds::wgmma, kAsked,
     plan_small_gemm},
    {Id::wgmma_f16, "contraction_f16x2_sm90a", "wgmma on operands rounded to f16, split-K among groups", TargetNeeds::wgmma,
     kTileUnits, plan_gpu},
    {Id::wgmma_f16x2, "contraction_f16x2_sm90a", "wgmma on pairs of f16, B packed", TargetNeeds::wgmma, kTileUnits, plan_gpu},
    {Id::wgmma_tf32, "contraction_sm90a", "wgmma on TF32", TargetNeeds::wgmma, kTileUnits, plan_gpu},
    {Id::mma, "contraction_mma_gpu", "mma.sync on TF32", TargetNeeds::gpu, kTileUnits, plan_gpu},
    {Id::mma_bf16, "contraction_unit_gpu", "matrix units on bfloat16 terms, or on halves", TargetNeeds::gpu, kTileUnits,
     plan_gpu},
    {Id::simt, "contraction_gpu", "fused multiply-adds of work-items", TargetNeeds::gpu, kAllTerms, plan_gpu},
    {Id::loops, "", "loops without a template", TargetNeeds::nothing, kNoTemplate, plan_loops},
};

// Why the target has no such row; empty if it has.
std::string_view refuse_target(TargetNeeds needs, const Target& target) {
  const bool cpu = target.items_are_cores();
  if (needs == TargetNeeds::nothing) return {};
  if (target.counts_loops()) return "the target counts loop iterations";
  if (cpu != (needs == TargetNeeds::cpu_vectors || needs == TargetNeeds::amx)) return cpu ? "needs a GPU" : "needs a CPU";
  if (needs == TargetNeeds::wgmma && !target.has.wgmma) return "needs matrix units that read local memory";
  if (cpu && !target.has_vector_templates()) return "needs vectors of four floats";
  if (needs == TargetNeeds::amx && !target.multiplies_tiles()) return "needs tile units that the contract of precision allows";
  return {};
}

std::string text_of(const ContractionTiles& t) {
  return fmt::format("tile {} x {}, {} x {} tiles a group", t.rows, t.vectors, t.row_tiles, t.panels);
}

struct TilesText {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(const FmaTiles& t) const {
    return fmt::format("{}{}{}", text_of(t.tiles), t.row_lanes > 0 ? ", by rows" : "",
                       t.copies_panels ? ", panels copied" : "");
  }
  std::string operator()(const ChunkTiles& t) const {
    return fmt::format("tile {} x {}, {} x {} tiles a group, {} terms of {} taps at a time", t.rows, t.vectors, t.row_tiles,
                       t.panels, t.terms, t.taps);
  }
  std::string operator()(const FewRowsTiles& t) const {
    return fmt::format("tile {} x {}, {} columns a group", t.rows, t.vectors, t.strip);
  }
  std::string operator()(const WindowTiles& t) const {
    return fmt::format("tile {} x {}, {} rows of the image a group", t.pixels, t.vectors, t.rows);
  }
  std::string operator()(const WinogradTiles& t) const {
    return fmt::format("tile {} x {}, {} tiles by {} panels a group", t.rows, t.vectors, t.tiles, t.panels);
  }
  std::string operator()(const StrassenTiles& t) const {
    return fmt::format("tile {} x {} of pairs, {} x {} tiles a group, {} pairs of terms at a time", t.rows, t.vectors,
                       t.row_tiles, t.panels, t.terms);
  }
  std::string operator()(const QuantizedTiles& t) const {
    return fmt::format("{} bits, {} panels of {} vectors a group", t.bits, t.panels, t.vectors);
  }
  std::string operator()(const AmxTiles& t) const {
    return fmt::format("{} x {} blocks a group, {} steps at a time", t.row_blocks, t.panels, t.chunk);
  }
  std::string operator()(const AmxWindowTiles& t) const {
    return fmt::format("{} rows by {} panels a group, {} taps at a time", t.rows, t.panels, t.taps_at_once);
  }
  std::string operator()(const AmxPairTiles& t) const {
    return fmt::format("{} x {} blocks a group, {} steps at a time", t.row_blocks, t.panels, t.chunk);
  }
  std::string operator()(const GpuChoice& g) const {
    return g.sm90a ? fmt::format("tile {} x {}, elsewhere {} x {}", g.sm90a->tile_rows(), g.sm90a->columns, g.tiles.rows,
                                 g.tiles.columns)
                   : fmt::format("tile {} x {} x {}, {} x {} a work-item", g.tiles.rows, g.tiles.columns, g.tiles.depth,
                                 g.tiles.item_rows, g.tiles.item_columns);
  }
  std::string operator()(const ShortTiles& t) const {
    return fmt::format("tile {} x {}, {} sub-groups share its terms", t.rows, t.columns, t.sharers);
  }
};

bool is_better(const Candidate& a, const Candidate& b) {
  if (!a.choice || !b.choice) return a.choice.has_value() && !b.choice.has_value();
  if (a.is_taken() != b.is_taken()) return a.is_taken();
  if (!a.is_taken()) return a.choice->seconds < b.choice->seconds;
  if (a.strategy->order != b.strategy->order) return a.strategy->order < b.strategy->order;
  return a.choice->seconds < b.choice->seconds;
}

}  // namespace

std::string Choice::text() const {
  const std::string of_tiles = std::visit(TilesText{}, tiles);
  return fmt::format("{}{}{}", name_of(strategy), of_tiles.empty() ? "" : ": ", of_tiles);
}

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& row_of(StrategyId strategy) {
  const auto* found =
      std::find_if(std::begin(kStrategies), std::end(kStrategies), [&](const Strategy& s) { return s.id == strategy; });
  OCLC_CHECK(found != std::end(kStrategies), "a strategy without a row");
  return *found;
}

std::vector<Candidate> rank(const Problem& problem, const Target& target, Losers losers) {
  StrategyCase c{problem, target, losers, {}, {}, {}};
  if (refuse_target(TargetNeeds::cpu_vectors, target).empty()) {
    c.fma = choose_fma(problem, target);
    if (!asks_for_winograd(problem)) c.amx = amx_estimates(problem, target);
    if (c.amx) c.amx->fma_seconds = seconds_without_tiles(c, c.amx->fma_seconds);
  }
  if (refuse_target(TargetNeeds::gpu, target).empty()) c.gpu = gpu_forms(problem, target, losers);
  std::vector<Candidate> all;
  for (const Strategy& row : kStrategies) {
    const std::string_view missing = refuse_target(row.needs, target);
    Planned plan = missing.empty() ? row.plan(c, row.id) : Planned{{}, missing};
    if (losers == Losers::refused && !plan.why_not.empty()) plan.choice.reset();
    all.push_back({&row, std::move(plan.choice), std::string(plan.why_not), std::move(plan.others)});
  }
  std::stable_sort(all.begin(), all.end(), is_better);
  return all;
}

}  // namespace oclc
