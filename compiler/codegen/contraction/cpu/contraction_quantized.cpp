#include "compiler/codegen/contraction/cpu/contraction_quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/cpu/pack_narrow.h"
#include "compiler/codegen/contraction/cpu/pack_short.h"
#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/cpu/fma.h"
#include "compiler/contraction/cpu/quantized.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Weights of fewer bytes stay in the last cache from run to run, beside what other processes keep there.
constexpr std::int64_t kLastCacheSize = 8 << 20;
// Software prefetch distance of the weights.
constexpr std::int64_t kPrefetchBytes = 2560;
ShortLayout layout_of(const ContractionView& view, std::int64_t panel_width, int bits) {
  return {view.groups().value(), view.columns().value(), view.inner().value(), panel_width, bits - 16};
}

struct Form {
  StrategyId strategy = StrategyId::quantized_20;
  double seconds = 0, error = 0;
};

struct Quantizable {
  std::size_t kernel = 0;
  std::vector<Form> forms;  // those that save time, the shortest first
};

std::optional<NarrowForm> narrow_form_of(const ContractionView& view, const std::vector<Buffer>& buffers) {
  const auto where = constant_b_layout(view, buffers);
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  return where ? narrow_form(weights.constant, *where, view.groups().value(), view.columns().value(), view.inner().value())
               : std::nullopt;
}

std::vector<Form> forms_of(const ContractionView& view, const Problem& problem, const HostTensor& weights,
                           const PackedOperand& where, const Target& target) {
  std::vector<Form> found;
  // Weights of quantised models, which lose nothing.
  if (const auto narrow = narrow_form(weights, where, view.groups().value(), view.columns().value(), view.inner().value())) {
    if (const double seconds = saved_by_bits(problem, narrow->bits, target); seconds > 0)
      found.push_back({narrow->bits == 4 ? StrategyId::quantized_4 : StrategyId::quantized_8, seconds, 0});
  }
  for (const auto& [strategy, bits] : {std::pair(StrategyId::quantized_20, 20), std::pair(StrategyId::quantized_24, 24)}) {
    if (const double seconds = saved_by_bits(problem, bits, target); seconds > 0)
      found.push_back({strategy, seconds, short_error(weights, where, layout_of(view, target.vector_width, bits))});
  }
  return found;
}

std::vector<Quantizable> candidates(const Schedule& schedule, const EntrySchedule& entry, const Target& target) {
  std::vector<Quantizable> found;
  std::int64_t bytes = 0;
  std::set<int> kernels;
  for (const Step& step : entry.steps) {
    if (!step.is_kernel() || !kernels.insert(step.kernel()).second) continue;
    const auto index = static_cast<std::size_t>(step.kernel());
    if (!schedule.kernels[index].contraction || schedule.kernels[index].contraction->integers) continue;
    const auto view = ContractionView::of(schedule.kernels[index]);
    const auto where = view ? constant_b_layout(*view, schedule.buffers) : std::nullopt;
    if (!where) continue;
    const Problem problem = problem_of(*view, schedule.buffers);
    bytes += weight_bytes(problem);
    if (!can_quantize(problem, choose_fma(problem, target))) continue;
    const Buffer& weights = schedule.buffers[static_cast<std::size_t>(view->operand_of(view->b()).buffer)];
    std::vector<Form> forms = forms_of(*view, problem, weights.constant, *where, target);
    if (!forms.empty()) found.push_back({index, std::move(forms)});
  }
  if (bytes <= kLastCacheSize) found.clear();
  return found;
}

}  // namespace

void quantize_weights(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  const double error = context.error_budget / 2;
  for (const EntrySchedule& entry : schedule.entries) {
    std::vector<Quantizable> all = candidates(schedule, entry, target);
    std::stable_sort(all.begin(), all.end(),
                     [](const Quantizable& a, const Quantizable& b) { return a.forms[0].seconds > b.forms[0].seconds; });
    double left = error * error;
    for (const Quantizable& c : all) {
      const auto form = std::find_if(c.forms.begin(), c.forms.end(), [&](const Form& f) { return f.error * f.error <= left; });
      if (form == c.forms.end()) continue;
      left -= form->error * form->error;
      schedule.kernels[c.kernel].contraction->asked = form->strategy;
    }
  }
}

bool can_store_quantized(const ContractionView& view, int bits, const std::vector<Buffer>& buffers) {
  if (bits <= 8) {
    const auto form = narrow_form_of(view, buffers);
    return form && form->bits == bits;
  }
  const auto where = constant_b_layout(view, buffers);
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  return where && has_short_form(weights.constant, *where, layout_of(view, 1, bits));
}

GeneratedKernel emit_quantized(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                               const Target& target) {
  const auto& tiles = std::get<QuantizedTiles>(choice.tiles);
  const bool is_narrow = tiles.bits <= 8;
  const std::int64_t rows = view.rows().value();
  OperandReads shape;
  shape.constant_b = constant_b_layout(view, buffers);
  shape.tiles = {static_cast<int>(rows), tiles.vectors};
  shape.panel_width = std::int64_t{tiles.vectors} * target.vector_width;
  const std::int64_t panels = ceil_div(view.columns().value(), shape.panel_width), of_item = tiles.panels;
  Kernel kernel = view.kernel();
  kernel.operands[static_cast<std::size_t>(view.b().operand)].replaced = true;
  TileKernel tile;
  tile.template_name = "contraction_quantized_cpu";
  view.fill_sizes(tile.values);
  auto& p = tile.values.parameters;
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  std::optional<HostTensor> packed;
  if (is_narrow) {
    const NarrowForm form = narrow_form_of(view, buffers).value();
    packed = pack_narrow(weights.constant, shape.constant_b.value(), view.groups().value(), view.columns().value(),
                         view.inner().value(), shape.panel_width, form);
    p["OFFSETS"] = form.offsets ? "1" : "0";
    p["BLOCK"] = std::to_string(form.block);
    p["PREFETCH_DISTANCE"] = std::to_string(kPrefetchBytes);
  } else {
    const ShortLayout layout = layout_of(view, shape.panel_width, tiles.bits);
    packed = pack_short(weights.constant, shape.constant_b.value(), layout);
    OCLC_CHECK(packed, "weights that have a form of fewer bits");
    p["PREFETCH_DISTANCE"] = std::to_string(kPrefetchBytes / 4);
  }
  tile.constants.push_back(own_constant("weights", weights.name + ".packed", std::move(*packed)));
  if (auto zeros = padding_zeros(view, shape)) tile.constants.push_back(own_constant("zero", "zero", std::move(*zeros)));
  p["BITS"] = std::to_string(tiles.bits);
  p["VW"] = std::to_string(target.vector_width);
  p["NV"] = std::to_string(shape.tiles.vectors);
  p["SIDE"] = std::to_string(tiles.side);
  p["NP"] = std::to_string(of_item);
  if (const auto step = view.a().index.coefficient(view.inner_axis().name))
    p["A_STEP"] = fmt::format("({})", view.c_text(*step));
  fill_operands(view, shape, target, tile.values);
  if (is_narrow)
    tile.values.holes["B_POINTER"] = "const __global char* w = weights + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;\n";
  tile.values.holes["EPILOGUE"] = contraction_epilogue(view, target.vector_width, false);
  tile.values.holes["STORE"] = "";
  tile.values.holes["C_ROW"] = "";
  tile.groups = view.groups() * Expr(ceil_div(panels, of_item));
  tile.schedule = fmt::format("template {}, {} rows, weights in {} bits, {} panels of {} columns a group", tile.template_name,
                              rows, tiles.bits, of_item, shape.panel_width);
  return assemble(kernel, std::move(tile));
}

}  // namespace oclc
