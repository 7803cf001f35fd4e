#include "compiler/kernels/short_products.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

constexpr int kSubGroups = 8, kTermsOfStep = 16, kWarpRows = 16;
// Cycles: of a launch's begin and end, of a load's answer, of a tile's other work, bytes of operands and fma of three products
// that a compute unit does in one.
constexpr double kStart = 1000, kAnswer = 700, kRest = 600, kBytes = 64, kTerms = 170, kCyclesPerSecond = 1.7e9;
// A product that is marked takes at most so many launches' time. The share of the device's rate that small kernels reach.
constexpr double kLaunches = 1.5, kReached = 1.0 / 3;
constexpr std::string_view kShort = "short";

// Operands of four neighbours in k each: their loads that are under way together fill so many vectors.
constexpr int kVectorsAhead = 16, kVectorsOfPart = 8;

struct Extents {
  std::int64_t groups = 1, rows = 1, columns = 1, depth = 1;
};

double cycles_of(const Extents& e, ShortTiles& t, const Target& target, int ahead) {
  const std::int64_t tiles = e.groups * ceil_div(e.rows, t.rows) * ceil_div(e.columns, t.columns), units = target.compute_units;
  const std::int64_t steps = ceil_div(ceil_div(e.depth, kTermsOfStep), t.sharers), vectors = 2 + t.warp_columns / 8,
                     most = std::max<std::int64_t>(1, ahead / vectors), batches = ceil_div(steps, most);
  t.ahead = static_cast<int>(ceil_div(steps, batches));
  const auto depth = static_cast<double>(batches * t.ahead * t.sharers * kTermsOfStep);
  const double work =
      std::max(t.rows * t.columns * depth / kTerms, (t.rows + t.columns) * static_cast<double>(e.depth) * 4 / kBytes);
  return kStart + static_cast<double>(ceil_div(tiles, 2 * units)) * (static_cast<double>(batches) * kAnswer + kRest) +
         static_cast<double>(ceil_div(tiles, units)) * work;
}

// A load, or a few numbers computed of loads.
bool is_simple(const Kernel& kernel, NodeId id) {
  const ScalarNode& n = kernel.nodes[static_cast<std::size_t>(id)];
  const auto is_load = [&](NodeId i) { return kernel.nodes[static_cast<std::size_t>(i)].kind == ScalarNode::Kind::load; };
  return is_load(id) ||
         (n.kind == ScalarNode::Kind::apply && n.args.size() == 2 && std::all_of(n.args.begin(), n.args.end(), is_load));
}

std::optional<ShortTiles> tiles_of(const Kernel& kernel, const Target& target, int ahead) {
  if (!target.sm90a || target.products == Products::fma || target.loop_iterations != Target::kNoLimit ||
      target.work_group != kSubGroups * 32 || !kernel.contraction || kernel.stages.size() != 1 ||
      kernel.stages[0].accumulator != DType::f32 || kernel.stages[0].combine != Stage::Combine::sum ||
      kernel.contraction->n.size() != 1 || kernel.contraction->k.empty())
    return std::nullopt;
  const Contraction& c = *kernel.contraction;
  Extents e;
  const auto multiply = [&](std::int64_t& into, const std::vector<int>& axes) {
    return std::all_of(axes.begin(), axes.end(), [&](int i) {
      const auto extent = kernel.axes[static_cast<std::size_t>(i)].extent.constant();
      into *= extent.value_or(0);
      return into > 0;
    });
  };
  if (!multiply(e.groups, c.batch) || !multiply(e.rows, c.m) || !multiply(e.columns, c.n)) return std::nullopt;
  const Axis& inner = kernel.reduction[static_cast<std::size_t>(c.k.back())];
  for (const Axis& axis : kernel.reduction) {
    if (axis.name != inner.name && !(axis.extent == Expr(1))) return std::nullopt;
  }
  e.depth = inner.extent.constant().value_or(0);
  const ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (e.depth == 0 || e.depth % 4 != 0 || e.rows == 1 || b.kind != ScalarNode::Kind::load || !b.guard.empty() ||
      !(b.index.coefficient(inner.name) == Expr(1)) || !is_simple(kernel, c.a))
    return std::nullopt;
  std::optional<ShortTiles> best;
  double least = kLaunches * target.launch_seconds * kCyclesPerSecond;
  for (const int columns : {16, 32, 64}) {
    for (int sharers = 1; sharers <= kSubGroups; sharers *= 2) {
      ShortTiles t;
      t.columns = columns;
      t.warp_columns = std::min(columns, 32);
      t.sharers = sharers;
      const int side = kSubGroups / sharers / (columns / t.warp_columns);
      if (side == 0) continue;
      t.rows = kWarpRows * side;
      const double cycles = cycles_of(e, t, target, ahead);
      if (cycles >= least) continue;
      least = cycles;
      best = t;
    }
  }
  return best;
}

}  // namespace

void short_products(Schedule& schedule, const Target& target) {
  if (!target.sm90a) return;
  for (const EntrySchedule& entry : schedule.entries) {
    double of_host = 0, of_device = 0;
    for (const Step& step : entry.steps) {
      if (step.kernel < 0) continue;
      const Kernel& kernel = schedule.kernels[static_cast<std::size_t>(step.kernel)];
      of_host += target.launch_seconds;
      of_device += typical(kernel.flops) / (target.flops * kReached) + typical(kernel.bytes) / target.bytes_per_second;
    }
    if (of_device >= of_host) continue;
    for (const Step& step : entry.steps) {
      if (step.kernel < 0) continue;
      Kernel& kernel = schedule.kernels[static_cast<std::size_t>(step.kernel)];
      if (tiles_of(kernel, target, kVectorsAhead)) kernel.contraction->strategy = kShort;
    }
  }
}

std::optional<ShortTiles> short_product_tiles(const Kernel& kernel, const Target& target, bool is_part) {
  if (!kernel.contraction || kernel.contraction->strategy != kShort) return std::nullopt;
  return tiles_of(kernel, target, is_part ? kVectorsOfPart : kVectorsAhead);
}

}  // namespace oclc
