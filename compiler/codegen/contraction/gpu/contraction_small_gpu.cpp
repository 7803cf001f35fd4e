#include "compiler/codegen/contraction/gpu/contraction_small_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"
#include "compiler/codegen/contraction/gpu/pack_f16.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kShortTemplate = "contraction_small_gpu", kStandIn = "contraction_gpu";
constexpr const char* kWeights = "weights";
constexpr std::int64_t kMaskBits = 32;  // bits of a mask
constexpr int kColumnsOfFragment = 8, kColumnsOfStore = 4, kStandInDepth = 16, kStandInSide = 4, kStandInChain = 16;

// Blocks of 8 columns and 32 terms, as the registers of a sub-group hold them.
HalvesLayout fragments_of(const ContractionView& view) {
  HalvesLayout layout;
  layout.groups = view.groups().value();
  layout.columns = view.columns().value();
  layout.inner = view.inner().value();
  layout.taps = view.taps();
  layout.tile_columns = kColumnsOfFragment;
  layout.parts = 1;
  layout.flat = layout.fragments = true;
  return layout;
}

// B as such blocks, a constant of the kernel's own in B's place; nothing where its elements' places are not known.
std::optional<Buffer> pack_b(const ContractionView& view, const std::vector<Buffer>& buffers, const HalvesLayout& layout,
                             Kernel& kernel) {
  const auto where = constant_b_layout(view, buffers);
  if (!where) return std::nullopt;
  const Buffer& source = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  kernel.operands[static_cast<std::size_t>(view.b().operand)].replaced = !view.is_read_elsewhere(view.b());
  return own_constant(kWeights, source.name + ".fragments", pack_halves(source.constant, *where, layout)).buffer;
}

}  // namespace

GeneratedKernel emit_small_gemm(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                                const Target& target) {
  Kernel kernel = view.kernel();
  const auto* tiles = &std::get<ShortTiles>(choice.tiles);
  const GpuLoad a = load_of_a(view);
  GpuLoad b = load_of_b(view);
  TemplateValues values;
  std::optional<Buffer> packed;
  if (tiles->halves) {
    const HalvesLayout layout = fragments_of(view);
    packed = pack_b(view, buffers, layout, kernel);
    OCLC_CHECK(packed, "weights whose elements lie at known strides");
    b.text = packed_halves_text(layout, kWeights);
    values.parameters["WEIGHTS"] = kWeights;
    values.parameters["SCALES_AT"] = std::to_string(layout.scales_at());
  }
  view.fill_sizes(values);
  std::string group;
  for (const std::string& line : view.group_coordinates()) group += line + "\n";
  values.holes["GROUP"] = group;
  values.holes["A_ROW"] = a.row;
  values.holes["A_STEP"] = a.step;
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
  set("MASKS", !a.row.empty() && a.edges_of_taps && view.taps() > 1 && view.taps() <= kMaskBits ? 1 : 0);
  set("HALVES", tiles->halves ? 1 : 0);
  set("SPLIT", target.precision.splits_operands() ? 1 : 0);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{{"A_ALONG_K", 1},
                                                                                      {"B_ALONG_K", 1},
                                                                                      {"BK", kStandInDepth},
                                                                                      {"TM", kStandInSide},
                                                                                      {"TN", kStandInSide},
                                                                                      {"CHAIN", kStandInChain},
                                                                                      {"SURPLUS", 1}})
    stand_in.parameters[name] = std::to_string(value);
  stand_in = values_of(kStandIn, stand_in, {kShortTemplate, kStandIn});
  GeneratedKernel g;
  g.name = kernel.name;
  g.groups = {view.groups() * ceil_div(view.rows(), Expr(tiles->rows)) * ceil_div(view.columns(), Expr(tiles->columns))};
  g.local = {static_cast<std::uint32_t>(target.work_group)};
  g.schedule = fmt::format("template {}, tile {} x {}, {} sub-groups share its terms, or template {}", kShortTemplate,
                           tiles->rows, tiles->columns, tiles->sharers, kStandIn);
  g.arguments = arguments_of(kernel);
  std::string tile_parameters = parameter_list(kernel, false), parameters = parameter_list(kernel, true),
              arguments = argument_list(kernel);
  if (packed) {
    g.arguments.push_back({.operand = static_cast<int>(kernel.operands.size())});
    g.packed.push_back(std::move(*packed));
    tile_parameters += fmt::format(", __global const float* {}", kWeights);
    parameters += fmt::format(", __global const float* {0}, const long {0}_at", kWeights);
    arguments += fmt::format(", {0} + {0}_at", kWeights);
  }
  g.head = kernel_head(kernel, g);
  g.local_floats = std::to_string(std::max(std::stoul(expand_macro(kShortTemplate, "SPACE", values)),
                                           std::stoul(expand_macro(kStandIn, "2 * STAGE", stand_in))));
  const auto function = [&](std::string_view name, const TemplateValues& with) {
    return fmt::format("void {}_tile({}, const int tile, __local float* restrict space) {{\n{}}}\n", g.name, tile_parameters,
                       expand_tile_body(name, with));
  };
  g.tile_source = fmt::format("#if OCLC_NV_SM >= 80\n{}#else\n{}#endif\n\n", function(kShortTemplate, values),
                              function(kStandIn, stand_in));
  g.source = g.tile_source + fmt::format(
                                 "__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n"
                                 "  __local float space[{}] __attribute__((aligned(16)));\n"
                                 "  {}_tile({}, (int)get_group_id(0), space);\n}}\n",
                                 target.work_group, g.name, parameters, g.local_floats, g.name, arguments);
  return g;
}

}  // namespace oclc
