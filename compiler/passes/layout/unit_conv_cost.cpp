#include "compiler/passes/layout/unit_conv_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Terms of a step.
constexpr int kStepTerms = 32;
// Tiles and their share of the rate of the largest.
struct UnitTile {
  double rows, columns, efficiency;
};
constexpr UnitTile kUnitTiles[] = {{256, 128, 1}, {192, 128, 0.98}, {128, 128, 0.72}, {256, 64, 0.62}, {64, 64, 0.62}};

double whole_steps(double x, double step) { return std::ceil(x / step) * step; }

// A product of rows x terms x columns, `groups` times, each unit a tile at a time.
double products_seconds(double groups, double rows, double terms, double columns, bool cuts_sums, const Target& target) {
  const double units = std::max(1, target.compute_units);
  double least = std::numeric_limits<double>::infinity();
  for (const UnitTile& t : kUnitTiles) {
    const double share = groups * std::ceil(rows / t.rows) * std::ceil(columns / t.columns) / units;
    // Smaller tiles do half of what the last round leaves idle.
    const double rounds =
        cuts_sums && share < 1 ? std::min(1.0, cost::kUnitConvCutSums * share) : (share + std::ceil(share)) / 2;
    const double rate = cost::kUnitConvSplitRate * t.efficiency * target.flops / units;
    least =
        std::min(least, rounds * 2 * t.rows * t.columns * (whole_steps(terms, kStepTerms) + cost::kUnitConvStoreTerms) / rate);
  }
  return least;
}

double move_seconds(double elements, const Target& target) {
  return elements * sizeof(float) / (cost::kUnitConvMoving * target.bytes_per_second);
}

}  // namespace

UnitConvolution::UnitConvolution(const Node& conv) {
  const Shape &w = conv.inputs[1]->type.shape, &y = conv.output()->type.shape;
  images = typical(y[0]);
  height = typical(y[2]);
  width = typical(y[3]);
  channels = typical(w[1]);
  features = typical(w[0]);
  taps = typical(product(std::span(w).subspan(2)));
}

double unit_product_seconds(const UnitConvolution& c, const Target& target) {
  const double rows = c.images * c.height * c.width;
  const double moved = rows * (c.channels + c.features) + c.taps * c.channels * c.features;
  return std::max(products_seconds(1, rows, c.taps * c.channels, c.features, true, target), move_seconds(moved, target)) +
         target.launch_seconds;
}

double unit_winograd_seconds(const UnitConvolution& c, double tile, const Target& target) {
  const double points = (tile + 2) * (tile + 2), tiles = c.images * std::ceil(c.height / tile) * std::ceil(c.width / tile),
               positions = c.images * c.height * c.width;
  const double operands = points * (tiles * (c.channels + c.features) + c.channels * c.features);
  const double transforms = (positions + points * tiles) * (c.channels + c.features);
  return std::max(products_seconds(points, tiles, c.channels, c.features, false, target), move_seconds(operands, target)) +
         move_seconds(transforms, target) + 3 * target.launch_seconds;
}

}  // namespace oclc
