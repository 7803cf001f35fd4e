#include "compiler/codegen/loops/loop_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/contraction/tiling.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/loop_seconds.h"
#include "compiler/support/error.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::int64_t kLineBytes = 64;
// Vectors of a strip, and the most where registers are many. Sums of more vectors than registers go to the first-level cache
// and back, which memory outweighs.
constexpr int kStripVectors = 4, kLongStrip = 16, kManyRegisters = 32;

// Upper bound, for all values of the symbols, of the loop iterations that one element of the iteration space takes. Each
// entry of a loop counts 2 more, for the test that ends it and that of a vector loop's tail.
std::int64_t element_iterations(const Kernel& kernel) {
  Expr all(6);  // the loops over rows and over a row's elements around it
  const auto nest = [&](const std::vector<int>& axes) {
    Expr entered(1);
    for (const int a : axes) {
      const Expr& extent = kernel.reduction[static_cast<std::size_t>(a)].extent;
      if (extent != Expr(1)) all += entered * (extent + 2);
      entered *= extent;
    }
  };
  for (const Stage& stage : kernel.stages) nest(stage.axes);
  for (const Store& store : kernel.stores) nest(store.row_axes);
  // The integer power is a loop over the exponent's bits.
  for (const ScalarNode& n : kernel.nodes) {
    if (n.kind == ScalarNode::Kind::apply && n.op_name == "pow" && !is_float(n.dtype))
      all += (all + 1) * Expr(8 * static_cast<std::int64_t>(size_bytes(n.dtype)) + 1);
  }
  return all.upper();
}

void check(const Kernel& kernel, const Target& target, std::int64_t iterations) {
  if (iterations <= target.loop_iterations) return;
  std::string loops;
  for (const Axis& a : kernel.reduction) loops += fmt::format("{}{} < {}", loops.empty() ? "" : ", ", a.name, a.extent.text());
  throw CompileError({.stage = "codegen",
                      .node = kernel.sources.empty() ? kernel.name : fmt::format("{}", fmt::join(kernel.sources, ", ")),
                      .wanted = fmt::format("at most {} loop iterations a work-item, all that target '{}' makes",
                                            target.loop_iterations, target.name),
                      .found = iterations == kUnbounded ? fmt::format("no bound for the loops over {}", loops)
                                                        : fmt::format("up to {} in the loops over {}", iterations, loops),
                      .advice = iterations == kUnbounded ? "bind the dimension with --dim" : "another device",
                      .exit_code = ExitCode::unsupported});
}

// Seconds that one core needs for one element of the iteration space.
double element_seconds(const Kernel& kernel, const Target& target) {
  double points = 1;
  for (const Axis& a : kernel.axes) points *= typical(a.extent);
  const double cores = target.compute_units;
  return loop_seconds(kernel, target) * cores / std::max(points, 1.0);
}

}  // namespace

int strip_vectors(const Kernel& kernel, const Expr& inner, const Target& target) {
  if (target.vector_registers < kManyRegisters || kernel.stages.empty() || !inner.is_constant()) return kStripVectors;
  int vectors = kLongStrip;
  const auto fits = [&] {
    return vectors * static_cast<int>(kernel.stages.size()) <= 2 * target.vector_registers &&
           inner.value() % (vectors * target.vector_width) == 0;
  };
  while (vectors > kStripVectors && !fits()) vectors /= 2;
  return vectors;
}

bool streams_results(const Kernel& kernel) {
  if (loads_what_it_stores(kernel)) return false;
  double elements = 1, row = 1;
  for (const Axis& a : kernel.axes) elements *= typical(a.extent);
  for (const Axis& a : kernel.reduction) row *= typical(a.extent);
  const double streamed = typical(kernel.bytes) >= cost::kMovedBytes ? cost::kFewestStreamedBytes : cost::kStreamedBytes;
  return std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) {
    // Neighbouring points that a work-item computes are stores to one operand.
    const auto neighbours = std::count_if(kernel.stores.begin(), kernel.stores.end(),
                                          [&](const Store& other) { return other.operand == s.operand; });
    return elements * (s.row_axes.empty() ? 1 : row) * static_cast<double>(neighbours) * sizeof(float) >= streamed;
  });
}

Expr rows_besides(const Kernel& kernel, std::optional<std::size_t> vector_axis) {
  Expr n(1);
  for (std::size_t i = 0; i < kernel.axes.size(); ++i) {
    if (i != vector_axis) n *= kernel.axes[i].extent;
  }
  return n;
}

void check_loop_iterations(const Kernel& kernel, const Target& target) { check(kernel, target, element_iterations(kernel)); }

LoopTiles choose_loop_tiles(const Kernel& kernel, std::optional<std::size_t> vector_axis, const Target& target) {
  const Expr inner = vector_axis ? kernel.axes[*vector_axis].extent : Expr(1);
  const double inner_elements = typical(inner);
  const double wanted = std::max(1.0, cost::kLoopTileSeconds / std::max(element_seconds(kernel, target), 1e-12));
  LoopTiles tiles;
  if (vector_axis && inner_elements > wanted * 2) {
    const std::int64_t few = target.vector_width, many = few * strip_vectors(kernel, inner, target);
    // Sums read a row's piece in every term: vectors of half a cache line read each line twice.
    const bool shared = !kernel.stages.empty() && few * 4 < kLineBytes && inner.is_constant() &&
                        inner.value() % (target.compute_units * many) == 0;
    const double elements = typical(rows_besides(kernel, vector_axis)) * inner_elements;
    const std::int64_t unit = elements < static_cast<double>(2 * target.compute_units * many) && !shared ? few : many;
    tiles.chunk = std::max<std::int64_t>(unit, static_cast<std::int64_t>(wanted) / unit * unit);
  } else {
    tiles.rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted / std::max(inner_elements, 1.0)));
  }
  // As many tiles as the cores share evenly.
  if (const auto rows = rows_besides(kernel, vector_axis).constant(); rows && tiles.rows < *rows && tiles.chunk == 0) {
    const std::int64_t cores = target.compute_units, even = ceil_div(ceil_div(*rows, tiles.rows), cores) * cores;
    tiles.rows = std::max<std::int64_t>(1, ceil_div(*rows, even));
  }
  // What would be a single tile is shared if it is long enough.
  if (const auto rows = rows_besides(kernel, vector_axis).constant(); rows && tiles.rows >= *rows && tiles.chunk == 0) {
    const std::int64_t cores = target.compute_units;
    const double seconds = element_seconds(kernel, target) * static_cast<double>(*rows) * inner_elements;
    if (seconds >= cost::kSharedWorkSeconds && *rows >= cores)
      tiles.rows = ceil_div(*rows, cores);
    else if (seconds >= cost::kSharedWorkSeconds && vector_axis && *rows == 1 && inner.is_constant())
      tiles.chunk = ceil_div(ceil_div(inner.value(), cores), target.vector_width) * target.vector_width;
  }
  if (target.counts_loops()) {
    const std::int64_t element = element_iterations(kernel);
    check(kernel, target, element);
    // Vectors begin at multiples of their width.
    const std::int64_t most = target.loop_iterations / element, lanes = std::max<std::int64_t>(1, target.vector_width),
                       elements = most >= lanes ? most / lanes * lanes : most;
    if (vector_axis && inner.upper() > elements) tiles.chunk = tiles.chunk ? std::min(tiles.chunk, elements) : elements;
    tiles.rows = tiles.chunk ? 1 : std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, inner.upper()), 1, tiles.rows);
  }
  return tiles;
}

}  // namespace oclc
