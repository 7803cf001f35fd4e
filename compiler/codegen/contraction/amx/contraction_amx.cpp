#include "compiler/codegen/contraction/amx/contraction_amx.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/amx/pack_digits.h"
#include "compiler/codegen/contraction/amx/pack_parts.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/contraction/cpu/amx.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

constexpr int kLanes = 16;

// A lies in memory as the only part of its values.
bool is_one_part(const ContractionView& view, const Target& target) {
  return target.precision.bf16_products == 1 && is_plain_load(view.a()) && view.stored_type(view.a()) == DType::bf16 &&
         view.a().number == 0 && constant_stride(view.a().index, view.inner_axis().name) == 1;
}

void add_digits(TileKernel& tile, const Buffer& source, PackedDigits packed) {
  tile.constants.push_back(own_constant("weights", source.name + ".digits", std::move(packed.digits)));
  tile.constants.push_back(own_constant("units", source.name + ".units", std::move(packed.units)));
}

// A convolution whose work-items take rows of an image: what the templates of windows and of patches have in common.
class AmxImageCode {
 public:
  AmxImageCode(const ContractionView& view, const ConvolutionImage& image, const AmxWindowTiles& tiles, const Target& target)
      : view_(view), image_(image), tiles_(tiles), target_(target), kernel_(view.kernel()) {
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"OH", image.y.outputs},    {"OW", image.x.outputs},  {"N", features()},          {"KH", image.y.taps},
        {"KW", image.x.taps},       {"SY", image.y.stride},   {"SX", image.x.stride},     {"DY", image.y.dilation},
        {"Y_FIRST", image.y.first}, {"Y_LAST", image.y.last}, {"X_FIRST", image.x.first}, {"X_LAST", image.x.last},
        {"ROWS", tiles.rows},       {"NP", tiles.panels}};
    for (const auto& [name, number] : numbers) set(name, number);
    set("INDEX", std::string(view.index_type()));
    set("IMAGES", images().is_constant() ? std::to_string(images().value()) : "image_count");
    hole("SIZES", images().is_constant() ? "" : fmt::format("const int image_count = (int)({});\n", view.c_text(images())));
    hole("EPILOGUE", contraction_epilogue(view, kLanes, false));
    hole("STORE", "");
  }

  void set(const char* parameter, std::string value) { out_.values.parameters[parameter] = std::move(value); }
  void set(const char* parameter, std::int64_t value) { set(parameter, std::to_string(value)); }
  void hole(const char* name, std::string text) { out_.values.holes[name] = std::move(text); }
  // The declaration of `src`, the address of what lies `behind` the image's first element.
  std::string source(bool one_part, const std::string& behind) const {
    return fmt::format("const __global {}* src = {} + ({}) + image * ({}) + {};\n", one_part ? "ushort" : "float",
                       view_.operand_of(view_.a()).name, view_.c_text(image_.origin), view_.c_text(image_.per_image), behind);
  }

  // `steps` of 32 terms are added up.
  GeneratedKernel run(std::string_view template_name, std::int64_t steps, const Buffer& weights, HostTensor parts) {
    set("PRODUCTS", target_.precision.bf16_products);
    out_.constants.push_back(own_constant("weights", weights.name + ".parts", std::move(parts)));
    hole("B_POINTER",
         fmt::format("w = weights + (size_t)panel * {};\n", steps * parts_of(target_.precision.bf16_products) * 1024));
    return finish(template_name, fmt::format("{} products, ", target_.precision.bf16_products));
  }

  // `steps` of 64 terms.
  GeneratedKernel run(std::int64_t steps, const Buffer& weights, PackedDigits packed) {
    add_digits(out_, weights, std::move(packed));
    hole("B_POINTER", fmt::format("w = weights + (size_t)panel * {};\ncolumn_units = units;\n", steps * kDigitStepBytes));
    return finish("contraction_window_digits_amx", "");
  }

 private:
  GeneratedKernel finish(std::string_view template_name, const std::string& products) {
    out_.template_name = template_name;
    kernel_.operands[static_cast<std::size_t>(view_.b().operand)].replaced = !view_.is_read_elsewhere(view_.b());
    const std::int64_t panel_items = ceil_div(ceil_div(features(), std::int64_t{32}), tiles_.panels);
    out_.groups = images() * Expr(ceil_div(image_.y.outputs, tiles_.rows) * panel_items);
    out_.schedule = fmt::format("template {}, {}{} rows of the image by {} panels of 32 a group", template_name, products,
                                tiles_.rows, tiles_.panels);
    out_.local_name = "space";
    out_.local_macro = "LOCAL_FLOATS";
    GeneratedKernel g = assemble(kernel_, std::move(out_));
    g.amx = true;
    return g;
  }

  const Expr& images() const { return view_.axis(view_.roles().m[0]).extent; }
  std::int64_t features() const { return view_.columns().value(); }

  const ContractionView& view_;
  const ConvolutionImage& image_;
  const AmxWindowTiles& tiles_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that packed parts replace
  TileKernel out_;
};

// What both templates of windows are told about it.
AmxImageCode window_code(const ContractionView& view, const ConvolutionImage& image, const AmxWindowProduct& product,
                         const AmxWindowTiles& tiles, const Target& target) {
  AmxImageCode code(view, image, tiles, target);
  code.set("K", product.channels);
  code.set("DX", image.x.dilation);
  code.set("PITCH", product.pitch);
  code.set("AT_ONCE", tiles.taps_at_once);
  const bool one_part = is_one_part(view, target);
  if (one_part) code.set("VALUES", "ushort16");
  code.hole("A_PIXEL", code.source(one_part, fmt::format("y * {} + x * {}", image.y.step, image.x.step)));
  return code;
}

GeneratedKernel patch_kernel(const ContractionView& view, const ConvolutionImage& image, const AmxPatchProduct& product,
                             const AmxWindowTiles& tiles, const Target& target, const Buffer& weights, HostTensor parts) {
  AmxImageCode code(view, image, tiles, target);
  code.set("IC", product.channels);
  code.set("A_X", image.x.step);
  code.set("SEGMENT", product.segment());
  if (target.precision.bf16_products == 1) code.set("VALUE", "ushort");
  const bool one_part = view.stored_type(view.a()) == DType::bf16;
  if (one_part) code.set("PART", "1");
  code.hole("A_ROW", code.source(one_part, fmt::format("ic * {} + y * {}", image.per_channel, image.y.step)));
  return code.run("contraction_patches_amx", product.steps(), weights, std::move(parts));
}

class AmxCode {
 public:
  AmxCode(const ContractionView& view, const AmxTiles& tiles, bool vectors, const Target& target)
      : view_(view), tiles_(tiles), vectors_(vectors), target_(target), kernel_(view.kernel()) {}

  GeneratedKernel run(const Buffer& source, HostTensor parts) {
    auto& p = out_.values.parameters;
    p["PRODUCTS"] = std::to_string(target_.precision.bf16_products);
    if (takes_part()) p["VALUES"] = "ushort16";
    p["CHUNK"] = std::to_string(tiles_.chunk);
    if (tiles_.sweep) p["SWEEP"] = "1";
    out_.constants.push_back(own_constant("weights", source.name + ".parts", std::move(parts)));
    const std::int64_t steps = view_.taps() * ceil_div(view_.inner().value(), std::int64_t{32});
    const std::string weights =
        fmt::format("w = weights + (size_t)g * {};\n", all_panels() * steps * parts_of(target_.precision.bf16_products) * 1024);
    return finish(
        "contraction_amx", 32, weights,
        fmt::format("{} products, {} x {} blocks of 32 x 32 a group, {} steps at a time{}", target_.precision.bf16_products,
                    tiles_.row_blocks, tiles_.panels, tiles_.chunk, tiles_.sweep ? ", results row by row" : ""));
  }

  GeneratedKernel run(const Buffer& source, PackedDigits packed) {
    add_digits(out_, source, std::move(packed));
    const std::int64_t steps = view_.taps() * ceil_div(view_.inner().value(), std::int64_t{64});
    const std::string weights = fmt::format("w = weights + (size_t)g * {};\ncolumn_units = units + g * {};\n",
                                            all_panels() * steps * kDigitStepBytes, all_panels() * 32);
    out_.values.parameters["CHUNK"] = std::to_string(tiles_.chunk);
    return finish(
        "contraction_digits_amx", 16, weights,
        fmt::format("{} x {} blocks of 16 x 32 a group, {} steps at a time", tiles_.row_blocks, tiles_.panels, tiles_.chunk));
  }

 private:
  std::int64_t all_panels() const { return ceil_div(view_.columns().value(), std::int64_t{32}); }

  GeneratedKernel finish(std::string_view template_name, int block_rows, const std::string& weights,
                         const std::string& schedule) {
    kernel_.operands[static_cast<std::size_t>(view_.b().operand)].replaced = !view_.is_read_elsewhere(view_.b());
    out_.template_name = template_name;
    view_.fill_sizes(out_.values);
    auto& p = out_.values.parameters;
    p["PV"] = std::to_string(load_width());
    p["MT"] = std::to_string(tiles_.row_blocks);
    p["NP"] = std::to_string(tiles_.panels);
    auto& holes = out_.values.holes;
    holes["A_ELEMENTS"] = elements_of_a();
    // The epilogue, too, may need the group's coordinates.
    std::string& b = holes["B_POINTER"];
    for (const std::string& line : view_.group_coordinates()) b += line + "\n";
    b += weights;
    holes["EPILOGUE"] = contraction_epilogue(view_, kLanes, false);
    holes["STORE"] = "";
    holes["C_ROW"] = "";
    const Expr row_items = ceil_div(view_.rows(), Expr(block_rows * tiles_.row_blocks));
    out_.groups = view_.groups() * row_items * Expr(ceil_div(all_panels(), tiles_.panels));
    out_.schedule = fmt::format("template {}, {}", template_name, schedule);
    out_.local_name = "space";
    out_.local_macro = "LOCAL_FLOATS";
    GeneratedKernel g = assemble(kernel_, std::move(out_));
    g.amx = true;
    return g;
  }

  int load_width() const { return vectors_ ? kLanes : 1; }
  bool takes_part() const { return load_width() > 1 && is_one_part(view_, target_); }

  // The vector of A, or one element, at (row m, tap, k).
  std::string elements_of_a() const {
    const std::string& inner = view_.inner_axis().name;
    const Kernel loads = part_for(view_.kernel(), view_.roles().a);
    Emitter e(loads, view_.mode());
    e.set_vector_axis(inner, load_width());
    e.open("", axis_names(loads));
    using Lines = std::vector<std::string>;
    for (const Lines& lines : {view_.group_coordinates(), view_.row_coordinates(indices_of(loads)), view_.tap_coordinates()}) {
      for (const std::string& line : lines) e.line(line);
    }
    e.line(fmt::format("const {} {} = k;", view_.index_type(), inner));
    if (takes_part()) {
      const ScalarNode& a = view_.a();
      const std::string load = fmt::format("vload16(0, {} + {})", view_.operand_of(a).name, e.index(a.index));
      e.line(a.guard.empty() ? fmt::format("v = {};", load)
                             : fmt::format("v = ({}) ? {} : (ushort16)(0);", e.condition(a.guard), load));
    } else {
      e.line(fmt::format("v = {};", load_width() > 1 ? e.vector_value(view_.roles().a) : e.value(view_.roles().a)));
    }
    e.close();
    return e.text();
  }

  const ContractionView& view_;
  const AmxTiles& tiles_;
  const bool vectors_;  // neighbours in k are neighbours in memory
  const Target& target_;
  Kernel kernel_;  // with the operand marked that packed parts replace
  TileKernel out_;
};

}  // namespace

bool can_store_parts(const ContractionView& view, const std::vector<Buffer>& buffers) {
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  const auto where = constant_b_layout(view, buffers);
  return where && has_parts(weights.constant, *where, view.groups().value(), view.columns().value(), view.inner().value());
}

bool can_store_limbs(const ContractionView& view, const std::vector<Buffer>& buffers) {
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  const auto where = constant_b_layout(view, buffers);
  return where && has_digits(weights.constant, *where, view.groups().value(), view.columns().value(), view.inner().value());
}

GeneratedKernel emit_amx(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target) {
  const Buffer& weights = buffers[static_cast<std::size_t>(view.operand_of(view.b()).buffer)];
  const PackedOperand where = constant_b_layout(view, buffers).value();
  const std::int64_t groups = view.groups().value(), columns = view.columns().value(), inner = view.inner().value();
  const int parts = parts_of(target.precision.bf16_products);
  const Problem problem = problem_of(view, buffers);
  const auto all_parts = [&] { return pack_parts(weights.constant, where, groups, columns, inner, parts).value(); };
  const auto limbs = [&] { return pack_digits(weights.constant, where, groups, columns, inner).value(); };
  if (const auto* rows = std::get_if<AmxTiles>(&choice.tiles)) {
    AmxCode code(view, *rows, amx_product(problem).vectors, target);
    return choice.strategy == StrategyId::amx_limbs ? code.run(weights, limbs()) : code.run(weights, all_parts());
  }
  const auto& tiles = std::get<AmxWindowTiles>(choice.tiles);
  const ConvolutionImage image = convolution_image(view, problem.a.stored).value();
  if (choice.strategy == StrategyId::amx_patches)
    return patch_kernel(view, image, amx_patch_product(problem).value(), tiles, target, weights,
                        pack_patch_parts(weights.constant, where, columns, inner, parts).value());
  const AmxWindowProduct window = amx_window_product(problem).value();
  AmxImageCode code = window_code(view, image, window, tiles, target);
  return choice.strategy == StrategyId::amx_limb_window
             ? code.run(window.steps(64), weights, limbs())
             : code.run("contraction_window_amx", window.steps(32), weights, all_parts());
}

}  // namespace oclc
