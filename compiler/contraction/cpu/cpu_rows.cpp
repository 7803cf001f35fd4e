#include "compiler/contraction/cpu/cpu_rows.h"

#include "compiler/contraction/cpu/amx.h"
#include "compiler/contraction/cpu/chunks.h"
#include "compiler/contraction/cpu/few_rows.h"
#include "compiler/contraction/cpu/fma.h"
#include "compiler/contraction/cpu/quantized.h"
#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/contraction/cpu/strassen.h"
#include "compiler/contraction/cpu/window.h"
#include "compiler/contraction/cpu/winograd.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::string_view kNotAsked = "no pass asks for it: its rounding takes a share of the network's",
                           kAsksWinograd = "a pass asks for Winograd's transforms",
                           kNoConstant = "B is not a constant whose elements lie at known strides",
                           kFmaAsFast = "fused multiply-adds are as fast by estimate";

// Fewer rows leave a register tile partly empty.
constexpr std::int64_t kFewestRowsOfTile = 4;

bool plans_losers(const StrategyCase& c) { return c.losers == Losers::planned; }

Planned refused(std::string_view why_not) { return {std::nullopt, why_not, {}}; }

// A choice, which loses if `why_not` says so.
template <class Tiles>
Planned planned(StrategyId strategy, Tiles tiles, double seconds, std::string_view why_not = {}) {
  return {Choice{strategy, std::move(tiles), seconds}, why_not, {}};
}

// Seconds of `items` work-items of `tiles` register tiles each.
double seconds_of_items(const StrategyCase& c, std::int64_t items, std::int64_t tiles, int rows, int vectors) {
  const double tile = static_cast<double>(c.problem.depth()) * tile_step_cycles(rows, vectors) + cost::kTileCycles +
                      cost::kResultVectorCycles * rows * vectors;
  return static_cast<double>(ceil_div(items, std::int64_t{c.target.compute_units})) *
         (static_cast<double>(tiles) * tile + cost::kItemCycles) / cycles_per_second(c.target);
}

// Of copies of operands: of A in every block of panels, of B in every panel.
double copy_seconds(const StrategyCase& c, const FmaTiles& t) {
  const Problem& p = c.problem;
  const auto terms = static_cast<double>(p.g.typical * p.depth());
  double cycles = 0;
  if (t.local_copy == LocalCopy::a) {
    const std::int64_t blocks = ceil_div(ceil_div(p.n.typical, t.panel_width), t.tiles.panels);
    cycles += terms * static_cast<double>(p.m.typical * blocks) *
              (gathers_a(p, t, c.target) ? cost::kGatheredElementCycles : copy_cycles(p.a) / c.target.vector_width);
  }
  if (t.local_copy == LocalCopy::b || t.copies_panels)
    cycles += terms * static_cast<double>(p.n.typical) *
              (p.b.unit_columns ? cost::kPanelCopyCycles / c.target.vector_width : cost::kFarElementCycles);
  return cycles / (cycles_per_second(c.target) * std::max(1, c.target.compute_units));
}

// Of work-items that multiply, and of their copies.
double fma_seconds_of(const StrategyCase& c, const FmaTiles& t) {
  const Problem& p = c.problem;
  const std::int64_t panels = ceil_div(p.n.typical, t.panel_width),
                     panels_of_item = t.local_copy == LocalCopy::b ? 1 : t.tiles.panels,
                     items = p.g.typical * ceil_div(ceil_div(p.m.typical, std::int64_t{t.tiles.rows}), t.tiles.row_tiles) *
                             ceil_div(panels, panels_of_item);
  return seconds_of_items(c, items, t.tiles.row_tiles * panels_of_item, t.tiles.rows, t.tiles.vectors) + copy_seconds(c, t);
}

// What loops do without: the copy of an operand element by element, for few rows that meet it or across rows of the image.
bool loops_gain(const StrategyCase& c, const FmaTiles& t, double fma_seconds) {
  const Problem& p = c.problem;
  const bool far_b = t.local_copy == LocalCopy::b && !p.b.unit_columns && p.m.typical < kFewestRowsOfTile;
  return (far_b || gathers_a(p, t, c.target)) && loops_are_vectors(p) && loops_seconds(p, c.target) < fma_seconds;
}

double few_rows_seconds(const StrategyCase& c, const FewRowsTiles& t, std::int64_t columns_of_tile) {
  const Problem& p = c.problem;
  return seconds_of_items(c, p.g.typical * ceil_div(p.n.typical, t.strip),
                          ceil_div(p.m.typical, std::int64_t{t.rows}) * ceil_div(t.strip, columns_of_tile), t.rows, t.vectors);
}

// Of B that is copied whole otherwise, panel by panel, by estimate.
std::optional<TimedChunks> chunks_beside_panels(const StrategyCase& c) {
  const Problem& p = c.problem;
  if (!c.fma || c.fma->local_copy != LocalCopy::b || p.m.typical < kFewestRowsOfTile) return std::nullopt;
  const auto chunks = choose_chunks(p, std::nullopt, c.target, true);
  const bool gain = chunks && chunks->cycles / cycles_per_second(c.target) < cost::kChunkGain * fma_seconds_of(c, *c.fma);
  return gain ? chunks : std::nullopt;
}

template <class Tiles>
Planned planned_parts(const StrategyCase& c, StrategyId strategy, const std::optional<Tiles>& tiles,
                      std::string_view no_tiles) {
  const StrategyCase::Amx& e = *c.amx;
  if (!tiles) return refused(no_tiles);
  const double seconds = tiles->seconds + e.parts_unhidden;
  return planned(strategy, *tiles, seconds, tiles_gain(tiles->seconds, e.fma_seconds, c.target) ? "" : kFmaAsFast);
}

template <class Tiles>
Planned planned_limbs(const StrategyCase& c, StrategyId strategy, const std::optional<Tiles>& tiles,
                      std::string_view no_tiles) {
  const StrategyCase::Amx& e = *c.amx;
  if (!tiles) return refused(no_tiles);
  const std::string_view loses = !(e.limbs_seconds < e.parts_seconds) ? "products of bfloat16 parts are as fast by estimate"
                                 : !(e.limbs_seconds - e.limbs_unhidden < e.fma_seconds) ? kFmaAsFast
                                                                                         : "";
  return planned(strategy, *tiles, tiles->seconds + e.limbs_unhidden, loses);
}

// Why no product with a constant right operand is computed on tile units; empty if one may be.
std::string_view refuse_amx(const StrategyCase& c) {
  if (asks_for_winograd(c.problem)) return kAsksWinograd;
  return c.amx ? std::string_view() : kNoConstant;
}

constexpr std::string_view kNoWindow = "no window of 16 channels or more that fits local memory",
                           kNoPatches = "no window of few channels that fits local memory",
                           kNoAmxTiles = "no tiles fit local memory",
                           kNoLimbs = "sums of int8 limbs are too long, or the contract asks for none";

}  // namespace

bool gathers_a(const Problem& p, const FmaTiles& t, const Target& target) {
  return t.local_copy == LocalCopy::a && t.row_lanes == 0 && !p.a.of_terms.takes(target.vector_width);
}

bool loops_are_vectors(const Problem& p) { return p.taps == 1 && !p.a.guarded && !p.b.guarded; }

double loops_seconds(const Problem& p, const Target& target) {
  const auto results = static_cast<double>(p.g.typical * p.m.typical * p.n.typical);
  const double flops = 2 * results * static_cast<double>(p.depth());
  if (!loops_are_vectors(p)) return flops / (cost::kGuardedLoopShare * target.flops);
  return flops / (cost::kContractionLoopShare * target.flops) +
         results * cost::kLoopResultCycles / (cycles_per_second(target) * std::max(1, target.compute_units));
}

double seconds_without_tiles(const StrategyCase& c, double fma_seconds) {
  if (!c.fma || !gathers_a(c.problem, *c.fma, c.target)) return fma_seconds;
  const double gathered = fma_seconds + copy_seconds(c, *c.fma);
  return loops_are_vectors(c.problem) ? std::min(gathered, loops_seconds(c.problem, c.target)) : gathered;
}

Planned plan_winograd(const StrategyCase& c, StrategyId strategy) {
  const Problem& p = c.problem;
  if (p.asked != strategy) return refused(kNotAsked);
  if (!c.fma || (!p.b.constant && !p.b.filters_given))
    return refused("the filters are neither constant nor transformed before");
  const auto tiles = choose_winograd(p, c.target);
  if (!tiles) return refused("no image of floats with channels as neighbours that fill whole vectors");
  return planned(strategy, *tiles, tiles->cycles / cycles_per_second(c.target));
}

Planned plan_quantized(const StrategyCase& c, StrategyId strategy) {
  if (c.problem.asked != strategy) return refused(kNotAsked);
  if (!can_quantize(c.problem, c.fma)) return refused("no few rows beside constant weights of floats");
  const int bits = quantized_bits(strategy);
  return planned(strategy, choose_quantized(c.problem, bits, c.target), quantized_seconds(c.problem, bits, c.target));
}

Planned plan_strassen(const StrategyCase& c, StrategyId strategy) {
  if (c.problem.asked != strategy) return refused(kNotAsked);
  const auto shape = strassen_shape(c.problem, c.target);
  const auto tiles = shape ? choose_strassen_tiles(*shape, c.target) : std::nullopt;
  if (!tiles) return refused("no chunks of whole vectors on both sides");
  return planned(strategy, *tiles, tiles->cycles / cycles_per_second(c.target));
}

Planned plan_amx_rows(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_amx(c); !why.empty()) return refused(why);
  return planned_parts(c, strategy, c.amx->rows, kNoAmxTiles);
}

Planned plan_amx_window(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_amx(c); !why.empty()) return refused(why);
  return planned_parts(c, strategy, c.amx->window, kNoWindow);
}

Planned plan_amx_patches(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_amx(c); !why.empty()) return refused(why);
  return planned_parts(c, strategy, c.amx->patches, kNoPatches);
}

Planned plan_amx_limbs(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_amx(c); !why.empty()) return refused(why);
  return planned_limbs(c, strategy, c.amx->limbs, kNoLimbs);
}

Planned plan_amx_limb_window(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_amx(c); !why.empty()) return refused(why);
  return planned_limbs(c, strategy, c.amx->limb_window, kNoLimbs);
}

Planned plan_amx_chunks(const StrategyCase& c, StrategyId strategy) {
  if (c.fma && c.problem.b.constant) return refused("B is a constant, which is packed");
  const auto product = amx_pair_product(c.problem);
  if (!product) return refused("no vectors of 16 copy both operands");
  const auto tiles = choose_amx_pair(*product, c.target);
  if (!tiles) return refused(kNoAmxTiles);
  return planned(strategy, *tiles, tiles->seconds,
                 tiles_gain(tiles->seconds, fma_pair_seconds(*product, c.target), c.target) ? "" : kFmaAsFast);
}

Planned plan_chunks_constant_a(const StrategyCase& c, StrategyId strategy) {
  const Problem& p = c.problem;
  const std::string_view tall = c.target.has.tall_tiles ? "measured on low tiles alone" : "";
  if (!tall.empty() && !plans_losers(c)) return refused(tall);
  if (!p.a.constant || p.taps != 1 || p.a.stored != DType::f32 || !p.m.known || !p.k.known)
    return refused("A is not a constant of floats whose elements lie at known strides");
  constexpr std::string_view few = "few rows, columns or terms, or B's columns are no vectors";
  const auto enough = choose_chunks_beside_panels(p, c.target),
             chunks = enough || !plans_losers(c) ? enough : choose_chunks_beside_panels(p, c.target, true);
  if (!chunks) return refused(few);
  return planned(strategy, chunks->tiles, chunks->cycles / cycles_per_second(c.target), !enough ? few : tall);
}

Planned plan_chunks(const StrategyCase& c, StrategyId strategy) {
  if (c.fma && c.problem.b.constant) return refused("B is a constant, which is packed");
  constexpr std::string_view loses = "few rows, columns or terms, or what reads or copies all terms is as fast";
  auto gaining = choose_chunks(c.problem, c.fma, c.target);
  if (!gaining) gaining = chunks_beside_panels(c);
  const auto chunks = gaining || !plans_losers(c) ? gaining : choose_chunks(c.problem, std::nullopt, c.target, true);
  if (!chunks) return refused(loses);
  return planned(strategy, chunks->tiles, chunks->cycles / cycles_per_second(c.target), gaining ? "" : loses);
}

Planned plan_few_rows(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_few_rows(c.problem); !why.empty()) return refused(why);
  const std::string_view few = few_rows_lose(c.problem), small = "B is small, or its columns are no neighbours";
  if (!few.empty() && !plans_losers(c)) return refused(few);
  const auto large = choose_rows(c.problem, c.target),
             tiles = large || !plans_losers(c) ? large : choose_rows(c.problem, c.target, true);
  if (!tiles) return refused(small);
  return planned(strategy, *tiles, few_rows_seconds(c, *tiles, std::int64_t{tiles->vectors} * c.target.vector_width),
                 large ? few : small);
}

Planned plan_dots(const StrategyCase& c, StrategyId strategy) {
  if (const auto why = refuse_few_rows(c.problem); !why.empty()) return refused(why);
  const std::string_view few = few_rows_lose(c.problem), small = "B is small, or its terms are no neighbours in whole vectors";
  if (!few.empty() && !plans_losers(c)) return refused(few);
  const auto large = choose_dots(c.problem, c.target),
             tiles = large || !plans_losers(c) ? large : choose_dots(c.problem, c.target, true);
  if (!tiles) return refused(small);
  return planned(strategy, *tiles, few_rows_seconds(c, *tiles, tiles->vectors) / c.target.vector_width, large ? few : small);
}

Planned plan_window(const StrategyCase& c, StrategyId strategy) {
  const Problem& p = c.problem;
  if (!c.fma) return refused("the weights are neither packed nor read in place");
  if (const auto why = refuse_window(p); !why.empty()) return refused(why);
  const std::string_view many = p.k.typical > kMostWindowChannels ? "many channels" : "";
  if (!many.empty() && !plans_losers(c)) return refused(many);
  const auto tiles = choose_window(p, c.target);
  if (!tiles) return refused("the window fills the first-level cache, or columns fill no panels");
  const std::int64_t columns = ceil_div(p.n.typical, std::int64_t{tiles->vectors} * c.target.vector_width);
  return planned(
      strategy, *tiles,
      seconds_of_items(c, p.window->images * ceil_div(p.window->y.outputs, tiles->rows),
                       tiles->rows * ceil_div(p.window->x.outputs, tiles->pixels) * columns, tiles->pixels, tiles->vectors),
      many);
}

Planned plan_fma(const StrategyCase& c, StrategyId strategy) {
  const LocalCopy copy = strategy == StrategyId::fma_copied_a   ? LocalCopy::a
                         : strategy == StrategyId::fma_copied_b ? LocalCopy::b
                                                                : LocalCopy::none;
  if (!c.fma) return refused("the operands are neither read in place nor copied whole");
  const bool is_best = c.fma->local_copy == copy;
  constexpr std::string_view loses = "the operands are better read or copied otherwise";
  if (!is_best && !plans_losers(c)) return refused(loses);
  const auto tiles = is_best ? c.fma : choose_fma(c.problem, c.target, copy);
  if (!tiles) return refused("the operands cannot be read or copied so");
  const double seconds = fma_seconds_of(c, *tiles);
  return planned(strategy, *tiles, seconds,
                 !is_best                         ? loses
                 : loops_gain(c, *tiles, seconds) ? "loops without a template are faster by estimate"
                                                  : std::string_view());
}

}  // namespace oclc
