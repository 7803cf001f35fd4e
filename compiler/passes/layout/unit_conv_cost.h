// What convolutions take on matrix units that multiply floats in parts: constants measured on an H200.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

// Of a convolution of one group with stride 1 over images. Unbound symbols count as in ir/typical.h.
struct UnitConvolution {
  explicit UnitConvolution(const Node& conv);
  double images, height, width;  // of the result
  double channels, features, taps;
};

// The implicit product.
double unit_product_seconds(const UnitConvolution& c, const Target& target);
// Winograd with tiles of tile x tile results and 3x3 taps: both transforms and the products of all points are launches.
double unit_winograd_seconds(const UnitConvolution& c, double tile, const Target& target);

}  // namespace oclc
