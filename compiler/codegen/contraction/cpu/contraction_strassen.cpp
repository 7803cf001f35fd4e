#include "compiler/codegen/contraction/cpu/contraction_strassen.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/cpu/strassen.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Elements of a term and a column of the constant operand.
float element_of(const HostTensor& b, const PackedOperand& where, std::int64_t k, std::int64_t n, std::int64_t columns) {
  if (n >= columns) return 0;
  const auto at = where.base + where.tap_offsets[0] + k * where.inner_stride + n * where.column_stride;
  return reinterpret_cast<const float*>(b.data())[at];
}

struct PackedHalves {
  std::int64_t columns, inner, terms, panel_width, panels_of_item;
};

// The halves of columns and terms on the right, in the order of the template, which combines them: seven combinations would be
// 7 / 4 as many bytes.
HostTensor pack_halves_of(const HostTensor& source, const PackedOperand& where, const PackedHalves& f) {
  const std::int64_t panels = ceil_div(f.columns, 2 * f.panel_width), factor = f.terms * f.panel_width;
  HostTensor packed(DType::f32, {panels * f.inner / (2 * f.terms) * kStrassenBlocks * factor});
  auto* to = reinterpret_cast<float*>(packed.mutable_data());
  for (std::int64_t first = 0; first < panels; first += f.panels_of_item) {
    const std::int64_t end = std::min(panels, first + f.panels_of_item);
    for (std::int64_t k0 = 0; k0 < f.inner; k0 += 2 * f.terms) {
      for (std::int64_t panel = first; panel < end; ++panel, to += kStrassenBlocks * factor) {
        for (std::int64_t t = 0; t < f.terms; ++t) {
          for (std::int64_t j = 0; j < f.panel_width; ++j) {
            const std::int64_t n = panel * 2 * f.panel_width + j;
            const auto at = [&](std::int64_t h, std::int64_t side) {
              return element_of(source, where, k0 + h * f.terms + t, n + side * f.panel_width, f.columns);
            };
            for (std::int64_t q = 0; q < kStrassenBlocks; ++q) to[q * factor + t * f.panel_width + j] = at(q / 2, q % 2);
          }
        }
      }
    }
  }
  return packed;
}

struct HalvedProduct {
  std::size_t kernel;
  double gain, error;
};

// Those of `kernels` whose results another product needs, by whatever way, in the same run: state that a run leaves is for the
// next.
std::set<std::size_t> needed_by_products(const Schedule& schedule, const std::vector<std::size_t>& kernels) {
  std::set<int> read;
  std::set<std::size_t> needed;
  for (bool grows = true; grows;) {
    grows = false;
    for (auto it = kernels.rbegin(); it != kernels.rend(); ++it) {
      const Kernel& kernel = schedule.kernels[*it];
      const auto is_read = [&](const Operand& o) {
        const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(o.buffer)];
        return o.written && buffer.kind != BufferKind::state && buffer.replaces < 0 && read.count(o.buffer) > 0;
      };
      if (std::any_of(kernel.operands.begin(), kernel.operands.end(), is_read)) needed.insert(*it);
      if (!kernel.contraction && needed.count(*it) == 0) continue;
      for (const Operand& o : kernel.operands) grows = (!o.written && read.insert(o.buffer).second) || grows;
    }
  }
  return needed;
}

std::optional<HalvedProduct> halved_product(const Schedule& schedule, std::size_t index, const Target& target) {
  const Kernel& kernel = schedule.kernels[index];
  const auto view = kernel.contraction && !kernel.contraction->integers ? ContractionView::of(kernel) : std::nullopt;
  const auto gain = view ? strassen_gain(problem_of(*view, schedule.buffers), target) : std::nullopt;
  return gain ? std::optional(HalvedProduct{index, gain->cycles, gain->error}) : std::nullopt;
}

class StrassenCode {
 public:
  StrassenCode(const ContractionView& view, const StrassenShape& shape, const StrassenTiles& tiles, const Target& target)
      : view_(view), shape_(shape), tiles_(tiles), target_(target), panel_width_(tiles.vectors * target.vector_width) {}

  GeneratedKernel run(const std::vector<Buffer>& buffers) {
    Kernel kernel = view_.kernel();
    TileKernel tile;
    tile.template_name = "contraction_strassen_cpu";
    view_.fill_sizes(values_);
    fill_parameters();
    fill_left();
    if (shape_.copy_of_right > 0) {
      copy_right();
    } else {
      kernel.operands[static_cast<std::size_t>(view_.b().operand)].replaced = true;
      tile.constants.push_back(pack_b(buffers));
    }
    auto& holes = values_.holes;
    holes["EPILOGUE"] = contraction_epilogue(view_, target_.vector_width, false);
    holes["STORE"] = "";
    holes["C_ROW"] = "";
    tile.groups = ceil_div(view_.rows(), Expr(2 * tiles_.row_tiles * tiles_.rows)) *
                  Expr(ceil_div(ceil_div(shape_.columns, 2 * panel_width_), tiles_.panels));
    tile.schedule = fmt::format("template {}, tile {} x {} of pairs, {} x {} tiles a group, chunks of {} pairs of terms",
                                tile.template_name, tiles_.rows, panel_width_, tiles_.row_tiles, tiles_.panels, tiles_.terms);
    tile.local_name = "block";
    tile.local_macro = "LOCAL_FLOATS";
    tile.values = std::move(values_);
    return assemble(kernel, std::move(tile));
  }

 private:
  void fill_parameters() {
    auto& p = values_.parameters;
    p["VW"] = std::to_string(target_.vector_width);
    p["MR"] = std::to_string(tiles_.rows);
    p["NV"] = std::to_string(tiles_.vectors);
    p["KC"] = std::to_string(tiles_.terms);
    p["MT"] = std::to_string(tiles_.row_tiles);
    p["NP"] = std::to_string(tiles_.panels);
    p["EPILOGUE_UNROLL"] = has_cheap_epilogue(view_) ? "2" : "1";
  }

  void fill_left() {
    const Axis& lanes = shape_.rows_innermost ? view_.axis(view_.roles().m[0]) : view_.inner_axis();
    values_.holes["A_ELEMENTS"] = elements_of_a(view_, lanes.name, target_.vector_width, view_.group_coordinates());
    if (!shape_.rows_innermost) return;
    values_.parameters["ROWS_INNERMOST"] = "1";
    values_.parameters["BR"] = std::to_string(bundle_rows(tiles_, target_));
    values_.holes["A_LAST_ROWS"] = last_rows_of_a(view_);
  }

  void copy_right() {
    auto& p = values_.parameters;
    p["B_COPIED"] = "1";
    values_.holes["PACK_B"] = copy_of_panels(view_, target_.vector_width, 2 * panel_width_);
    if (ask_for_lines(view_, shape_.rows_innermost, target_.vector_width, values_)) p["ASK_AHEAD"] = "1";
  }

  OwnConstant pack_b(const std::vector<Buffer>& buffers) {
    const Buffer& weights = buffers[static_cast<std::size_t>(view_.operand_of(view_.b()).buffer)];
    values_.parameters["NEXT"] = std::to_string(ceil_div(panel_width_, tiles_.row_tiles));
    values_.holes["B_POINTER"] = fmt::format("const __global float* w = weights + (size_t)panel_begin * {};\n",
                                             shape_.inner / 2 * kStrassenBlocks * panel_width_);
    return own_constant("weights", weights.name + ".halves",
                        pack_halves_of(weights.constant, *constant_b_layout(view_, buffers),
                                       {shape_.columns, shape_.inner, tiles_.terms, panel_width_, tiles_.panels}));
  }

  const ContractionView& view_;
  const StrassenShape& shape_;
  const StrassenTiles& tiles_;
  const Target& target_;
  const std::int64_t panel_width_;
  TemplateValues values_;
};

}  // namespace

void strassen(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  const double error = context.error_budget / 2;
  for (const EntrySchedule& entry : schedule.entries) {
    std::vector<std::size_t> kernels;
    for (const Step& step : entry.steps) {
      for (const Kernel* kernel : kernels_of(schedule, step))
        kernels.push_back(static_cast<std::size_t>(kernel - schedule.kernels.data()));
    }
    std::vector<HalvedProduct> all;
    for (const std::size_t i : kernels) {
      if (const auto c = halved_product(schedule, i, target)) all.push_back(*c);
    }
    std::stable_sort(all.begin(), all.end(), [](const HalvedProduct& a, const HalvedProduct& b) { return a.gain > b.gain; });
    const std::set<std::size_t> needed = needed_by_products(schedule, kernels);
    double left = error * error, last = 0;
    for (const HalvedProduct& c : all) {
      // Errors of what no other product needs, as gradients of weights, do not meet: the largest counts.
      const bool meets = needed.count(c.kernel) > 0;
      const double square = c.error * c.error, added = meets ? square : std::max(0.0, square - last);
      if (added > left) continue;
      left -= added;
      if (!meets) last = std::max(last, square);
      schedule.kernels[c.kernel].contraction->asked = StrategyId::strassen;
    }
  }
}

GeneratedKernel emit_strassen(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                              const Target& target) {
  const auto shape = strassen_shape(problem_of(view, buffers), target);
  OCLC_CHECK(shape, "a product of quadrants");
  return StrassenCode(view, *shape, std::get<StrassenTiles>(choice.tiles), target).run(buffers);
}

}  // namespace oclc
