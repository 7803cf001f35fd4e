#include "compiler/codegen/contraction/cpu/contraction_short.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/cpu/pack_short.h"
#include "compiler/codegen/contraction/tile_kernel.h"

namespace oclc {
namespace {

// Rows of one register tile.
constexpr std::int64_t kMostRows = 4;
// Weights of fewer bytes stay in the last cache from run to run, beside what other processes keep there.
constexpr std::int64_t kLastCacheSize = 8 << 20;
// Cycles in which a vector of weights becomes floats, and the time that has to be saved: measured.
constexpr double kUnpackCycles = 2.5, kWorthwhile = 1.2;
// Bytes by which weights are asked for ahead.
constexpr std::int64_t kAheadBytes = 2560;
// Of an element beside its upper 16.
constexpr int kShortBits = 4, kLongerBits = 8;
// Panels that are read side by side where registers are many.
constexpr int kSide = 2;
// Work-items a core, so that none waits long for the others.
constexpr std::int64_t kItems = 16;

bool reads_short(const ContractionView& view, const ContractionChoice& choice) {
  return choice.constant_b && choice.local_copy == LocalCopy::none && view.rows().is_constant() &&
         view.rows().value() <= kMostRows && view.stored_type(view.a()) == DType::f32 &&
         view.stored_type(view.b()) == DType::f32 && !view.is_read_elsewhere(view.b());
}

std::int64_t weight_bytes(const ContractionView& view) {
  return view.groups().value() * view.inner().value() * view.taps() * view.columns().value() * 4;
}

// Seconds that weights of so many bits save; 0 if they are not worth it.
double saved_seconds(const ContractionView& view, int bits, const Target& target) {
  const double width = target.vector_width, rows = static_cast<double>(view.rows().value()),
               cycles_per_second = target.flops / (4 * width);
  const double bytes = static_cast<double>(weight_bytes(view)), vectors = bytes / (4 * width);
  const double whole = std::max(bytes / target.bytes_per_second, vectors * rows / 2 / cycles_per_second),
               shorter = std::max(bytes * bits / 32 / target.bytes_per_second,
                                  vectors * (kUnpackCycles + rows / 2) / cycles_per_second);
  return whole >= kWorthwhile * shorter ? whole - shorter : 0;
}

ShortLayout layout_of(const ContractionView& view, std::int64_t panel_width, std::string_view strategy) {
  return {view.groups().value(), view.columns().value(), view.inner().value(), panel_width,
          strategy == kShortWeights ? kShortBits : kLongerBits};
}

int vectors_of(std::int64_t rows, const Target& target) {
  int vectors = 4;
  while (vectors > 1 && rows * vectors + vectors + 4 > target.vector_registers) --vectors;
  return vectors;
}

struct Form {
  std::string_view strategy;
  double seconds = 0, error = 0;
};

struct Candidate {
  std::size_t kernel = 0;
  std::vector<Form> forms;  // those that save time, the shortest first
};

std::vector<Form> forms_of(const ContractionView& view, const HostTensor& weights, const PackedOperand& where,
                           const Target& target) {
  std::vector<Form> found;
  for (const std::string_view strategy : {kShortWeights, kLongerWeights}) {
    const ShortLayout layout = layout_of(view, target.vector_width, strategy);
    if (const double seconds = saved_seconds(view, layout.bits(), target); seconds > 0)
      found.push_back({strategy, seconds, short_error(weights, where, layout)});
  }
  return found;
}

std::vector<Candidate> candidates(const Schedule& schedule, const EntrySchedule& entry, const Target& target) {
  std::vector<Candidate> found;
  std::int64_t bytes = 0;
  std::set<int> kernels;
  for (const Step& step : entry.steps) {
    if (step.kernel < 0 || !kernels.insert(step.kernel).second) continue;
    const auto index = static_cast<std::size_t>(step.kernel);
    if (!schedule.kernels[index].contraction) continue;
    const auto view = ContractionView::of(schedule.kernels[index]);
    const auto where = view ? constant_b_layout(*view, schedule.buffers) : std::nullopt;
    if (!where) continue;
    bytes += weight_bytes(*view);
    const auto choice = choose_contraction(*view, schedule.buffers, target);
    if (!choice || !reads_short(*view, *choice)) continue;
    const Buffer& weights = schedule.buffers[static_cast<std::size_t>(view->operand_of(view->b()).buffer)];
    std::vector<Form> forms = forms_of(*view, weights.constant, *where, target);
    if (!forms.empty()) found.push_back({index, std::move(forms)});
  }
  if (bytes <= kLastCacheSize) found.clear();
  return found;
}

}  // namespace

void shorten_weights(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  const double error = context.error_budget / 2;
  for (const EntrySchedule& entry : schedule.entries) {
    std::vector<Candidate> all = candidates(schedule, entry, target);
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.forms[0].seconds > b.forms[0].seconds; });
    double left = error * error;
    for (const Candidate& c : all) {
      const auto form = std::find_if(c.forms.begin(), c.forms.end(), [&](const Form& f) { return f.error * f.error <= left; });
      if (form == c.forms.end()) continue;
      left -= form->error * form->error;
      schedule.kernels[c.kernel].contraction->strategy = form->strategy;
    }
  }
}

std::optional<GeneratedKernel> generate_short(const ContractionView& view, const std::vector<Buffer>& buffers,
                                              const Target& target) {
  const std::string& strategy = view.roles().strategy;
  if (strategy != kShortWeights && strategy != kLongerWeights) return std::nullopt;
  const auto choice = choose_contraction(view, buffers, target);
  if (!choice || !reads_short(view, *choice)) return std::nullopt;
  const std::int64_t rows = view.rows().value();
  ContractionChoice shape = *choice;
  const int vectors = vectors_of(rows, target), side = has_few_registers(target) || vectors % kSide != 0 ? 1 : kSide;
  shape.tiles = {static_cast<int>(rows), vectors / side};
  shape.panel_width = std::int64_t{shape.tiles.vectors} * target.vector_width;
  const std::int64_t panels = ceil_div(view.columns().value(), shape.panel_width), items = kItems * target.compute_units * side,
                     of_item = std::max<std::int64_t>(1, view.groups().value() * panels / items) * side;
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  const ShortLayout layout = layout_of(view, shape.panel_width, strategy);
  auto packed = pack_short(weights.constant, *choice->constant_b, layout);
  if (!packed) return std::nullopt;
  Kernel kernel = view.kernel();
  kernel.operands[static_cast<std::size_t>(view.b().operand)].replaced = true;
  TileKernel tile;
  tile.template_name = "contraction_short_cpu";
  tile.constants.push_back(own_constant("weights", weights.name + ".packed", std::move(*packed)));
  if (auto zeros = padding_zeros(view, shape)) tile.constants.push_back(own_constant("zero", "zero", std::move(*zeros)));
  view.fill_sizes(tile.values);
  auto& p = tile.values.parameters;
  p["LOWER"] = std::to_string(layout.lower_bits);
  p["VW"] = std::to_string(target.vector_width);
  p["NV"] = std::to_string(shape.tiles.vectors);
  p["SIDE"] = std::to_string(side);
  p["NP"] = std::to_string(of_item);
  p["AHEAD"] = std::to_string(kAheadBytes / 4);
  if (const auto step = view.a().index.coefficient(view.inner_axis().name))
    p["A_STEP"] = fmt::format("({})", view.c_text(*step));
  fill_operands(view, shape, target, tile.values);
  tile.values.holes["EPILOGUE"] = contraction_epilogue(view, target.vector_width, false);
  tile.values.holes["STORE"] = "";
  tile.values.holes["C_ROW"] = "";
  tile.groups = view.groups() * Expr(ceil_div(panels, of_item));
  tile.schedule = fmt::format("template {}, {} rows, weights in {} bits, {} panels of {} columns a group", tile.template_name,
                              rows, layout.bits(), of_item, shape.panel_width);
  return assemble(kernel, std::move(tile));
}

}  // namespace oclc
