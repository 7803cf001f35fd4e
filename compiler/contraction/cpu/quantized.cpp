#include "compiler/contraction/cpu/quantized.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Rows of one register tile.
constexpr std::int64_t kMostRows = 4;
// Panels of B that a work-item reads at a time where registers are many.
constexpr int kSide = 2;
// Work-items a core, so that none waits long for the others.
constexpr std::int64_t kItems = 16;

struct Seconds {
  double whole, quantized;  // with weights of floats, and of fewer bits
};

Seconds seconds_of(const Problem& p, int bits, const Target& target) {
  const double width = target.vector_width, rows = static_cast<double>(p.m.typical),
               cycles_per_second = target.flops / (4 * width);
  const double bytes = static_cast<double>(weight_bytes(p)), vectors = bytes / (4 * width);
  return {
      std::max(bytes / target.bytes_per_second, vectors * rows / 2 / cycles_per_second),
      std::max(bytes * bits / 32 / target.bytes_per_second, vectors * (cost::kUnpackCycles + rows / 2) / cycles_per_second)};
}

int vectors_of(std::int64_t rows, const Target& target) {
  int vectors = 4;
  while (vectors > 1 && rows * vectors + vectors + 4 > target.vector_registers) --vectors;
  return vectors;
}

}  // namespace

bool can_quantize(const Problem& p, const std::optional<FmaTiles>& fma) {
  return p.b.constant && fma && fma->local_copy == LocalCopy::none && p.m.known && p.m.typical <= kMostRows &&
         p.a.stored == DType::f32 && p.b.stored == DType::f32 && !p.b.shared;
}

std::int64_t weight_bytes(const Problem& p) { return p.g.typical * p.k.typical * p.taps * p.n.typical * 4; }

double saved_by_bits(const Problem& p, int bits, const Target& target) {
  const Seconds s = seconds_of(p, bits, target);
  return s.whole >= cost::kQuantizedGain * s.quantized ? s.whole - s.quantized : 0;
}

double quantized_seconds(const Problem& p, int bits, const Target& target) { return seconds_of(p, bits, target).quantized; }

QuantizedTiles choose_quantized(const Problem& p, int bits, const Target& target) {
  QuantizedTiles t;
  t.bits = bits;
  const int vectors = vectors_of(p.m.typical, target);
  t.side = !target.has.tall_tiles || vectors % kSide != 0 ? 1 : kSide;
  t.vectors = vectors / t.side;
  const std::int64_t panels = ceil_div(p.n.typical, std::int64_t{t.vectors} * target.vector_width),
                     items = kItems * target.compute_units * t.side;
  t.panels = std::max<std::int64_t>(1, p.g.typical * panels / items) * t.side;
  return t;
}

}  // namespace oclc
