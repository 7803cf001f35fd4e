// Convolutions of few input channels on a CPU through the template contraction_window_cpu.cl.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_image.h"

namespace oclc {

// Weights of run time: columns are neighbours, and a tap of a channel lies these elements behind the first.
struct PlacedWeights {
  Expr first;
  std::int64_t channel = 0, y = 0, x = 0;
};

// Nothing where they do not lie so.
std::optional<PlacedWeights> placed_weights(const ContractionView& view, const ConvolutionImage& image);

GeneratedKernel emit_window(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                            const Target& target);

}  // namespace oclc
