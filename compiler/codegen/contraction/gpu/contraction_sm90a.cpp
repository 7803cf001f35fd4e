#include "compiler/codegen/contraction/gpu/contraction_sm90a.h"

namespace oclc {

TemplateValues gpu_values(std::string_view name, const TemplateValues& values) {
  return values_of(name, values,
                   {"contraction_gpu", "contraction_mma_gpu", "contraction_unit_gpu", "contraction_sm90a",
                    "contraction_f16x2_sm90a", "contraction_f16_sm90a"});
}

namespace {

TemplateValues with_tiles(const Sm90aTiles& tiles, TemplateValues values) {
  auto& p = values.parameters;
  p["WARPGROUPS"] = std::to_string(tiles.warpgroups);
  p["BN"] = std::to_string(tiles.columns);
  p["STAGES"] = std::to_string(tiles.stages);
  if (tiles.halves) {
    p["ROWS"] = std::to_string(tiles.rows);
    p["UNITS"] = std::to_string(tiles.groups_of_unit);
    if (tiles.line > 0) {
      p["LINE"] = std::to_string(tiles.line);
      p["MORE_ROWS"] = std::to_string(tiles.loads_more ? tiles.more_positions() : 0);
      p["SLOTS"] = std::to_string(Sm90aTiles::kSlots);
    }
    p["PARTS"] = p.at("SPLIT") == "1" ? "2" : "1";
    // Elements are copied one by one, whatever their neighbours.
    if (const auto width = p.find("AV"); width != p.end() && width->second == "1") p["A_ALONG_K"] = "1";
  } else {
    p["KB"] = std::to_string(tiles.sum_depth);
    p["LOADERS"] = std::to_string(tiles.loaders);
    p["AHEAD"] = tiles.ahead ? "1" : "0";
  }
  return gpu_values(tiles.template_name(), values);
}

}  // namespace

std::string sm90a_tile_body(const Sm90aTiles& tiles, TemplateValues values) {
  return expand_tile_body(tiles.template_name(), with_tiles(tiles, std::move(values)));
}

std::string sm90a_macro(const Sm90aTiles& tiles, std::string_view macro, TemplateValues values) {
  return expand_macro(tiles.template_name(), macro, with_tiles(tiles, std::move(values)));
}

}  // namespace oclc
