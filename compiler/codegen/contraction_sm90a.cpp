#include "compiler/codegen/contraction_sm90a.h"

#include <algorithm>

#include "compiler/codegen/tiling.h"

namespace oclc {
namespace {

constexpr std::string_view kTemplate = "contraction_sm90a";
// Three products of TF32 parts a second on all units, measured with large tiles, and what a step takes from load to use.
constexpr double kFlops = 110e12, kStepSeconds = 0.9e-6, kStartSeconds = 2e-6;
constexpr int kStepDepth = 32;

struct Candidate {
  Sm90aTiles tiles;
  double efficiency;  // of kFlops
};

constexpr Candidate kCandidates[] = {
    {{2, 128, 16, 3, 1, 256, false, {128, 128, 16, 8, 8}}, 1.0},
    {{2, 64, 16, 5, 1, 256, false, {128, 64, 16, 8, 4}}, 0.7},
    {{1, 64, 16, 3, 2, 128, true, {64, 64, 16, 4, 4}}, 0.5},
};

double seconds(const GpuProduct& p, const Candidate& c, const Target& target) {
  const std::int64_t units = std::max(1, target.compute_units), rows = std::int64_t{c.tiles.warpgroups} * 64;
  const auto waves =
      static_cast<double>(ceil_div(p.groups * ceil_div(p.rows, rows) * ceil_div(p.columns, c.tiles.columns), units));
  const auto steps = static_cast<double>(ceil_div(p.depth, kStepDepth));
  const double step =
      2.0 * static_cast<double>(rows) * c.tiles.columns * kStepDepth / (kFlops / static_cast<double>(units) * c.efficiency);
  return kStartSeconds + waves * steps * std::max(step, kStepSeconds);
}

TemplateValues with_tiles(const Sm90aTiles& tiles, TemplateValues values) {
  auto& p = values.parameters;
  p["OCLC_SM90A"] = "1";
  p["WARPGROUPS"] = std::to_string(tiles.warpgroups);
  p["BN"] = std::to_string(tiles.columns);
  p["KB"] = std::to_string(tiles.sum_depth);
  p["STAGES"] = std::to_string(tiles.stages);
  p["LOADERS"] = std::to_string(tiles.loaders);
  p["AHEAD"] = tiles.ahead ? "1" : "0";
  for (const char* own : {"BM", "BK", "TM", "TN", "CHAIN", "CHAINED", "SURPLUS"}) p.erase(own);
  return values;
}

}  // namespace

std::optional<Sm90aTiles> choose_sm90a_tiles(const GpuProduct& product, const GpuTiles& rival, const Target& target) {
  if (!target.sm90a) return std::nullopt;
  std::optional<Sm90aTiles> best;
  double least = kStartSeconds + gpu_product_seconds(product, rival, target);
  for (const Candidate& candidate : kCandidates) {
    const double time = seconds(product, candidate, target);
    if (time >= least) continue;
    least = time;
    best = candidate.tiles;
  }
  return best;
}

std::string sm90a_tile_body(const Sm90aTiles& tiles, TemplateValues values) {
  return expand_tile_body(kTemplate, with_tiles(tiles, std::move(values)));
}

std::string sm90a_local_floats(const Sm90aTiles& tiles, TemplateValues values) {
  return expand_macro(kTemplate, "SPACE", with_tiles(tiles, std::move(values)));
}

}  // namespace oclc
