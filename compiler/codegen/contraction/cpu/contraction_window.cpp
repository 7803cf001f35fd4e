#include "compiler/codegen/contraction/cpu/contraction_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/tile_kernel.h"

namespace oclc {
namespace {

// Of more channels the rows of a tile are read where they lie.
constexpr std::int64_t kMostChannels = 7;
// Output rows of a work-item, if the image has several times as many.
constexpr std::int64_t kRows = 2, kFewRows = 8;
// Cycles, measured on 512-bit vectors: start of a tile and its epilogue.
constexpr double kTileCycles = 60, kVectorCycles = 3;
// The window stays in the first-level cache.
constexpr std::int64_t kWindowBytes = 40 << 10;

struct WindowTiles {
  int pixels = 6, vectors = 4;  // register tile: pixels of a row x (vectors * vector width)
  std::int64_t rows = 1;        // output rows of a work-item
};

WindowTiles choose_window_tiles(const ConvolutionImage& image, std::int64_t channels, std::int64_t columns,
                                const Target& target) {
  WindowTiles best;
  double best_cost = -1;
  const auto depth = static_cast<double>(channels * image.y.taps * image.x.taps);
  for (int vectors = 4; vectors >= 1; --vectors) {
    for (int pixels = 1; pixels <= 14; ++pixels) {
      if (pixels * vectors + vectors + 1 > target.vector_registers) continue;
      const double step = std::max({pixels * vectors / 2.0, (pixels + vectors) / 2.0, 4.0});
      const double tile = depth * step + kTileCycles + kVectorCycles * pixels * vectors;
      const double cost = tile * static_cast<double>(ceil_div(image.x.outputs, pixels) *
                                                     ceil_div(columns, std::int64_t{vectors} * target.vector_width));
      if (best_cost >= 0 && cost >= best_cost * 0.999) continue;
      best_cost = cost;
      best.pixels = pixels;
      best.vectors = vectors;
    }
  }
  best.rows = image.y.outputs >= kFewRows ? kRows : 1;
  return best;
}

// Weights of run time: columns are neighbours, and a tap of a channel lies these elements behind the first.
struct PlacedWeights {
  Expr first;
  std::int64_t channel = 0, y = 0, x = 0;
};

std::optional<PlacedWeights> placed_weights(const ContractionView& view, const ConvolutionImage& image) {
  const ScalarNode& b = view.b();
  const std::string &column = view.column_axis().name, &inner = view.inner_axis().name;
  if (!is_plain_load(b) || !b.guard.empty() || view.stored_type(b) != DType::f32) return std::nullopt;
  const auto channel = constant_stride(b.index, inner);
  if (!channel || !(b.index.coefficient(column) == Expr(1))) return std::nullopt;
  const Expr at_tap = b.index.substitute({{column, Expr(0)}, {inner, Expr(0)}});
  PlacedWeights placed{at_tap.substitute(view.at_tap(0)), *channel, 0, 0};
  const auto behind = [&](std::int64_t y, std::int64_t x) {
    return (at_tap.substitute(view.at_tap(y * image.x.taps + x)) - placed.first).constant();
  };
  if (image.y.taps > 1) placed.y = behind(1, 0).value_or(0);
  if (image.x.taps > 1) placed.x = behind(0, 1).value_or(0);
  for (std::int64_t y = 0; y < image.y.taps; ++y) {
    for (std::int64_t x = 0; x < image.x.taps; ++x) {
      if (behind(y, x) != std::optional(y * placed.y + x * placed.x)) return std::nullopt;
    }
  }
  return placed;
}

class WindowCode {
 public:
  WindowCode(const ContractionView& view, const ContractionChoice& choice, const ConvolutionImage& image,
             const WindowTiles& tiles, const Target& target)
      : view_(view), choice_(choice), image_(image), tiles_(tiles), target_(target), kernel_(view.kernel()) {}

  GeneratedKernel run(const Buffer& weights, const std::optional<PlacedWeights>& placed) {
    const std::int64_t panel_width = std::int64_t{tiles_.vectors} * target_.vector_width;
    out_.template_name = "contraction_window_cpu";
    if (placed) {
      read_in_place(*placed);
    } else {
      out_.constants.push_back(own_constant("weights", weights.name + ".packed", packed(weights.constant, panel_width)));
      kernel_.operands[static_cast<std::size_t>(view_.b().operand)].replaced = !view_.is_read_elsewhere(view_.b());
      out_.values.holes["B_POINTER"] = fmt::format("const __global float* w = weights + panel * {};\n",
                                                   channels() * image_.y.taps * image_.x.taps * panel_width);
    }
    fill(placed.has_value());
    out_.groups = view_.axis(view_.roles().m[0]).extent * Expr(ceil_div(image_.y.outputs, tiles_.rows));
    out_.schedule = fmt::format("template {}, {} rows of the image a group, register tile {} x {}", out_.template_name,
                                tiles_.rows, tiles_.pixels, panel_width);
    out_.local_name = "window";
    out_.local_macro = "LOCAL_FLOATS";
    return assemble(kernel_, std::move(out_));
  }

 private:
  std::int64_t channels() const { return view_.inner().value(); }

  // Channels outermost, then taps: the order in which the window is read.
  HostTensor packed(const HostTensor& weights, std::int64_t panel_width) const {
    PackedOperand where = *choice_.constant_b;
    where.tap_offsets.clear();
    for (std::int64_t c = 0; c < channels(); ++c) {
      for (const std::int64_t tap : choice_.constant_b->tap_offsets) where.tap_offsets.push_back(c * where.inner_stride + tap);
    }
    return pack_panels(weights, where, 1, view_.columns().value(), 1, panel_width);
  }

  void read_in_place(const PlacedWeights& placed) {
    auto& p = out_.values.parameters;
    p["IN_PLACE"] = "1";
    p["W_CHANNEL"] = std::to_string(placed.channel);
    p["W_Y"] = fmt::format("({})", placed.y);
    p["W_X"] = fmt::format("({})", placed.x);
    out_.values.holes["B_POINTER"] = fmt::format("const __global float* w = {} + ({}) + panel * PW;\n",
                                                 view_.operand_of(view_.b()).name, view_.c_text(placed.first));
  }

  void fill(bool in_place) {
    auto& p = out_.values.parameters;
    auto& holes = out_.values.holes;
    // Terms of a row of taps: of one channel, or of all.
    const std::int64_t row = image_.x.taps * (in_place ? channels() : 1);
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"IC", channels()},          {"KH", image_.y.taps},          {"KW", image_.x.taps},       {"SY", image_.y.stride},
        {"SX", image_.x.stride},     {"DY", image_.y.dilation},      {"DX", image_.x.dilation},   {"OH", image_.y.outputs},
        {"OW", image_.x.outputs},    {"N", view_.columns().value()}, {"Y_FIRST", image_.y.first}, {"Y_LAST", image_.y.last},
        {"X_FIRST", image_.x.first}, {"X_LAST", image_.x.last},      {"A_X", image_.x.step},      {"VW", target_.vector_width},
        {"MR", tiles_.pixels},       {"NV", tiles_.vectors},         {"ROWS", tiles_.rows}};
    for (const auto& [name, number] : numbers) p[name] = std::to_string(number);
    const std::int64_t longest = longest_chain(target_);
    if (channels() * view_.taps() > longest) p["CHAIN"] = std::to_string(std::max<std::int64_t>(1, longest / row));
    p["INDEX"] = std::string(view_.index_type());
    p["EPILOGUE_UNROLL"] = has_cheap_epilogue(view_) ? p["MR"] : "1";
    holes["A_ROW"] = fmt::format("const __global float* src = {} + ({}) + image * ({}) + ic * {} + y * {};\n",
                                 view_.operand_of(view_.a()).name, view_.c_text(image_.origin), view_.c_text(image_.per_image),
                                 image_.per_channel, image_.y.step);
    holes["EPILOGUE"] = contraction_epilogue(view_, target_.vector_width, false);
    holes["STORE"] = "";
  }

  const ContractionView& view_;
  const ContractionChoice& choice_;
  const ConvolutionImage& image_;
  const WindowTiles& tiles_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that packed weights replace
  TileKernel out_;
};

}  // namespace

std::optional<GeneratedKernel> generate_window(const ContractionView& view, const ContractionChoice& choice,
                                               const std::vector<Buffer>& buffers, const Target& target) {
  if (view.taps() == 1) return std::nullopt;
  if (!view.inner().is_constant() || view.inner().value() > kMostChannels || !view.columns().is_constant()) return std::nullopt;
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  const auto image = convolution_image(view);
  if (!image || weights.dtype != DType::f32) return std::nullopt;
  const auto placed = choice.constant_b ? std::nullopt : placed_weights(view, *image);
  if (!choice.constant_b && !placed) return std::nullopt;
  const auto inside = [](const ImageAxis& axis) {
    return axis.first <= axis.last && axis.last <= (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation;
  };
  if (!inside(image->y) || !inside(image->x)) return std::nullopt;
  const WindowTiles tiles = choose_window_tiles(*image, view.inner().value(), view.columns().value(), target);
  const std::int64_t width = (ceil_div(image->x.outputs, tiles.pixels) * tiles.pixels - 1) * image->x.stride +
                             (image->x.taps - 1) * image->x.dilation + 1,
                     height = (tiles.rows - 1) * image->y.stride + (image->y.taps - 1) * image->y.dilation + 1;
  if (view.inner().value() * width * height * 4 > std::min(kWindowBytes, target.local_bytes)) return std::nullopt;
  // In place no columns of zeros fill a last panel.
  if (placed && view.columns().value() % (tiles.vectors * target.vector_width) != 0) return std::nullopt;
  return WindowCode(view, choice, *image, tiles, target).run(weights, placed);
}

}  // namespace oclc
