#include "compiler/codegen/contraction_strassen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/codegen/contraction_epilogue.h"
#include "compiler/codegen/contraction_operands.h"
#include "compiler/codegen/tile_kernel.h"
#include "compiler/codegen/tiling.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

constexpr std::int64_t kSeven = 7, kBlocks = 4;
// Rows and columns from which on products are long enough; fewer rows wait for weights.
constexpr std::int64_t kLeastHalvedRows = 96, kLeastHalvedColumns = 64, kLeastHalvedTerms = 512;
// Pairs of terms of a chunk, a multiple of every vector's width; panels of a work-item; rows and vectors of a register tile.
constexpr std::int64_t kLeastPairs = 32, kMostPairs = 128, kMostItemPanels = 16;
constexpr int kFewestTileRows = 4, kMostTileRows = 14, kMostVectors = 4;
// Of the best tiles' cycles: what counts as better.
constexpr double kBetter = 0.995;
// Cycles, measured on a Zen 4: of a vector of pairs of rows and terms that is combined; start of a register tile; a vector of
// sums that is added up; a vector of pairs of rows and columns of results; start of a work-item.
constexpr double kCombineCycles = 30, kStartCycles = 10, kSumCycles = 1, kResultCycles = 8, kItemStart = 300;
// Of the other templates: start and end of a register tile, and a vector of its results.
constexpr double kPlainStart = 60, kPlainVector = 3;
// Bytes a cycle of right factors that come from memory, asked for ahead, and of what is not hidden.
constexpr double kFreshBytes = 8, kExposedBytes = 96;
// Of the second-level cache, whose rest the factors on the right, A and the results pass through: beyond it the gain is lost.
constexpr double kLocalShare = 0.5;
constexpr std::int64_t kLeftPitch = 16;
// Estimates are rough.
constexpr double kGainOfHalves = 1.03;
// Root of the mean square of the errors that such products add to those of eight, over that of the results, with chunks of 64
// pairs of terms and fewer: 3.1e-7 and 1.5e-7 together. Longer chains err as their root.
constexpr double kStrassenError = 2.7e-7;

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
  HostTensor packed(DType::f32, {panels * f.inner / (2 * f.terms) * kBlocks * factor});
  auto* to = reinterpret_cast<float*>(packed.mutable_data());
  for (std::int64_t first = 0; first < panels; first += f.panels_of_item) {
    const std::int64_t end = std::min(panels, first + f.panels_of_item);
    for (std::int64_t k0 = 0; k0 < f.inner; k0 += 2 * f.terms) {
      for (std::int64_t panel = first; panel < end; ++panel, to += kBlocks * factor) {
        for (std::int64_t t = 0; t < f.terms; ++t) {
          for (std::int64_t j = 0; j < f.panel_width; ++j) {
            const std::int64_t n = panel * 2 * f.panel_width + j;
            const auto at = [&](std::int64_t h, std::int64_t side) {
              return element_of(source, where, k0 + h * f.terms + t, n + side * f.panel_width, f.columns);
            };
            for (std::int64_t q = 0; q < kBlocks; ++q) to[q * factor + t * f.panel_width + j] = at(q / 2, q % 2);
          }
        }
      }
    }
  }
  return packed;
}

bool has_form(const ContractionView& view) {
  return view.groups() == Expr(1) && view.taps() == 1 && view.inner().is_constant() && view.columns().is_constant() &&
         view.stored_type(view.b()) == DType::f32 && !view.is_read_elsewhere(view.b());
}

StrassenShape strassen_shape(const ContractionView& view) {
  return {typical_extent(view.rows()), view.columns().value(), view.inner().value()};
}

bool left_takes_vectors(const ContractionView& view, const Target& target) {
  return can_vectorize(part_for(view.kernel(), view.roles().a), view.inner_axis().name, target.vector_width);
}

double strassen_error(const StrassenTiles& t) {
  return kStrassenError * std::sqrt(std::max(1.0, static_cast<double>(t.terms) / static_cast<double>(kLongestChain)));
}

// Cycles of a core by the other templates.
double plain_cycles(const StrassenShape& s, const Target& target) {
  const ContractionTiles t = choose_tiles({1, s.rows, s.columns, s.inner, s.inner * 4}, target);
  const std::int64_t panels = ceil_div(s.columns, std::int64_t{t.vectors} * target.vector_width),
                     row_tiles = ceil_div(s.rows, std::int64_t{t.rows}),
                     items = ceil_div(row_tiles, t.row_tiles) * ceil_div(panels, t.panels);
  const double tile =
      static_cast<double>(s.inner) * std::max(t.rows * t.vectors / 2.0, 4.0) + kPlainStart + kPlainVector * t.rows * t.vectors;
  return static_cast<double>(ceil_div(items, target.compute_units)) *
         (static_cast<double>(t.row_tiles * t.panels) * tile + kItemStart);
}

// A work-item's local memory: combinations of A, one of B, and the seven sums of its panels, or of one where a chunk is all
// terms.
std::int64_t local_floats(const StrassenTiles& t, const StrassenShape& s, std::int64_t width) {
  const std::int64_t pairs = t.row_tiles * t.rows, panels = s.inner > 2 * t.terms ? t.panels : 1;
  return kSeven * (pairs * (t.terms + kLeftPitch) + 16 + panels * (pairs * t.vectors * width + 16)) +
         t.terms * t.vectors * width;
}

// Cycles of a core.
double strassen_cycles(const StrassenTiles& t, const StrassenShape& s, const Target& target) {
  const std::int64_t width = target.vector_width, panel_width = t.vectors * width, pairs = t.row_tiles * t.rows,
                     items = ceil_div(ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows}), t.row_tiles) *
                             ceil_div(ceil_div(s.columns, 2 * panel_width), t.panels);
  const double step = std::max(t.rows * t.vectors / 2.0, 4.0),
               tile = static_cast<double>(t.terms) * step + kStartCycles + kSumCycles * t.rows * t.vectors,
               factor_bytes = static_cast<double>(t.terms * panel_width * 4 * kBlocks) / kSeven,
               factor =
                   std::max(static_cast<double>(t.row_tiles) * tile, factor_bytes / kFreshBytes) + factor_bytes / kExposedBytes,
               combine = static_cast<double>(pairs) * static_cast<double>(t.terms / width) * kCombineCycles,
               results = static_cast<double>(pairs * t.vectors * t.panels) * kResultCycles,
               chunks = static_cast<double>(s.inner / (2 * t.terms)),
               item = chunks * (static_cast<double>(t.panels * kSeven) * factor + combine) + results + kItemStart;
  return static_cast<double>(ceil_div(items, target.compute_units)) * item;
}

// Replaces `best` by a better one with the register tile and the terms of `t`: how many tiles and panels a work-item has.
void choose_items(StrassenTiles t, const StrassenShape& s, const Target& target, std::optional<StrassenTiles>& best) {
  const auto budget =
      std::min(static_cast<std::int64_t>(kLocalShare * static_cast<double>(target.l2_bytes)), target.local_bytes);
  const std::int64_t panels = ceil_div(s.columns, std::int64_t{2} * t.vectors * target.vector_width),
                     tiles = ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows});
  for (std::int64_t row_blocks = 1; row_blocks <= tiles; ++row_blocks) {
    t.row_tiles = ceil_div(tiles, row_blocks);
    if (ceil_div(tiles, t.row_tiles) != row_blocks) continue;
    for (t.panels = 1; t.panels <= std::min(panels, kMostItemPanels); ++t.panels) {
      if (local_floats(t, s, target.vector_width) * 4 > budget) break;
      t.cycles = strassen_cycles(t, s, target);
      if (!best || t.cycles < best->cycles * kBetter) best = t;
    }
  }
}

}  // namespace

std::optional<StrassenTiles> choose_strassen_tiles(const StrassenShape& s, const Target& target) {
  std::optional<StrassenTiles> best;
  StrassenTiles t;
  for (t.terms = kLeastPairs; t.terms <= kMostPairs; t.terms += target.vector_width) {
    if (s.inner % (2 * t.terms) != 0) continue;
    // Longer chains err more.
    if (best && t.terms > kLongestChain) break;
    for (t.vectors = 1; t.vectors <= kMostVectors; ++t.vectors) {
      for (t.rows = kFewestTileRows; t.rows <= kMostTileRows; ++t.rows) {
        if (t.rows * t.vectors + t.vectors + 1 <= target.vector_registers) choose_items(t, s, target, best);
      }
    }
  }
  return best;
}

void multiply_halves(Schedule& schedule, const Target& target, double error) {
  if (target.device_class != DeviceClass::cpu || target.vector_width < 4 || target.loop_iterations != Target::kNoLimit ||
      target.tile_products > 0 || target.careful_sums)
    return;
  struct Candidate {
    std::size_t kernel;
    double gain, error;
  };
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
    if (!schedule.kernels[i].contraction) continue;
    const auto view = ContractionView::of(schedule.kernels[i]);
    if (!view || view->roles().strategy.starts_with("conv_winograd") || !has_form(*view) ||
        !left_takes_vectors(*view, target) || !constant_b_layout(*view, schedule.buffers))
      continue;
    const StrassenShape shape = strassen_shape(*view);
    if (least_extent(view->rows()) < kLeastHalvedRows || shape.columns < kLeastHalvedColumns || shape.inner < kLeastHalvedTerms)
      continue;
    const auto tiles = choose_strassen_tiles(shape, target);
    if (!tiles) continue;
    const double plain = plain_cycles(shape, target);
    if (plain > kGainOfHalves * tiles->cycles) all.push_back({i, plain - tiles->cycles, strassen_error(*tiles)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.gain > b.gain; });
  double left = error * error;
  for (const Candidate& c : all) {
    if (c.error * c.error > left) continue;
    left -= c.error * c.error;
    schedule.kernels[c.kernel].contraction->strategy = kStrassen;
  }
}

std::optional<GeneratedKernel> generate_strassen(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                 const Target& target) {
  if (view.roles().strategy != kStrassen) return std::nullopt;
  const auto where = constant_b_layout(view, buffers);
  const auto tiles = choose_strassen_tiles(strassen_shape(view), target);
  if (!where || !tiles) return std::nullopt;
  const std::int64_t columns = view.columns().value(), inner = view.inner().value(),
                     panel_width = std::int64_t{tiles->vectors} * target.vector_width;
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  Kernel kernel = view.kernel();
  kernel.operands[static_cast<std::size_t>(view.b().operand)].replaced = true;
  TileKernel tile;
  tile.template_name = "contraction_strassen_cpu";
  tile.constants.push_back(
      own_constant("weights", weights.name + ".halves",
                   pack_halves_of(weights.constant, *where, {columns, inner, tiles->terms, panel_width, tiles->panels})));
  view.fill_sizes(tile.values);
  auto& p = tile.values.parameters;
  auto& holes = tile.values.holes;
  p["VW"] = std::to_string(target.vector_width);
  p["MR"] = std::to_string(tiles->rows);
  p["NV"] = std::to_string(tiles->vectors);
  p["KC"] = std::to_string(tiles->terms);
  p["MT"] = std::to_string(tiles->row_tiles);
  p["NP"] = std::to_string(tiles->panels);
  p["NEXT"] = std::to_string(ceil_div(panel_width, tiles->row_tiles));
  p["EPILOGUE_UNROLL"] = has_cheap_epilogue(view) ? "2" : "1";
  holes["A_ELEMENTS"] = elements_of_a(view, view.inner_axis().name, target.vector_width, view.group_coordinates());
  holes["B_POINTER"] =
      fmt::format("const __global float* w = weights + (size_t)panel_begin * {};\n", inner / 2 * kBlocks * panel_width);
  holes["EPILOGUE"] = contraction_epilogue(view, target.vector_width, false);
  holes["STORE"] = "";
  holes["C_ROW"] = "";
  tile.groups = ceil_div(view.rows(), Expr(2 * tiles->row_tiles * tiles->rows)) *
                Expr(ceil_div(ceil_div(columns, 2 * panel_width), tiles->panels));
  tile.schedule = fmt::format("template {}, tile {} x {} of pairs, {} x {} tiles a group, chunks of {} pairs of terms",
                              tile.template_name, tiles->rows, panel_width, tiles->row_tiles, tiles->panels, tiles->terms);
  tile.local_name = "block";
  tile.local_macro = "LOCAL_FLOATS";
  return assemble(kernel, std::move(tile));
}

}  // namespace oclc
