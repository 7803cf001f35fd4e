#include "compiler/codegen/contraction_short_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction_epilogue.h"
#include "compiler/codegen/contraction_gpu_loads.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/scope.h"
#include "compiler/codegen/template_text.h"
#include "compiler/kernels/short_products.h"

namespace oclc {
namespace {

constexpr std::string_view kShortTemplate = "contraction_short_gpu", kStandIn = "contraction_gpu";
constexpr int kColumnsOfStore = 4, kStandInDepth = 16, kStandInSide = 4, kStandInChain = 16;

}  // namespace

std::optional<GeneratedKernel> generate_short_gpu(const ContractionView& view, const Target& target, bool is_part) {
  const Kernel& kernel = view.kernel();
  const auto tiles = short_product_tiles(kernel, target, is_part);
  if (!tiles) return std::nullopt;
  const GpuLoad a = load_of_a(view), b = load_of_b(view);
  if (a.width == 1 || b.width == 1 || !a.along_k || !b.along_k) return std::nullopt;
  TemplateValues values;
  view.fill_sizes(values);
  std::string group;
  for (const std::string& line : view.group_coordinates()) group += line + "\n";
  values.holes["GROUP"] = group;
  values.holes["A_ELEMENTS"] = a.text;
  values.holes["B_ELEMENTS"] = b.text;
  values.holes["EPILOGUE"] = contraction_epilogue(view, kColumnsOfStore, true);
  auto& p = values.parameters;
  const auto set = [&](const char* name, std::int64_t value) { p[name] = std::to_string(value); };
  set("BM", tiles->rows);
  set("BN", tiles->columns);
  TemplateValues stand_in = values;
  set("WN", tiles->warp_columns);
  set("SHARERS", tiles->sharers);
  set("AHEAD", tiles->ahead);
  set("SPLIT", target.products == Products::split ? 1 : 0);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{{"A_ALONG_K", 1},
                                                                                      {"B_ALONG_K", 1},
                                                                                      {"BK", kStandInDepth},
                                                                                      {"TM", kStandInSide},
                                                                                      {"TN", kStandInSide},
                                                                                      {"CHAIN", kStandInChain},
                                                                                      {"SURPLUS", 1}})
    stand_in.parameters[name] = std::to_string(value);
  GeneratedKernel g;
  g.name = kernel.name;
  g.groups = {view.groups() * ceil_div(view.rows(), Expr(tiles->rows)) * ceil_div(view.columns(), Expr(tiles->columns))};
  g.local = {static_cast<std::uint32_t>(target.work_group)};
  g.schedule = fmt::format("template {}, tile {} x {}, {} sub-groups share its terms, or template {}", kShortTemplate,
                           tiles->rows, tiles->columns, tiles->sharers, kStandIn);
  g.arguments = arguments_of(kernel);
  g.head = kernel_head(kernel, g);
  g.local_floats = std::to_string(std::max(std::stoul(expand_macro(kShortTemplate, "SPACE", values)),
                                           std::stoul(expand_macro(kStandIn, "2 * STAGE", stand_in))));
  const auto function = [&](std::string_view name, const TemplateValues& with) {
    return fmt::format("void {}_tile({}, const int tile, __local float* restrict space) {{\n{}}}\n", g.name,
                       parameter_list(kernel, false), expand_tile_body(name, with));
  };
  g.tile_source = fmt::format("#if OCLC_NV_SM >= 80\n{}#else\n{}#endif\n\n", function(kShortTemplate, values),
                              function(kStandIn, stand_in));
  g.source = g.tile_source + fmt::format(
                                 "__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n"
                                 "  __local float space[{}] __attribute__((aligned(16)));\n"
                                 "  {}_tile({}, (int)get_group_id(0), space);\n}}\n",
                                 target.work_group, g.name, parameter_list(kernel, true), g.local_floats, g.name,
                                 argument_list(kernel));
  return g;
}

}  // namespace oclc
