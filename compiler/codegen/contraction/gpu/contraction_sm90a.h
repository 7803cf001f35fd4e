// Contractions on the matrix units of NVIDIA's sm_90a: the templates contraction_sm90a.cl and
// contraction_f16x2_sm90a.cl.
#pragma once
#include <string>

#include "compiler/codegen/text/template_text.h"
#include "compiler/contraction/gpu/sm90a_tiles.h"

namespace oclc {

// What template `name` takes of values that all templates of products on GPUs are given, contraction_gpu.cl and those before
// which it stands in.
TemplateValues gpu_values(std::string_view name, const TemplateValues& values);
// Body of the tile function, its loads and epilogue as `values` give them to contraction_gpu.cl; what a macro of the template
// comes to, such as SPACE, the floats of its local array.
std::string sm90a_tile_body(const Sm90aTiles& tiles, TemplateValues values);
std::string sm90a_macro(const Sm90aTiles& tiles, std::string_view macro, TemplateValues values);

}  // namespace oclc
