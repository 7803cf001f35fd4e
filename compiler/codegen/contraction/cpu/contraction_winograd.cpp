#include "compiler/codegen/contraction/cpu/contraction_winograd.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/ir/typical.h"
#include "compiler/ops/winograd.h"

namespace oclc {
namespace {

// Cycles, measured on 512-bit vectors: transforms of a tile of a vector of channels or features, start and end of a register
// tile, start of a work-item; bytes a cycle that come from the last cache.
struct TransformCycles {
  double input, output;
};
constexpr TransformCycles kTwo = {32, 30}, kFour = {130, 100}, kWide = {130, 60};
constexpr double kRegisterTileCycles = 30, kItemStepCycles = 500, kWeightBytesOfCycle = 24;
// Bytes a cycle of a panel from the second-level cache, which small register tiles wait for.
constexpr double kSecondCacheBytes = 29;
// F(2x2) with vectors of 512 bits: bytes a cycle of weights that a core reads for the first time in a run, which come from
// memory, and that it reads again, if the second-level cache does not hold them beside the block. A Xeon of the fourth
// generation, two cores: 12 to 14 GB/s each and 31. 3x3 of 512 channels at 7x7 took 1.28 ms with all weights for four tiles and
// 0.79 with half of them for eight. Blocks of F(4x4), whose weights stay longer beside their products, were 4 to 12 % slower by
// these rates.
constexpr double kFreshBytesOfCycle = 5, kAgainBytesOfCycle = 12;
// Of the weights' way from the last cache this much is not hidden behind multiplications.
constexpr double kExposed = 0.3;
// Floats between rows of the block in local memory, beside the channels: V_PITCH of the template.
constexpr std::int64_t kPitch = 16;
constexpr double kCacheShare = 0.75;
// Vectors of 512 bits: a block of F(4x4) takes this much, or so much a channel: about one register tile of rows, which reads
// the weights in long stretches; more of them do not stay in the cache beside the weights. Panels are two vectors wide where
// so many rows fit: fewer rows wait for the weights. A block of 5x5 filters leaves the weights the rest of
// the cache instead, blocks of F(2x2) are as large as their cost says.
// Measured on a Xeon of the fourth generation with 64, 128, 256 and 512 channels: 3x3 of 512 channels at 28x28 took 16 ms with
// blocks of 3 tiles, 8.5 with 5 and 5.3 with 13, one of 128 at 28x28 0.49 with 25 tiles by 64 features and 0.31 with 10 by 32.
constexpr double kSmallestBudget = 256 << 10, kLargeWindowChannelBytes = 2048;
constexpr int kWideRows = 7, kWideVectors = 2;
constexpr double kLeftToWeights = 1 << 20;
// Channels of a chain where sums are careful, and of chains that are added up before they are added to others: F(2x2) then errs
// 1.3 to 0.9 times as much as a direct sum with chains of 64 terms, at 64 to 512 channels.
constexpr std::int64_t kCarefulChain = 16, kCarefulGroup = 64;

bool fits_winograd(const ConvolutionImage& image, std::int64_t tile) {
  const auto fits = [](const ImageAxis& axis) { return axis.stride == 1 && axis.dilation == 1; };
  return image.per_channel == 1 && fits(image.y) && fits(image.x) && image.y.taps == image.x.taps &&
         has_winograd(tile, image.y.taps);
}

// U[panel][point][channel][panel width] of w, read as `where` says; surplus columns 0.
HostTensor transformed_panels(const HostTensor& w, const PackedOperand& where, std::int64_t columns, std::int64_t inner,
                              std::int64_t panel_width, const Winograd& f) {
  const auto window = static_cast<std::size_t>(f.window), taps = static_cast<std::size_t>(f.taps);
  const std::int64_t points = f.window * f.window, panels = ceil_div(columns, panel_width);
  HostTensor packed(DType::f32, {panels * points * inner * panel_width});
  auto* to = reinterpret_cast<float*>(packed.mutable_data());
  std::vector<double> half(window * taps), w_column(taps);
  const auto transform = [&](std::int64_t n, std::int64_t k, float* column) {
    const std::int64_t at = where.base + k * where.inner_stride + n * where.column_stride;
    for (std::size_t x = 0; x < taps; ++x) {
      for (std::size_t y = 0; y < taps; ++y) w_column[y] = w.at(at + where.tap_offsets[y * taps + x]);
      for (std::size_t i = 0; i < window; ++i) {
        double sum = 0;
        for (std::size_t y = 0; y < taps; ++y) sum += f.filter[i][y] * w_column[y];
        half[i * taps + x] = sum;
      }
    }
    for (std::size_t i = 0; i < window; ++i) {
      for (std::size_t j = 0; j < window; ++j) {
        double sum = 0;
        for (std::size_t x = 0; x < taps; ++x) sum += half[i * taps + x] * f.filter[j][x];
        column[static_cast<std::int64_t>(i * window + j) * inner * panel_width] = static_cast<float>(sum);
      }
    }
  };
  for (std::int64_t first = 0; first < columns; first += panel_width, to += points * inner * panel_width) {
    for (std::int64_t k = 0; k < inner; ++k) {
      for (std::int64_t n = first; n < std::min(columns, first + panel_width); ++n)
        transform(n, k, to + k * panel_width + n - first);
    }
  }
  return packed;
}

std::int64_t asked_tile(const std::string& strategy) {
  return strategy == "conv_winograd_2" ? 2 : strategy == "conv_winograd_4" ? 4 : 0;
}

class WinogradCode {
 public:
  WinogradCode(const ContractionView& view, const ContractionChoice& choice, const ConvolutionImage& image,
               const WinogradTiles& tiles, const Winograd& f, const Target& target)
      : view_(view), choice_(choice), image_(image), tiles_(tiles), f_(f), target_(target), kernel_(view.kernel()) {}

  // `weights`: null where another kernel transforms them.
  GeneratedKernel run(const HostTensor* weights) {
    const std::int64_t panel_width = std::int64_t{tiles_.vectors} * target_.vector_width, columns = view_.columns().value(),
                       inner = view_.inner().value(), panels = ceil_div(columns, panel_width);
    out_.template_name = "contraction_winograd_cpu";
    if (weights)
      out_.constants.push_back(
          own_constant("weights", view_.operand_of(view_.b()).value + ".winograd",
                       transformed_panels(*weights, *choice_.constant_b, columns, inner, panel_width, f_)));
    out_.constants.push_back(own_constant("zero", "zero", HostTensor(DType::f32, {inner})));
    kernel_.operands[static_cast<std::size_t>(view_.b().operand)].replaced = !view_.is_read_elsewhere(view_.b());
    fill(panel_width, columns, inner, weights ? std::string_view("weights") : kFilters);
    const Expr per_image = ceil_div(rows(1), Expr(f_.tile)) * ceil_div(rows(2), Expr(f_.tile));
    out_.groups = ceil_div(images() * per_image, Expr(tiles_.tiles)) * Expr(ceil_div(panels, tiles_.panels));
    out_.schedule =
        fmt::format("template {0}, F({1}x{1}, {2}x{2}), {3} tiles of the image by {4} panels a group, register tile {5} x {6}",
                    out_.template_name, f_.tile, f_.taps, tiles_.tiles, tiles_.panels, tiles_.rows, panel_width);
    out_.local_name = "block";
    out_.local_macro = "LOCAL_FLOATS";
    return assemble(kernel_, std::move(out_));
  }

 private:
  const Expr& rows(std::size_t i) const { return view_.axis(view_.roles().m[i]).extent; }
  const Expr& images() const { return rows(0); }

  void fill(std::int64_t panel_width, std::int64_t columns, std::int64_t inner, std::string_view filters) {
    auto& p = out_.values.parameters;
    auto& holes = out_.values.holes;
    holes["SIZES"] = images().is_constant() ? "" : fmt::format("const int image_count = (int)({});\n", view_.c_text(images()));
    p["IMAGES"] = images().is_constant() ? std::to_string(images().value()) : "image_count";
    // The first of several register tiles would wait for memory and the others ask for what is there.
    const bool next = !target_.has.software_prefetch || tiles_.tiles > tiles_.rows;
    const RowsAhead ahead = prefetch_rows(target_, tiles_.tiles, panel_width);
    const bool asks_near = !next || target_.has.software_prefetch;
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"T", f_.tile},
        {"R", f_.taps},
        {"K", inner},
        {"N", columns},
        {"OH", rows(1).value()},
        {"OW", rows(2).value()},
        {"Y_FIRST", image_.y.first},
        {"Y_LAST", image_.y.last},
        {"X_FIRST", image_.x.first},
        {"X_LAST", image_.x.last},
        {"A_Y", image_.y.step},
        {"A_X", image_.x.step},
        {"VW", target_.vector_width},
        {"MR", tiles_.rows},
        {"NV", tiles_.vectors},
        {"TB", tiles_.tiles},
        {"NP", tiles_.panels},
        {"K_CHAIN", std::min(inner, target_.precision.careful_sums ? kCarefulChain : longest_chain(target_))},
        {"K_GROUP", target_.precision.careful_sums ? std::min(inner, kCarefulGroup) : inner},
        {"AHEAD", asks_near ? ahead.later : 0},
        {"FIRST_AHEAD", asks_near ? ahead.first : 0},
        {"NEXT", next && ahead.first > 0 ? 1 : 0}};
    for (const auto& [name, number] : numbers) p[name] = std::to_string(number);
    p["INDEX"] = std::string(view_.index_type());
    p["EPILOGUE_UNROLL"] = has_cheap_epilogue(view_) ? p["T"] : "1";
    holes["A_ORIGIN"] = fmt::format("const __global float* origin = {} + ({}) + image * ({}) + top * {} + left * {};\n",
                                    view_.operand_of(view_.a()).name, view_.c_text(image_.origin),
                                    view_.c_text(image_.per_image), image_.y.step, image_.x.step);
    holes["B_POINTER"] = fmt::format("const __global float* w = {} + (size_t)panel * {};\n", filters,
                                     f_.window * f_.window * inner * panel_width);
    holes["EPILOGUE"] = contraction_epilogue(view_, target_.vector_width, false);
    holes["STORE"] = "";
  }

  const ContractionView& view_;
  const ContractionChoice& choice_;
  const ConvolutionImage& image_;
  const WinogradTiles& tiles_;
  const Winograd& f_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that transformed weights replace
  TileKernel out_;
};

}  // namespace

std::optional<WinogradTiles> choose_winograd_tiles(const WinogradShape& s, const Target& target) {
  const std::int64_t width = target.vector_width, cores = target.compute_units, window = s.tile + s.taps - 1,
                     points = window * window;
  const TransformCycles transform = window == 4 ? kTwo : s.tile == 4 ? kFour : kWide;
  const bool few = !target.has.tall_tiles;
  const auto block_bytes = [&](std::int64_t rows, std::int64_t panel_width) {
    return static_cast<double>(4 * points * rows * (s.channels + kPitch + panel_width));
  };
  double budget = std::min(kCacheShare * static_cast<double>(target.l2_bytes), static_cast<double>(target.local_bytes));
  int most_vectors = 4;
  const bool by_core = has_wide_vectors(target) && window == 4;
  if (has_wide_vectors(target) && !by_core) {
    const double wanted = s.tile == 4 ? kLargeWindowChannelBytes * static_cast<double>(s.channels)
                                      : static_cast<double>(target.l2_bytes) - kLeftToWeights;
    budget = std::min(budget, std::max(kSmallestBudget, wanted));
    if (s.tile == 4 && block_bytes(kWideRows, kWideVectors * width) <= budget) most_vectors = kWideVectors;
  }
  std::optional<WinogradTiles> best;
  double best_cost = 0;
  for (int vectors = most_vectors; vectors >= 1; --vectors) {
    for (int rows = 2; rows <= 14; ++rows) {
      if (rows * vectors + vectors + 1 > target.vector_registers) continue;
      const std::int64_t panel_width = vectors * width, panels = ceil_div(s.features, panel_width);
      const double loads = few || by_core ? static_cast<double>(panel_width * 4) / kSecondCacheBytes : 0,
                   step = std::max({rows * vectors / 2.0, (rows + vectors) / 2.0, 4.0, loads});
      for (std::int64_t row_tiles = 1; row_tiles * rows < s.tiles + rows && row_tiles <= 16; ++row_tiles) {
        // Blocks of equal size: the last one is not a small rest.
        const std::int64_t blocks = ceil_div(s.tiles, row_tiles * rows), tiles = ceil_div(s.tiles, blocks),
                           block_rows = ceil_div(tiles, rows) * rows;
        const double bytes = block_bytes(block_rows, panel_width);
        if (bytes > budget) break;
        for (const std::int64_t parts : {std::int64_t{1}, std::int64_t{2}, cores}) {
          if (parts > panels) continue;
          const std::int64_t np = ceil_div(panels, parts), items = blocks * ceil_div(panels, np);
          const double in = static_cast<double>(tiles) * static_cast<double>(ceil_div(s.channels, width)) * transform.input,
                       out = static_cast<double>(tiles * np * vectors) * transform.output,
                       multiply = static_cast<double>(np * points * (block_rows / rows)) *
                                  (static_cast<double>(s.channels) * step + kRegisterTileCycles + rows * vectors),
                       panel_bytes = static_cast<double>(np * points * s.channels * panel_width * 4);
          const auto with_weights = [&](double bytes_of_cycle) {
            const double weights = panel_bytes / bytes_of_cycle;
            return std::max(multiply + kExposed * weights, weights);
          };
          double cost = static_cast<double>(ceil_div(items, cores)) * (kItemStepCycles + in + out);
          if (by_core) {
            // Groups of the same panels follow one another: a core has panels of its own, as far as there are parts for all.
            const std::int64_t all = ceil_div(items, cores), fresh = std::min(all, ceil_div(ceil_div(panels, np), cores));
            const bool stays = panel_bytes + bytes <= kCacheShare * static_cast<double>(target.l2_bytes);
            cost += static_cast<double>(fresh) * with_weights(kFreshBytesOfCycle) +
                    static_cast<double>(all - fresh) * with_weights(stays ? kWeightBytesOfCycle : kAgainBytesOfCycle);
          } else {
            cost += static_cast<double>(ceil_div(items, cores)) * with_weights(kWeightBytesOfCycle);
          }
          if (best && cost >= best_cost * 0.999) continue;
          best_cost = cost;
          best = WinogradTiles{rows, vectors, tiles, np, static_cast<std::int64_t>(bytes)};
        }
      }
    }
  }
  return best;
}

std::optional<WinogradSplit> winograd_split(const ContractionView& view, const Target& target) {
  WinogradSplit split;
  split.tile = asked_tile(view.roles().strategy);
  if (split.tile == 0 || !view.inner().is_constant() || view.inner().value() % target.vector_width != 0 ||
      !view.columns().is_constant() || view.stored_type(view.b()) != DType::f32)
    return std::nullopt;
  const auto image = convolution_image(view);
  if (!image || !fits_winograd(*image, split.tile)) return std::nullopt;
  split.image = *image;
  split.taps = image->y.taps;
  WinogradShape shape;
  shape.tile = split.tile;
  shape.taps = split.taps;
  const auto extent = [&](std::size_t i) { return typical_extent(view.axis(view.roles().m[i]).extent); };
  shape.tiles = extent(0) * ceil_div(extent(1), split.tile) * ceil_div(extent(2), split.tile);
  shape.channels = view.inner().value();
  shape.features = view.columns().value();
  const auto tiles = choose_winograd_tiles(shape, target);
  if (!tiles) return std::nullopt;
  split.tiles = *tiles;
  return split;
}

std::optional<GeneratedKernel> generate_winograd(const ContractionView& view, const ContractionChoice& choice,
                                                 const std::vector<Buffer>& buffers, const Target& target) {
  const bool is_transformed = filters_of(view.kernel()) >= 0;
  if (!choice.constant_b && !is_transformed) return std::nullopt;
  const auto split = winograd_split(view, target);
  if (!split) return std::nullopt;
  const HostTensor& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)].constant;
  return WinogradCode(view, choice, split->image, split->tiles, winograd(split->tile, split->taps), target)
      .run(is_transformed ? nullptr : &weights);
}

}  // namespace oclc
