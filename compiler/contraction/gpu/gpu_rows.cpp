#include "compiler/contraction/gpu/gpu_rows.h"

#include <algorithm>
#include <tuple>

#include "compiler/contraction/gpu/small_gemm.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::string_view kNotForAnother = "not a kernel that prepares an operand for another";
// Terms of a step on a matrix unit, bits of a mask, taps of a line that share rows.
constexpr std::int64_t kMatrixDepth = 32, kMaskedTaps = 32, kLongestLine = 7;
// Terms of a step of tiles without them, and of the longest sum whose costs as a short product were measured.
constexpr std::int64_t kShortStepTerms = 16, kLongestShortSum = 256;

// Rows that are the same for all terms of a tap, with whole steps in each.
bool can_round_ahead(const Problem& p, const Target& target) {
  const Loads& a = p.a.loads;
  if (!target.precision.rounds_operands() || a.width == 1 || !a.along_k) return false;
  const bool is_flat = p.taps > 1 && p.k.known && p.k.typical % kMatrixDepth != 0;
  return !is_flat && (!a.splits ? !a.has_edges : a.edges_of_taps && p.taps <= kMaskedTaps);
}

// Taps of a line that share rows, unless those that fill up lines are too many, or a group has so few terms that it has no
// line.
std::int64_t taps_of_line(const Problem& p, std::int64_t terms) {
  const std::int64_t line = p.a.loads.line, rows = p.line_rows;
  if (line == 1) return 1;
  const bool is_worth_it = line <= kLongestLine && (rows + line - 1) * 7 <= rows * 8 && line * kMatrixDepth <= terms;
  return is_worth_it ? line : 1;
}

std::optional<std::int64_t> rows_with(const Problem& p, std::int64_t more_positions) {
  if (!p.m.known) return std::nullopt;
  return more_positions == 0 ? p.m.typical : p.m.typical / p.line_rows * (p.line_rows + more_positions);
}

StrategyId strategy_of(const GpuChoice& g, const Target& target) {
  if (!g.sm90a && !uses_matrix_unit(g.tiles, target)) return StrategyId::simt;
  if (!g.sm90a) return target.multiplies_tf32_fragments() ? StrategyId::mma : StrategyId::mma_bf16;
  if (!g.sm90a->halves) return StrategyId::wgmma_tf32;
  return target.precision.splits_operands() ? StrategyId::wgmma_f16x2 : StrategyId::wgmma_f16;
}

GpuChoice choose_gpu(const Problem& p, const Target& target) {
  GpuChoice g;
  g.products = target.precision.products;
  g.tiles = choose_gpu_tiles(p.product, target);
  // Elements that are loaded one by one come too slowly for matrix units.
  const Loads &a = p.a.loads, &b = p.b.loads;
  const bool loads_vectors = a.width > 1 && (b.width > 1 || p.b.constant);
  const bool scaled = p.b.packed_at_run_time, packed = scaled || (a.is_copied && p.b.constant && p.b.stored == DType::f32);
  const GpuProduct product = p.product.with([&](GpuProduct& q) { q.scaled_steps = scaled, q.is_packed = packed; });
  // Work-items that load alone keep up with the others where what they round is used for several taps, or there is little of
  // it.
  const std::int64_t taps = taps_of_line(p, product.depth / p.shares);
  const bool rounds_ahead = packed && !scaled && can_round_ahead(p, target) && (taps > 1 || p.shares > 1);
  const GpuProduct shared = product.shared_by(rounds_ahead ? p.shares : 1);
  if ((loads_vectors || packed) && target.precision.products != Products::fma)
    g.sm90a = choose_sm90a_tiles(shared, shared.groups == product.groups ? g.tiles : choose_gpu_tiles(shared, target), target);
  if (g.sm90a && rounds_ahead) g.sm90a = rounded_ahead(*g.sm90a, taps, product, rows_with(p, taps > 1 ? taps - 1 : 0), target);
  // Its shares alone compare the results of windows.
  if (p.pools && g.sm90a && !(g.sm90a->line > 0 && p.shares > 1)) g.sm90a.reset();
  g.seconds = g.sm90a ? sm90a_seconds(shared, *g.sm90a, target) : gpu_product_seconds(product, g.tiles, target);
  if (g.sm90a) g.tiles = g.sm90a->portable;
  return g;
}

Target with_products(const Target& target, Products products) {
  Target other = target;
  other.precision.products = products;
  return other;
}

GpuForm form_of(GpuChoice choice, const Target& target) {
  const StrategyId strategy = strategy_of(choice, target);
  return {strategy, std::move(choice)};
}

// Launches that read what another kernel rounds or packs for them, or that share sums, have the contract's products.
bool may_be_more_exact(const Problem& p, const Target& target) {
  return target.precision.rounds_operands() && !p.b.packed_at_run_time && !p.pools && p.shares == 1;
}

// No other kernel counts on its tiles.
bool may_be_loops(const Problem& p) { return !p.pools && !p.is_part && p.shares == 1 && !p.b.packed_at_run_time; }

// All tiles of sm_90a's units for a product, and those of other units and of none.
void add_losers(const Problem& p, const Target& target, std::vector<GpuForm>& forms) {
  const GpuChoice best = choose_gpu(p, target);
  const Loads &a = p.a.loads, &b = p.b.loads;
  const bool packed = a.is_copied && p.b.constant && p.b.stored == DType::f32,
             loads_vectors = a.width > 1 && (b.width > 1 || p.b.constant);
  const auto add = [&](GpuChoice choice) { forms.push_back(form_of(std::move(choice), target)); };
  if (target.multiplies_groups() && (packed || loads_vectors) && !(best.sm90a && best.sm90a->line > 0)) {
    const GpuProduct product = p.product.with([&](GpuProduct& q) { q.is_packed = packed; });
    for (const Sm90aTiles& tiles : sm90a_candidates(product, target)) {
      GpuChoice other = best;
      other.sm90a = tiles;
      other.tiles = tiles.portable;
      other.seconds = sm90a_seconds(product, tiles, target);
      add(other);
    }
  }
  for (const Products products : {target.precision.products, Products::fma}) {
    GpuChoice other;
    other.products = products;
    const Target on = with_products(target, products);
    other.tiles = choose_gpu_tiles(p.product, on);
    other.seconds = gpu_product_seconds(p.product, other.tiles, on);
    forms.push_back(form_of(std::move(other), on));
  }
}

bool is_same(const GpuChoice& a, const GpuChoice& b) {
  const auto numbers = [](const GpuChoice& g) {
    return std::tuple(g.products, g.tiles.rows, g.tiles.columns, g.tiles.depth, g.sm90a.has_value(),
                      g.sm90a ? std::tuple(g.sm90a->halves, g.sm90a->warpgroups, g.sm90a->rows, g.sm90a->columns)
                              : std::tuple(false, 0, 0, 0));
  };
  return numbers(a) == numbers(b);
}

}  // namespace

std::optional<double> short_loops_seconds(const Problem& p, const Target& target) {
  if (!target.has.wgmma || p.b.constant || !p.b.unit_columns || p.a.loads.has_edges || p.b.loads.has_edges || p.taps != 1 ||
      !p.k.known || p.k.typical > kLongestShortSum)
    return std::nullopt;
  const auto terms = static_cast<double>(p.k.typical);
  const double flops = 2.0 * terms * static_cast<double>(p.g.typical * p.m.typical * p.n.typical);
  return cost::kShortLoopsStartSeconds + terms * cost::kShortLoopsTermSeconds + flops / (cost::kShortLoopsShare * target.flops);
}

std::vector<GpuForm> gpu_forms(const Problem& p, const Target& target, Losers losers) {
  std::vector<GpuForm> forms{form_of(choose_gpu(p, target), target)};
  const bool more_exact = may_be_more_exact(p, target);
  const Target exact = with_products(target, Products::split);
  if (more_exact) {
    GpuForm other = form_of(choose_gpu(p, exact), exact);
    // The estimate of rounded operands counts the stores of results.
    if (other.choice.sm90a) other.choice.seconds += sm90a_store_seconds(p.product, *other.choice.sm90a, target);
    const bool gains = other.choice.seconds < cost::kExactGain * forms[0].choice.seconds;
    forms.insert(gains ? forms.begin() : forms.end(), std::move(other));
  }
  if (losers == Losers::refused || p.pools || p.shares > 1 || p.b.packed_at_run_time) return forms;
  add_losers(p, target, forms);
  if (more_exact) add_losers(p, exact, forms);
  std::stable_sort(forms.begin() + 1, forms.end(),
                   [](const GpuForm& a, const GpuForm& b) { return a.choice.seconds < b.choice.seconds; });
  std::vector<GpuForm> apart;
  for (GpuForm& form : forms)
    if (std::none_of(apart.begin(), apart.end(), [&](const GpuForm& f) { return is_same(f.choice, form.choice); }))
      apart.push_back(std::move(form));
  return apart;
}

Planned plan_gpu(const StrategyCase& c, StrategyId strategy) {
  Planned plan;
  const Problem& p = c.problem;
  if (const auto loops = short_loops_seconds(p, c.target); loops && may_be_loops(p)) {
    const auto steps = static_cast<double>(ceil_div(p.k.typical, kShortStepTerms));
    const double tiles =
        std::max(c.gpu[0].choice.seconds, cost::kShortTilesStartSeconds + steps * cost::kShortTilesStepSeconds);
    if (*loops < tiles) plan.why_not = "loops without a template are faster by estimate";
  }
  if (plan.why_not.empty())
    plan.why_not = c.gpu[0].strategy == strategy ? "" : "the tiles of least estimated time are another row's";
  for (const GpuForm& form : c.gpu) {
    if (form.strategy != strategy) continue;
    Choice choice{strategy, form.choice, form.choice.seconds};
    if (plan.choice)
      plan.others.push_back(std::move(choice));
    else
      plan.choice = std::move(choice);
  }
  return plan;
}

Planned plan_small_gemm(const StrategyCase& c, StrategyId strategy) {
  const Problem& p = c.problem;
  if (p.asked != strategy) return {{}, "no pass asks for it: launches do not bound the network, or the product is long"};
  if (!p.small_gemm || !has_small_gemm(c.target)) return {{}, "open sizes, or operands that sub-groups do not load"};
  const SmallGemmRegime& regime = *small_gemm_regime(strategy);
  const Loads &a = p.a.loads, &b = p.b.loads;
  if (a.width == 1 || !a.along_k || (!regime.halves && (b.width == 1 || !b.along_k)) || (regime.halves && !p.b.constant))
    return {{}, "operands are not loaded in vectors of terms"};
  const auto tiles = choose_small_gemm(*p.small_gemm, regime, c.target, p.is_part, true);
  return {Choice{strategy, *tiles, tiles->seconds}, {}};
}

Planned plan_pack_b(const StrategyCase& c, StrategyId strategy) {
  if (c.problem.asked != strategy) return {{}, kNotForAnother};
  const GpuProduct product = c.problem.product.with([](GpuProduct& p) { p.is_packed = p.scaled_steps = true; });
  GpuChoice g;
  g.products = c.target.precision.products;
  g.tiles = choose_gpu_tiles(product, c.target);
  g.sm90a = choose_sm90a_tiles(product, g.tiles, c.target);
  if (!g.sm90a) return {{}, "no tiles read a packed operand"};
  return {Choice{strategy, g, 0}, {}};
}

Planned plan_lay_out_a(const StrategyCase& c, StrategyId strategy) {
  if (c.problem.asked != strategy) return {{}, kNotForAnother};
  return {Choice{strategy, {}, 0}, {}};
}

}  // namespace oclc
