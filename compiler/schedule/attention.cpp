#include "compiler/schedule/attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compiler/contraction/cpu/amx_tiles.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/merged_kernel.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

using Kind = ScalarNode::Kind;

// Of keys, queries and values, whose parts lie in registers of a GPU.
constexpr std::int64_t kMostColumns = 128, kFewColumns = 64;
constexpr int kWarps = 4, kFewWarps = 2, kKeys = 64, kFewKeys = 32;

// On a CPU's tile units: fewest rows or keys, and elements of a query.
constexpr std::int64_t kFewestDepth = 16;
constexpr int kFloats = 16;  // of the vectors that lay them out

struct Extents {
  double groups = 1, rows = 1, keys = 1;
  std::int64_t depth = 1, columns = 1;
};

const Axis& axis(const Kernel& kernel, int i) { return kernel.axes[static_cast<std::size_t>(i)]; }
const Axis& inner(const Kernel& kernel) { return kernel.reduction[static_cast<std::size_t>(kernel.contraction->k.back())]; }
const ScalarNode& node(const Kernel& kernel, NodeId id) { return kernel.nodes[static_cast<std::size_t>(id)]; }

Extents extents_of(const Kernel& scores, const Kernel& product) {
  Extents e;
  const Contraction& c = *scores.contraction;
  for (const int i : c.batch) e.groups *= typical(axis(scores, i).extent);
  for (const int i : c.m) e.rows *= typical(axis(scores, i).extent);
  e.keys = typical(axis(scores, c.n[0]).extent);
  e.depth = inner(scores).extent.value();
  e.columns = axis(product, product.contraction->n[0]).extent.value();
  return e;
}

// A product of matrices as the templates take it: of floats, one axis of columns, one summed, neither empty.
bool is_product(const Kernel& kernel) {
  if (!kernel.contraction || kernel.contraction->asked != StrategyId::gemm || kernel.stages.size() != 1 ||
      kernel.stages[0].accumulator != DType::f32 || kernel.contraction->n.size() != 1 || kernel.contraction->k.size() != 1)
    return false;
  return std::none_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.extent == Expr(0); }) &&
         std::none_of(kernel.reduction.begin(), kernel.reduction.end(), [](const Axis& a) { return a.extent == Expr(0); }) &&
         node(kernel, kernel.contraction->a).dtype == DType::f32 && node(kernel, kernel.contraction->b).dtype == DType::f32;
}

bool is_short_extent(const Expr& extent) { return extent.is_constant() && extent.value() <= kMostColumns; }

bool is_apply(const ScalarNode& n, std::string_view op) { return n.kind == Kind::apply && n.op_name == op; }

bool is_result(const Kernel& kernel, NodeId id, int stage) {
  return node(kernel, id).kind == Kind::reduced && node(kernel, id).stage == stage;
}

bool is_plain(const ScalarNode& n) { return n.kind == Kind::load && n.dtype == DType::f32 && n.guard.empty(); }

// e^(x - max of all x) / sum of these, of rows that are stored as they are loaded.
bool is_softmax(const Kernel& kernel) {
  if (kernel.contraction || kernel.reduction.size() != 1 || kernel.stages.size() != 2 || kernel.stores.size() != 1)
    return false;
  const Stage &max = kernel.stages[0], &sum = kernel.stages[1];
  if (max.combine != Stage::Combine::max || sum.combine != Stage::Combine::sum || sum.accumulator != DType::f32) return false;
  const ScalarNode &x = node(kernel, max.body), &power = node(kernel, sum.body);
  if (!is_plain(x) || !is_apply(power, "exp")) return false;
  const ScalarNode& difference = node(kernel, power.args[0]);
  if (!is_apply(difference, "sub") || difference.args[0] != max.body || !is_result(kernel, difference.args[1], 0)) return false;
  const Store& store = kernel.stores[0];
  const ScalarNode& quotient = node(kernel, store.value);
  if (!(store.index == x.index) || !store.guard.empty() || store.row_axes.size() != 1 || quotient.args.size() != 2 ||
      quotient.args[0] != sum.body)
    return false;
  if (is_apply(quotient, "div")) return is_result(kernel, quotient.args[1], 1);
  const ScalarNode& factor = node(kernel, quotient.args[1]);
  return is_apply(quotient, "mul") && is_apply(factor, "reciprocal") && is_result(kernel, factor.args[0], 1);
}

// Whether axis `a` in index `at` takes the steps of axis `b` in `other`, over as many values.
bool same_steps(const Axis& a, const Expr& at, const Axis& b, const Expr& other) {
  if (!(a.extent == b.extent)) return false;
  if (a.extent == Expr(1)) return true;
  const auto step = at.coefficient(a.name), its = other.coefficient(b.name);
  return step && its && *step == *its;
}

// Whether the softmax goes over the columns of the scores, each row alone.
bool is_over_columns(const Kernel& scores, const Kernel& softmax) {
  const Expr &stored = scores.stores[0].index, &loaded = node(softmax, softmax.stages[0].body).index;
  if (!same_steps(axis(scores, scores.contraction->n[0]), stored, softmax.reduction[0], loaded)) return false;
  for (const Axis& a : softmax.axes) {
    if (a.extent == Expr(1)) continue;
    const auto same = [&](const Axis& b) { return same_steps(b, stored, a, loaded); };
    if (std::none_of(scores.axes.begin(), scores.axes.end(), same)) return false;
  }
  return at_first(scores, stored) == at_first(softmax, loaded);
}

// Whether the product reads, at (g, m, k), what belongs to the score at (g, m, n).
bool reads_scores(const Kernel& scores, const Kernel& product) {
  const Contraction &s = *scores.contraction, &p = *product.contraction;
  const Expr &stored = scores.stores[0].index, &loaded = node(product, p.a).index;
  if (s.batch.size() != p.batch.size() || s.m.size() != p.m.size() || loaded.uses(axis(product, p.n[0]).name)) return false;
  for (std::size_t i = 0; i < s.batch.size(); ++i)
    if (!same_steps(axis(scores, s.batch[i]), stored, axis(product, p.batch[i]), loaded)) return false;
  for (std::size_t i = 0; i < s.m.size(); ++i)
    if (!same_steps(axis(scores, s.m[i]), stored, axis(product, p.m[i]), loaded)) return false;
  return same_steps(axis(scores, s.n[0]), stored, inner(product), loaded) &&
         at_first(scores, stored) == at_first(product, loaded);
}

// Whether vectors of floats copy what `root` of the kernel is computed from along the axis, as attention_amx.cl wants it.
bool copies_vectors(const Kernel& kernel, NodeId root, const Axis& along) {
  return along.extent.is_constant() && along.extent.value() >= kFloats &&
         can_vectorize(part_for(kernel, root), along.name, kFloats);
}

bool copies_operands(const Kernel& scores, const Kernel& product) {
  const auto copies_b = [](const Kernel& kernel) {
    const Contraction& c = *kernel.contraction;
    return copies_vectors(kernel, c.b, axis(kernel, c.n[0])) || copies_vectors(kernel, c.b, inner(kernel));
  };
  return copies_vectors(scores, scores.contraction->a, inner(scores)) && copies_b(scores) && copies_b(product);
}

class Attention {
 public:
  Attention(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target), uses_(schedule.uses()) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_kernel() || !is_product(at(list[i]))) continue;
      const auto row = writer_of(list, i, at(list[i]).contraction->a);
      if (!row || !is_softmax(at(list[*row]))) continue;
      const auto scores = writer_of(list, *row, at(list[*row]).stages[0].body);
      if (!scores || !fits(list, *scores, *row, i)) continue;
      AttentionStep made{{list[*scores], list[*row], list[i]}};
      list[i] = Step{std::move(made)};
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(*row));
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(*scores));
      i -= 2;
    }
  }

 private:
  const Kernel& at(const Step& step) const { return schedule_.kernel(step); }

  // The step that writes what `load` of step `i` reads, if it is the only one and nothing else reads that.
  std::optional<std::size_t> writer_of(const std::vector<Step>& list, std::size_t i, NodeId load) const {
    const ScalarNode& n = node(at(list[i]), load);
    if (!is_plain(n)) return std::nullopt;
    const int buffer = at(list[i]).operands[static_cast<std::size_t>(n.operand)].buffer;
    const Buffer& b = schedule_.buffers[static_cast<std::size_t>(buffer)];
    if (b.kind != BufferKind::arena || b.dtype != DType::f32 || b.replaces >= 0 || uses_.at(buffer) != 2) return std::nullopt;
    for (std::size_t k = i; k-- > 0 && list[k].is_kernel();)
      if (buffers_of(at(list[k]), true).count(buffer) != 0) return k;
    return std::nullopt;
  }

  bool fits(const std::vector<Step>& list, std::size_t first, std::size_t row, std::size_t last) const {
    const Kernel &scores = at(list[first]), &softmax = at(list[row]), &product = at(list[last]);
    if (!is_product(scores) || scores.stores.size() != 1 || !scores.stores[0].guard.empty() || list[first].is_beside() ||
        list[row].is_beside() || list[last].is_beside())
      return false;
    if (!is_short_extent(inner(scores).extent) || !is_short_extent(axis(product, product.contraction->n[0]).extent))
      return false;
    if (!is_over_columns(scores, softmax) || !reads_scores(scores, product)) return false;
    if (!can_pass(scores, schedule_, list.data() + first + 1, list.data() + row) ||
        !can_pass(scores, schedule_, list.data() + row + 1, list.data() + last))
      return false;
    return target_.multiplies_tiles() ? tiles_pay(scores, product) : pays(scores, product);
  }

  bool tiles_pay(const Kernel& scores, const Kernel& product) const {
    if (!axis(scores, scores.contraction->n[0]).extent.is_constant() || !copies_operands(scores, product)) return false;
    const Extents e = extents_of(scores, product);
    return e.rows >= cost::kFewestAttentionRows && e.keys >= cost::kFewestAttentionRows && e.depth >= kFewestDepth &&
           attention_row_blocks(scores, product, target_) > 0;
  }

  bool pays(const Kernel& scores, const Kernel& product) const {
    const Extents e = extents_of(scores, product);
    const AttentionTiles tiles = attention_tiles(scores, product, target_);
    const double rows = tiles.rows(), units = std::max(1, target_.compute_units);
    const double blocks = std::ceil(e.keys / tiles.keys),
                 tile_flops = 2.0 * rows * tiles.keys * static_cast<double>(e.depth + e.columns);
    const double rate = (target_.precision.rounds_operands() ? cost::kAttentionFlops : cost::kSplitAttentionFlops) / units;
    const double waves = std::ceil(e.groups * std::ceil(e.rows / rows) / units);
    const double together = target_.launch_seconds + waves * blocks * std::max(cost::kKeyBlockSeconds, tile_flops / rate);
    const double count = e.groups * e.rows * e.keys;
    const double apart = 3 * target_.launch_seconds + count * cost::kScoreBytes / target_.bytes_per_second +
                         2.0 * count * static_cast<double>(e.depth + e.columns) / cost::kUnfusedAttentionFlops;
    return together < apart;
  }

  Schedule& schedule_;
  const Target& target_;
  const std::map<int, int> uses_;
};

}  // namespace

AttentionTiles attention_tiles(const Kernel& scores, const Kernel& product, const Target& target) {
  const Extents e = extents_of(scores, product);
  AttentionTiles tiles{kWarps, kKeys};
  const double groups = e.groups * std::ceil(e.rows / tiles.rows());
  if (groups <= target.compute_units / 2.0) tiles.warps = kFewWarps;
  // Many keys take registers, so that a unit has two groups at a time, and rounding up to whole blocks costs work.
  const double few = std::ceil(e.keys / kFewKeys) * kFewKeys * cost::kFewKeysCost, many = std::ceil(e.keys / kKeys) * kKeys;
  const bool narrow = std::max(e.depth, e.columns) <= kFewColumns && target.precision.rounds_operands();
  if (!narrow || tiles.warps != kWarps || groups > 2.0 * target.compute_units || many > few) tiles.keys = kFewKeys;
  return tiles;
}

std::int64_t attention_row_blocks(const Kernel& scores, const Kernel& product, const Target& target) {
  const Extents e = extents_of(scores, product);
  const auto panels = [](double count) { return ceil_div(static_cast<std::int64_t>(count), 32); };
  const std::int64_t depth = panels(static_cast<double>(e.depth)), keys = panels(e.keys),
                     columns = panels(static_cast<double>(e.columns)), rows = panels(e.rows), steps = keys * (depth + columns),
                     floats_of_step = parts_of(target.precision.bf16_products) * 512, cores = std::max(1, target.compute_units);
  // SPACE of the template.
  const std::int64_t floats =
      2 * keys * 1024 + (depth + 2 * keys + steps) * floats_of_step + std::max(keys, columns) * 1040 + 1104;
  if (floats * 4 > std::min(target.l2_bytes * 7 / 8, target.local_bytes)) return 0;
  std::int64_t best = 0;
  double least = 0;
  for (std::int64_t items = 1, blocks = 0; items <= rows; items = blocks > 1 ? ceil_div(rows, blocks - 1) : rows + 1) {
    blocks = ceil_div(rows, items);  // another number each time
    const auto all = static_cast<std::int64_t>(e.groups) * ceil_div(rows, blocks);
    const double seconds = static_cast<double>(ceil_div(all, cores)) * (cost::kKeyLayoutBlocks + static_cast<double>(blocks));
    if (best == 0 || seconds < least) best = blocks, least = seconds;
  }
  return best;
}

void attention(Schedule& schedule, const ScheduleContext& context) {
  Attention pass(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) pass.steps(entry.steps);
}

}  // namespace oclc
