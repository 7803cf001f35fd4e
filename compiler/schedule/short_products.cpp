#include "compiler/schedule/short_products.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/resident.h"

namespace oclc {
namespace {

constexpr int kSubGroups = 8, kTermsOfStep = 16, kWarpRows = 16;
// Cycles: of a launch's begin and end, of a load's answer, of a tile's other work, and fma of three products that a compute
// unit does in one.
constexpr double kStart = 1000, kAnswer = 700, kRest = 600, kTerms = 170, kCyclesPerSecond = 1.7e9;
// The share of the device's rate that small kernels reach.
constexpr double kReached = 1.0 / 3;
constexpr std::int64_t kLargeTile = 64;

// How products are marked. Those of a constant right operand are computed of halves where operands are rounded anyhow.
struct Regime {
  std::string_view strategy;
  bool halves;
  double device_per_host;  // in entries whose kernels take at most so many times what the host takes to launch them
  double bytes;            // of operands that a compute unit reads in a cycle
  // A marked product takes at most so many launches' time, and one more where fewer tiles of kLargeTile than the device has
  // compute units would need sums in parts, which are a launch more.
  double launches;
};

// Measured on an H200. Three products of floats are faster by the large templates where the device has more work than the host;
// halves are so as long as all compute units share what the second-level cache gives.
constexpr Regime kRegimes[] = {{"short", false, 1, 64, 1.5}, {"short, halves", true, 3.2, 28, 6}};

const Regime* regime_of(const Kernel& kernel) {
  if (!kernel.contraction) return nullptr;
  const auto* found = std::find_if(std::begin(kRegimes), std::end(kRegimes),
                                   [&](const Regime& r) { return r.strategy == kernel.contraction->strategy; });
  return found == std::end(kRegimes) ? nullptr : found;
}

// Operands of four neighbours in k each: their loads that are under way together fill so many vectors.
constexpr int kVectorsAhead = 16, kVectorsOfPart = 12;

struct Extents {
  std::int64_t groups = 1, rows = 1, columns = 1, depth = 1;
};

double cycles_of(const Extents& e, ShortTiles& t, const Target& target, const Regime& regime, int ahead) {
  const std::int64_t tiles = e.groups * ceil_div(e.rows, t.rows) * ceil_div(e.columns, t.columns), units = target.compute_units;
  const std::int64_t pieces = regime.halves ? 2 : 1, terms = kTermsOfStep * pieces,
                     steps = ceil_div(ceil_div(e.depth, terms), t.sharers), vectors = 2 * pieces + t.warp_columns / 8,
                     most = std::max<std::int64_t>(1, ahead / vectors), batches = ceil_div(steps, most);
  t.ahead = static_cast<int>(ceil_div(steps, batches));
  const auto depth = static_cast<double>(batches * t.ahead * t.sharers * terms);
  const double work = std::max(t.rows * t.columns * depth / kTerms, (t.rows + t.columns / static_cast<double>(pieces)) *
                                                                        static_cast<double>(e.depth) * 4 / regime.bytes);
  return kStart + static_cast<double>(ceil_div(tiles, 2 * units)) * (static_cast<double>(batches) * kAnswer + kRest) +
         static_cast<double>(ceil_div(tiles, units)) * work;
}

// Loads and flops that an element of the left operand is computed of, as a batch norm's before the product: each tile of
// columns repeats them.
constexpr int kMostLoads = 4;
constexpr double kMostFlops = 4;

// A load along the terms, or a few numbers computed of such loads and of others that are the same for all terms.
bool is_simple(const Kernel& kernel, NodeId root, const std::string& inner) {
  const Kernel part = part_for(kernel, root);
  int loads = 0;
  double flops = 0;
  bool is_along = false;
  for (const ScalarNode& n : part.nodes) {
    if (n.kind == ScalarNode::Kind::load && n.dtype == DType::f32) {
      ++loads;
      const auto stride = n.index.coefficient(inner);
      if (!stride || !(*stride == Expr(0) || *stride == Expr(1))) return false;
      is_along = is_along || *stride == Expr(1);
    } else if (n.kind == ScalarNode::Kind::apply) {
      flops += n.op->flops;
    } else if (n.kind != ScalarNode::Kind::constant) {
      return false;
    }
  }
  return is_along && loads <= kMostLoads && flops <= kMostFlops;
}

std::optional<ShortTiles> tiles_of(const Kernel& kernel, const Target& target, const Regime& regime, int ahead,
                                   bool is_marked) {
  if (!target.sm90a || target.products == Products::fma || target.loop_iterations != Target::kNoLimit ||
      target.work_group != kSubGroups * 32 || !kernel.contraction || kernel.stages.size() != 1 ||
      kernel.stages[0].accumulator != DType::f32 || kernel.stages[0].combine != Stage::Combine::sum ||
      kernel.contraction->n.size() != 1 || kernel.contraction->k.empty())
    return std::nullopt;
  const Contraction& c = *kernel.contraction;
  Extents e;
  const auto multiply = [](std::int64_t& into, const std::vector<int>& numbers, const std::vector<Axis>& axes) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int i) {
      const auto extent = axes[static_cast<std::size_t>(i)].extent.constant();
      into *= extent.value_or(0);
      return into > 0;
    });
  };
  if (!multiply(e.groups, c.batch, kernel.axes) || !multiply(e.rows, c.m, kernel.axes) ||
      !multiply(e.columns, c.n, kernel.axes))
    return std::nullopt;
  const Axis& inner = kernel.reduction[static_cast<std::size_t>(c.k.back())];
  const ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (!multiply(e.depth, c.k, kernel.reduction) || inner.extent.value() % 4 != 0 || e.rows == 1 ||
      b.kind != ScalarNode::Kind::load || !b.guard.empty() || !(regime.halves || b.index.coefficient(inner.name) == Expr(1)) ||
      !is_simple(kernel, c.a, inner.name))
    return std::nullopt;
  std::optional<ShortTiles> best;
  const std::int64_t large = e.groups * ceil_div(e.rows, kLargeTile) * ceil_div(e.columns, kLargeTile);
  const double launches = regime.launches + (large < target.compute_units ? 1 : 0);
  double least = is_marked ? std::numeric_limits<double>::infinity() : launches * target.launch_seconds * kCyclesPerSecond;
  for (const int columns : {16, 32, 64}) {
    for (int sharers = 1; sharers <= kSubGroups; sharers *= 2) {
      ShortTiles t;
      t.columns = columns;
      t.warp_columns = std::min(columns, 32);
      t.sharers = sharers;
      t.halves = regime.halves;
      const int side = kSubGroups / sharers / (columns / t.warp_columns);
      if (side == 0) continue;
      t.rows = kWarpRows * side;
      const double cycles = cycles_of(e, t, target, regime, ahead);
      if (cycles >= least) continue;
      least = cycles;
      best = t;
    }
  }
  return best;
}

// Weights [result][term][tap] of a window's product, which the kernel alone reads, as [result][tap][term]: the kernel reads
// them that way, and the constant is to be laid out so.
struct WindowWeights {
  int buffer = -1;
  std::int64_t results = 1, taps = 1, terms = 1;
};

std::optional<WindowWeights> lay_terms_together(Kernel& kernel, const Schedule& schedule, const std::map<int, int>& uses) {
  if (!kernel.contraction || kernel.contraction->n.size() != 1 || kernel.contraction->k.size() < 2) return std::nullopt;
  const Contraction& c = *kernel.contraction;
  ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  const Axis& result = kernel.axes[static_cast<std::size_t>(c.n[0])];
  if (b.kind != ScalarNode::Kind::load || !b.guard.empty() || !result.extent.is_constant()) return std::nullopt;
  WindowWeights w;
  w.buffer = kernel.operands[static_cast<std::size_t>(b.operand)].buffer;
  w.results = result.extent.value();
  Expr tap = 0;
  for (const int i : c.k) {
    const Axis& axis = kernel.reduction[static_cast<std::size_t>(i)];
    if (!axis.extent.is_constant()) return std::nullopt;
    const bool inner = i == c.k.back();
    (inner ? w.terms : w.taps) *= axis.extent.value();
    if (!inner) tap = tap * axis.extent + axis.var;
  }
  const Axis& term = kernel.reduction[static_cast<std::size_t>(c.k.back())];
  const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(w.buffer)];
  const Expr of_result = result.var * Expr(w.taps * w.terms);
  if (w.taps == 1 || buffer.kind != BufferKind::constant || buffer.dtype != DType::f32 || uses.at(w.buffer) != 1 ||
      buffer.constant.elements() != w.results * w.taps * w.terms || !(b.index == of_result + term.var * Expr(w.taps) + tap))
    return std::nullopt;
  b.index = of_result + tap * Expr(w.terms) + term.var;
  return w;
}

void lay_terms_together(HostTensor& weights, const WindowWeights& w) {
  HostTensor out(DType::f32, weights.shape());
  const auto* from = reinterpret_cast<const float*>(weights.data());
  auto* to = reinterpret_cast<float*>(out.mutable_data());
  for (std::int64_t result = 0; result < w.results; ++result) {
    for (std::int64_t tap = 0; tap < w.taps; ++tap) {
      for (std::int64_t term = 0; term < w.terms; ++term) *to++ = from[(result * w.terms + term) * w.taps + tap];
    }
  }
  weights = std::move(out);
}

// A right operand of constant numbers, whose steps along the terms and the results are known.
bool is_packable(const Kernel& kernel, const Schedule& schedule) {
  if (!kernel.contraction || kernel.contraction->k.empty() || kernel.contraction->n.size() != 1) return false;
  const Contraction& c = *kernel.contraction;
  const ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (b.kind != ScalarNode::Kind::load || !b.guard.empty() || b.dtype != DType::f32) return false;
  const auto is_known = [&](const std::string& name) {
    const auto stride = b.index.coefficient(name);
    return stride && stride->is_constant();
  };
  const Buffer& buffer =
      schedule.buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(b.operand)].buffer)];
  return buffer.kind == BufferKind::constant && buffer.dtype == DType::f32 &&
         is_known(kernel.axes[static_cast<std::size_t>(c.n[0])].name) &&
         std::all_of(c.k.begin(), c.k.end(),
                     [&](int i) { return is_known(kernel.reduction[static_cast<std::size_t>(i)].name); }) &&
         std::all_of(c.batch.begin(), c.batch.end(),
                     [&](int i) { return is_known(kernel.axes[static_cast<std::size_t>(i)].name); });
}

}  // namespace

void short_products(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  const std::map<int, int> uses = schedule.uses();
  for (const EntrySchedule& entry : schedule.entries) {
    double of_host = 0, of_device = 0;
    for (const Step& step : entry.steps) {
      if (step.kernel < 0) continue;
      const Kernel& kernel = schedule.kernels[static_cast<std::size_t>(step.kernel)];
      of_host += target.launch_seconds;
      of_device += typical(kernel.flops) / (target.flops * kReached) + typical(kernel.bytes) / target.bytes_per_second;
    }
    std::map<int, std::string> before;  // of products marked although the device has more to do than the host
    for (const Step& step : entry.steps) {
      if (step.kernel < 0) continue;
      Kernel& kernel = schedule.kernels[static_cast<std::size_t>(step.kernel)];
      const Regime& regime = kRegimes[target.products == Products::rounded && is_packable(kernel, schedule) ? 1 : 0];
      if (of_device >= regime.device_per_host * of_host) continue;
      Kernel laid_out = kernel;
      const auto weights = regime.halves ? std::nullopt : lay_terms_together(laid_out, schedule, uses);
      if (!tiles_of(laid_out, target, regime, kVectorsAhead, false)) continue;
      if (of_device >= of_host) before.emplace(step.kernel, kernel.contraction->strategy);
      kernel = std::move(laid_out);
      kernel.contraction->strategy = regime.strategy;
      if (weights) lay_terms_together(schedule.buffers[static_cast<std::size_t>(weights->buffer)].constant, *weights);
    }
    // Those are faster as parts of a launch alone.
    const std::span<const Step> steps(entry.steps);
    for (std::size_t i = 0, n = 1; i < steps.size(); i += n) {
      n = std::max<std::size_t>(1, stretch_length(schedule, steps.subspan(i), target));
      const auto found = n == 1 ? before.find(steps[i].kernel) : before.end();
      if (found != before.end()) schedule.kernels[static_cast<std::size_t>(found->first)].contraction->strategy = found->second;
    }
  }
}

std::optional<ShortTiles> short_product_tiles(const Kernel& kernel, const Target& target, bool is_part) {
  const Regime* regime = regime_of(kernel);
  if (!regime) return std::nullopt;
  return tiles_of(kernel, target, *regime, is_part ? kVectorsOfPart : kVectorsAhead, true);
}

}  // namespace oclc
