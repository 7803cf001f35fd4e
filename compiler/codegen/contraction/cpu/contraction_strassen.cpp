#include "compiler/codegen/contraction/cpu/contraction_strassen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "compiler/codegen/contraction/chunk_choice.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/tiling.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/resident.h"

namespace oclc {
namespace {

constexpr std::int64_t kSeven = 7, kBlocks = 4;
// Rows and columns from which on products are long enough; fewer rows wait for weights.
constexpr std::int64_t kLeastHalvedRows = 96, kLeastHalvedColumns = 64, kLeastHalvedTerms = 512, kLeastCopiedTerms = 384;
// Rows and columns of products of run time: gradients of narrower weights gain 0.3 ms of mobilenet_v2's 230, and all of a
// network's gradients would err as halves do.
constexpr std::int64_t kLeastCopiedSide = 128;
// Pairs of terms of a chunk, a multiple of every vector's width; panels of a work-item; rows and vectors of a register tile.
constexpr std::int64_t kLeastPairs = 32, kMostPairs = 128, kMostItemPanels = 16;
constexpr int kFewestTileRows = 4, kMostTileRows = 14, kMostVectors = 4;
// Of the best tiles' cycles: what counts as better.
constexpr double kBetter = 0.995;
// Cycles, measured on a Zen 4: of a vector of pairs of rows and terms that is combined; start of a register tile; a vector of
// pairs of rows and columns of results; start of a work-item.
constexpr double kCombineCycles = 30, kStartCycles = 10, kResultCycles = 8, kItemStart = 300;
// Of the other templates: start and end of a register tile, and a vector of its results.
constexpr double kPlainStart = 60, kPlainVector = 3;
// Of the cycles of a vector that is computed, for one that is copied, and of one of a square that is transposed.
constexpr double kColumnsShare = 0.6, kSquaresShare = 1.2;
// Of other templates that copy a right operand of run time.
constexpr double kPlainCopies = 1.15;
// Bytes a cycle of right factors that come from memory, asked for ahead.
constexpr double kFreshBytes = 8;
// What multiply-adds do not hide: cycles of a vector of sums that is added up, and bytes a cycle of right factors. Measured on
// a Zen 4, and with constant weights on a Sapphire Rapids, which multiplies two vectors of 512 bits a cycle by the units that
// add: there seven products with them take as long as eight.
struct UnhiddenCosts {
  double sum_cycles, right_bytes;
};
constexpr UnhiddenCosts kUsualCosts{1, 96}, kSharedUnitCosts{3, 20};
// Of the second-level cache, whose rest the factors on the right, A and the results pass through: beyond it the gain is lost.
constexpr double kLocalShare = 0.5;
constexpr std::int64_t kLeftPitch = 16;
// A copied panel's blocks and what is combined of them: they stay in the first-level cache beside a tile's rows.
constexpr std::int64_t kCopiedBytes = 24 << 10, kLeastCopiedPairs = 48;
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
         view.stored_type(view.b()) == DType::f32;
}

// The right operand is packed when the plan is made.
bool packs_right(const ContractionView& view, const std::vector<Buffer>& buffers) {
  return is_plain_load(view.b()) && !view.is_read_elsewhere(view.b()) && constant_b_layout(view, buffers).has_value();
}

// How vectors of both operands are had; nothing where there are none.
std::optional<StrassenShape> strassen_shape(const ContractionView& view, const std::vector<Buffer>& buffers,
                                            const Target& target) {
  const int width = target.vector_width;
  StrassenShape s{typical_extent(view.rows()), view.columns().value(), view.inner().value()};
  const Kernel left = part_for(view.kernel(), view.roles().a), right = part_for(view.kernel(), view.roles().b);
  if (view.roles().m.size() == 1) {
    const Axis& row = view.axis(view.roles().m[0]);
    s.rows_innermost = has_neighbours(left, row) && takes_vectors(left, row, width);
  }
  if (!is_plain_load(view.a())) s.compute_of_left = kBlocks * cycles_of_vector(left);
  if (!s.rows_innermost && !can_vectorize(left, view.inner_axis().name, width)) return std::nullopt;
  if (packs_right(view, buffers)) return s;
  // Not measured with few registers.
  const bool columns = takes_vectors(right, view.column_axis(), width);
  if (has_few_registers(target) || (!columns && !takes_vectors(right, view.inner_axis(), width))) return std::nullopt;
  s.copy_of_right = cycles_of_vector(right) * (columns ? kColumnsShare : kSquaresShare);
  s.vectors_of_terms = !s.rows_innermost || !columns;
  return s;
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
         (static_cast<double>(t.row_tiles * t.panels) * tile + kItemStart) * (s.copy_of_right > 0 ? kPlainCopies : 1);
}

// A work-item's local memory: combinations of A, one of B, and the seven sums of its panels, or of one where a chunk is all
// terms.
std::int64_t local_floats(const StrassenTiles& t, const StrassenShape& s, std::int64_t width) {
  const std::int64_t pairs = t.row_tiles * t.rows, panels = s.inner > 2 * t.terms ? t.panels : 1;
  return kSeven * (pairs * (t.terms + kLeftPitch) + 16 + panels * (pairs * t.vectors * width + 16)) +
         t.terms * t.vectors * width * (s.copy_of_right > 0 ? 1 + kBlocks : 1);
}

// Cycles of a core.
double strassen_cycles(const StrassenTiles& t, const StrassenShape& s, const Target& target) {
  const std::int64_t width = target.vector_width, panel_width = t.vectors * width, pairs = t.row_tiles * t.rows,
                     items = ceil_div(ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows}), t.row_tiles) *
                             ceil_div(ceil_div(s.columns, 2 * panel_width), t.panels);
  const UnhiddenCosts& unhidden =
      has_wide_vectors(target) && !target.adds_apart && s.copy_of_right == 0 ? kSharedUnitCosts : kUsualCosts;
  const double step = std::max(t.rows * t.vectors / 2.0, 4.0),
               tile = static_cast<double>(t.terms) * step + kStartCycles + unhidden.sum_cycles * t.rows * t.vectors,
               factor_bytes = static_cast<double>(t.terms * panel_width * 4 * kBlocks) / kSeven,
               factor = std::max(static_cast<double>(t.row_tiles) * tile, factor_bytes / kFreshBytes) +
                        factor_bytes / unhidden.right_bytes,
               combine =
                   static_cast<double>(pairs) * static_cast<double>(t.terms / width) * (kCombineCycles + s.compute_of_left),
               copies = s.copy_of_right * static_cast<double>(kBlocks * t.terms * t.vectors * t.panels),
               results = static_cast<double>(pairs * t.vectors * t.panels) * kResultCycles,
               chunks = static_cast<double>(s.inner / (2 * t.terms)),
               item = chunks * (static_cast<double>(t.panels * kSeven) * factor + combine + copies) + results + kItemStart;
  return static_cast<double>(ceil_div(items, target.compute_units)) * item;
}

// Rows of a bundle of A's rows: whole vectors and whole tiles.
std::int64_t bundle_rows(const StrassenTiles& t, const Target& target) { return std::lcm(t.rows, target.vector_width); }

// Replaces `best` by a better one with the register tile and the terms of `t`: how many tiles and panels a work-item has.
void choose_items(StrassenTiles t, const StrassenShape& s, const Target& target, std::optional<StrassenTiles>& best) {
  const auto budget =
      std::min(static_cast<std::int64_t>(kLocalShare * static_cast<double>(target.l2_bytes)), target.local_bytes);
  const std::int64_t panels = ceil_div(s.columns, std::int64_t{2} * t.vectors * target.vector_width),
                     tiles = ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows});
  for (std::int64_t row_blocks = 1; row_blocks <= tiles; ++row_blocks) {
    t.row_tiles = ceil_div(tiles, row_blocks);
    if (ceil_div(tiles, t.row_tiles) != row_blocks) continue;
    if (s.rows_innermost)
      t.row_tiles = ceil_div(t.row_tiles * t.rows, bundle_rows(t, target)) * bundle_rows(t, target) / t.rows;
    for (t.panels = 1; t.panels <= std::min(panels, kMostItemPanels); ++t.panels) {
      if (local_floats(t, s, target.vector_width) * 4 > budget) break;
      t.cycles = strassen_cycles(t, s, target);
      if (!best || t.cycles < best->cycles * kBetter) best = t;
    }
  }
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
  if (!schedule.kernels[index].contraction) return std::nullopt;
  const auto view = ContractionView::of(schedule.kernels[index]);
  if (!view || view->roles().strategy.starts_with("conv_winograd") || !has_form(*view)) return std::nullopt;
  const auto shape = strassen_shape(*view, schedule.buffers, target);
  if (!shape || least_extent(view->rows()) < kLeastHalvedRows || shape->columns < kLeastHalvedColumns ||
      shape->inner < (shape->copy_of_right > 0 ? kLeastCopiedTerms : kLeastHalvedTerms))
    return std::nullopt;
  if (shape->copy_of_right > 0 && std::min(least_extent(view->rows()), shape->columns) < kLeastCopiedSide) return std::nullopt;
  const auto tiles = choose_strassen_tiles(*shape, target);
  if (!tiles) return std::nullopt;
  const double plain = plain_cycles(*shape, target);
  return plain > kGainOfHalves * tiles->cycles
             ? std::optional(HalvedProduct{index, plain - tiles->cycles, strassen_error(*tiles)})
             : std::nullopt;
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
      tile.constants.push_back(packed_right(buffers));
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

  OwnConstant packed_right(const std::vector<Buffer>& buffers) {
    const Buffer& weights = buffers[static_cast<std::size_t>(view_.operand_of(view_.b()).buffer)];
    values_.parameters["NEXT"] = std::to_string(ceil_div(panel_width_, tiles_.row_tiles));
    values_.holes["B_POINTER"] = fmt::format("const __global float* w = weights + (size_t)panel_begin * {};\n",
                                             shape_.inner / 2 * kBlocks * panel_width_);
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

std::optional<StrassenTiles> choose_strassen_tiles(const StrassenShape& s, const Target& target) {
  std::optional<StrassenTiles> best;
  StrassenTiles t;
  for (t.terms = kLeastPairs; t.terms <= kMostPairs; t.terms += s.vectors_of_terms ? target.vector_width : 1) {
    if (s.inner % (2 * t.terms) != 0 || (s.copy_of_right > 0 && t.terms < kLeastCopiedPairs)) continue;
    // Longer chains err more.
    if (best && t.terms > kLongestChain) break;
    for (t.vectors = 1; t.vectors <= kMostVectors; ++t.vectors) {
      if (s.copy_of_right > 0 && (kBlocks + 1) * t.terms * t.vectors * target.vector_width * 4 > kCopiedBytes) continue;
      for (t.rows = kFewestTileRows; t.rows <= kMostTileRows; ++t.rows) {
        if (t.rows * t.vectors + t.vectors + 1 <= target.vector_registers) choose_items(t, s, target, best);
      }
    }
  }
  return best;
}

void multiply_halves(Schedule& schedule, const ScheduleContext& context) {
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
      schedule.kernels[c.kernel].contraction->strategy = kStrassen;
    }
  }
}

std::optional<GeneratedKernel> generate_strassen(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                 const Target& target) {
  if (view.roles().strategy != kStrassen) return std::nullopt;
  const auto shape = strassen_shape(view, buffers, target);
  const auto tiles = shape ? choose_strassen_tiles(*shape, target) : std::nullopt;
  if (!tiles) return std::nullopt;
  return StrassenCode(view, *shape, *tiles, target).run(buffers);
}

}  // namespace oclc
