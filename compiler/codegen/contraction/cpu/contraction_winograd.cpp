#include "compiler/codegen/contraction/cpu/contraction_winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/ir/typical.h"
#include "compiler/ops/winograd.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Channels of a chain where sums are careful, and of chains that are added up before they are added to others: F(2x2) then errs
// 1.3 to 0.9 times as much as a direct sum with chains of 64 terms, at 64 to 512 channels.
constexpr std::int64_t kCarefulChain = 16, kCarefulGroup = 64;

// The filters of columns first .. first + lanes, as stored_filters.h has them, of w, read as `where` says.
package::QuantizedPart stored_panel(const HostTensor& w, const PackedOperand& where, std::int64_t first, std::int64_t lanes,
                                    std::int64_t inner, std::int64_t panel_width, const Winograd& f) {
  package::QuantizedPart part;
  part.run.bytes = static_cast<std::uint64_t>(f.window * f.window * inner * panel_width) * sizeof(float);
  part.run.period = static_cast<std::uint32_t>(inner);
  part.run.stored = package::StoredAs::filters;
  part.run.bits = static_cast<std::uint8_t>(f.window);
  part.run.has_offsets = static_cast<std::uint8_t>(f.taps);
  part.run.lanes = static_cast<std::uint8_t>(lanes);
  part.stored.reserve(part.run.stored_bytes());
  const auto put = [&](const void* from, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    part.stored.insert(part.stored.end(), at, at + bytes);
  };
  for (const std::vector<double>& row : f.filter) put(row.data(), row.size() * sizeof(double));
  std::vector<float> row(static_cast<std::size_t>(lanes));
  for (const std::int64_t tap : where.tap_offsets) {
    for (std::int64_t k = 0; k < inner; ++k) {
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        row[static_cast<std::size_t>(lane)] =
            float_at(w, where.base + k * where.inner_stride + (first + lane) * where.column_stride + tap);
      put(row.data(), row.size() * sizeof(float));
    }
  }
  OCLC_CHECK(part.stored.size() == part.run.stored_bytes(), "the filters of a panel");
  return part;
}

// U[panel][point][channel][panel width] of w, surplus columns 0, which a plan may store as the filters that it is made of.
OwnConstant transformed_filters(std::string name, const HostTensor& w, const PackedOperand& where, std::int64_t columns,
                                std::int64_t inner, std::int64_t panel_width, const Winograd& f) {
  HostTensor packed(DType::f32, {ceil_div(columns, panel_width) * f.window * f.window * inner * panel_width});
  auto stored = std::make_shared<std::vector<package::QuantizedPart>>();
  std::byte* to = packed.mutable_data();
  for (std::int64_t first = 0; first < columns; first += panel_width) {
    stored->push_back(stored_panel(w, where, first, std::min(panel_width, columns - first), inner, panel_width, f));
    package::widen_run(stored->back().run, stored->back().stored.data(), to);
    to += stored->back().run.bytes;
  }
  OwnConstant made = own_constant("weights", std::move(name), std::move(packed));
  made.buffer.stored = std::move(stored);
  return made;
}

class WinogradCode {
 public:
  WinogradCode(const ContractionView& view, const ConvolutionImage& image, const WinogradTiles& tiles, const Target& target)
      : view_(view),
        image_(image),
        tiles_(tiles),
        f_(winograd(tiles.outputs, image.y.taps)),
        target_(target),
        kernel_(view.kernel()) {}

  GeneratedKernel run(const std::vector<Buffer>& buffers) {
    // Null where another kernel transforms them.
    const HostTensor* weights = filters_of(view_.kernel()) >= 0
                                    ? nullptr
                                    : &buffers[static_cast<std::size_t>(view_.operand_of(view_.b()).buffer)].constant;
    const std::int64_t panel_width = std::int64_t{tiles_.vectors} * target_.vector_width, columns = view_.columns().value(),
                       inner = view_.inner().value(), panels = ceil_div(columns, panel_width);
    out_.template_name = "contraction_winograd_cpu";
    if (weights)
      out_.constants.push_back(transformed_filters(view_.operand_of(view_.b()).value + ".winograd", *weights,
                                                   constant_b_layout(view_, buffers).value(), columns, inner, panel_width, f_));
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
    const PrefetchDistance ahead = prefetch_rows(target_, tiles_.tiles, panel_width);
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
        {"K_CHAIN", std::min(inner, target_.precision.blocked_summation ? kCarefulChain : longest_chain(target_))},
        {"K_GROUP", target_.precision.blocked_summation ? std::min(inner, kCarefulGroup) : inner},
        {"PREFETCH_DISTANCE", asks_near ? ahead.later : 0},
        {"FIRST_PREFETCH_DISTANCE", asks_near ? ahead.first : 0},
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
  const ConvolutionImage& image_;
  const WinogradTiles& tiles_;
  const Winograd& f_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that transformed weights replace
  TileKernel out_;
};

}  // namespace

GeneratedKernel emit_winograd(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                              const Target& target) {
  const auto image = convolution_image(view);
  OCLC_CHECK(image, "the window of a convolution");
  return WinogradCode(view, *image, std::get<WinogradTiles>(choice.tiles), target).run(buffers);
}

}  // namespace oclc
