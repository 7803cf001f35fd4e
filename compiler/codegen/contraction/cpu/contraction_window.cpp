#include "compiler/codegen/contraction/cpu/contraction_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/support/error.h"

namespace oclc {

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

namespace {

class WindowCode {
 public:
  WindowCode(const ContractionView& view, const ConvolutionImage& image, const WindowTiles& tiles, const Target& target)
      : view_(view), image_(image), tiles_(tiles), target_(target), kernel_(view.kernel()) {}

  GeneratedKernel run(const std::vector<Buffer>& buffers) {
    const Buffer& weights = buffers[static_cast<std::size_t>(view_.operand_of(view_.b()).buffer)];
    const std::int64_t panel_width = std::int64_t{tiles_.vectors} * target_.vector_width;
    out_.template_name = "contraction_window_cpu";
    if (tiles_.weights_in_place) {
      read_in_place(placed_weights(view_, image_).value());
    } else {
      out_.constants.push_back(own_constant("weights", weights.name + ".packed",
                                            packed(weights.constant, constant_b_layout(view_, buffers).value(), panel_width)));
      kernel_.operands[static_cast<std::size_t>(view_.b().operand)].replaced = !view_.is_read_elsewhere(view_.b());
      out_.values.holes["B_POINTER"] = fmt::format("const __global float* w = weights + panel * {};\n",
                                                   channels() * image_.y.taps * image_.x.taps * panel_width);
    }
    fill(tiles_.weights_in_place);
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
  HostTensor packed(const HostTensor& weights, const PackedOperand& taps, std::int64_t panel_width) const {
    PackedOperand where = taps;
    where.tap_offsets.clear();
    for (std::int64_t c = 0; c < channels(); ++c) {
      for (const std::int64_t tap : taps.tap_offsets) where.tap_offsets.push_back(c * where.inner_stride + tap);
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
  const ConvolutionImage& image_;
  const WindowTiles& tiles_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that packed weights replace
  TileKernel out_;
};

}  // namespace

GeneratedKernel emit_window(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                            const Target& target) {
  const auto image = convolution_image(view);
  OCLC_CHECK(image, "the window of a convolution");
  return WindowCode(view, *image, std::get<WindowTiles>(choice.tiles), target).run(buffers);
}

}  // namespace oclc
