// Contractions on the matrix units of NVIDIA's sm_90a: the template contraction_sm90a.cl.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "compiler/codegen/template_text.h"
#include "compiler/kernels/gpu_tiles.h"

namespace oclc {

// Parameters of the template, and the tiles of contraction_gpu.cl that do the same launch's work where the matrix units are
// missing.
struct Sm90aTiles {
  int warpgroups = 2, columns = 128, sum_depth = 16, stages = 3;
  int groups_of_unit = 1;  // that run at once on a compute unit
  int loaders = 128;
  bool ahead = true;
  GpuTiles portable;

  int items() const { return warpgroups * 128 + loaders; }
};

// The tiles that beat those of contraction_gpu.cl by estimate; nothing if none do or if the target has no such units.
std::optional<Sm90aTiles> choose_sm90a_tiles(const GpuProduct& product, const GpuTiles& rival, const Target& target);
// Body of the tile function, its loads and epilogue as `values` give them to contraction_gpu.cl, and floats of its local array.
std::string sm90a_tile_body(const Sm90aTiles& tiles, TemplateValues values);
std::string sm90a_local_floats(const Sm90aTiles& tiles, TemplateValues values);

}  // namespace oclc
