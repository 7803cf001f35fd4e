#include "compiler/codegen/contraction/gpu/contraction_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"
#include "compiler/codegen/contraction/gpu/contraction_sm90a.h"
#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/codegen/contraction/pack.h"
#include "compiler/codegen/contraction/product_windows.h"
#include "compiler/codegen/text/half.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/contraction/gpu/gpu_tiles.h"
#include "compiler/contraction/prefetch.h"

namespace oclc {
namespace {

constexpr std::string_view kTemplate = "contraction_gpu", kMatrixTemplate = "contraction_mma_gpu",
                           kHalfUnitTemplate = "contraction_unit_gpu";
// Terms of a step on a matrix unit.
constexpr int kMatrixDepth = 32;
// Terms of a chain there, which adds up sums of 8; elements of a sub-group's tile that leave registers for a second sum.
constexpr std::int64_t kLongestMatrixChain = 128;
constexpr int kChainedElements = 1024;
// Bits of a mask.
constexpr std::int64_t kMaskedTaps = 32;
// Columns that an epilogue handles at once.
constexpr int kEpilogueWidth = 4;
// A cheap epilogue is written out so many times, so that its loads overlap.
constexpr int kEpilogueUnroll = 4;

class GpuContractionCode {
 public:
  GpuContractionCode(const ContractionView& view, const std::vector<Buffer>& buffers, const Target& target)
      : view_(view), buffers_(buffers), target_(target), kernel_(view.kernel()) {}

  // Of one result of each window, with the tiles of `whole`, whose packed B it reads.
  GpuContractionCode(const ContractionView& view, const GpuContractionCode& whole)
      : view_(view),
        buffers_(whole.buffers_),
        target_(whole.target_),
        kernel_(view.kernel()),
        tiles_(whole.tiles_),
        sm90a_(whole.sm90a_),
        items_(whole.items_),
        whole_(&whole.kernel_),
        window_results_(window_results(whole.kernel_)) {
    fill_sizes();
    fill_loads(load_of_a(view_), load_of_b(view_));
    fill_group();
  }

  GeneratedKernel run(const GpuChoice& choice) {
    tiles_ = choice.tiles;
    sm90a_ = choice.sm90a;
    items_ = sm90a_ ? sm90a_->items() : tiles_.items();
    fill_sizes();
    fill_loads(load_of_a(view_), load_of_b(view_));
    fill_group();
    return assemble();
  }

 private:
  void fill_group() {
    std::string group;
    for (const std::string& line : view_.group_coordinates()) group += line + "\n";
    values_.holes["GROUP"] = group;
    values_.holes["EPILOGUE"] = contraction_epilogue(view_, kEpilogueWidth, true);
  }

  bool has_windows() const { return !view_.roles().windows.empty(); }

  void fill_sizes() {
    view_.fill_sizes(values_);
    auto& p = values_.parameters;
    p["BM"] = std::to_string(tiles_.rows);
    p["BN"] = std::to_string(tiles_.columns);
    p["TM"] = std::to_string(tiles_.item_rows);
    p["TN"] = std::to_string(tiles_.item_columns);
    p["SPLIT"] = target_.precision.splits_operands() ? "1" : "0";
    p["EPILOGUE_UNROLL"] = std::to_string(has_cheap_epilogue(view_) ? kEpilogueUnroll : 1);
    p["SURPLUS"] = items_ > tiles_.items() ? "1" : "0";
    if (sm90a_) p["REGAIN"] = target_.precision.splits_operands() ? "1" : "0";
  }

  // Whether steps of so many terms go on from one tap to the next.
  bool is_flat(int depth) const {
    return view_.taps() > 1 && view_.inner().is_constant() && view_.inner().value() % depth != 0;
  }

  // Steps of so many terms, and chains of at most so many; 0: one chain.
  void set_steps(int depth, std::int64_t longest_chain) {
    auto& p = values_.parameters;
    const bool is_known = view_.inner().is_constant();
    p["BK"] = std::to_string(depth);
    p["K_UNROLL"] = target_.precision.splits_operands() ? "1" : std::to_string(depth / 8);
    p["FLAT"] = is_flat(depth) ? "1" : "0";
    const bool is_short = is_known && view_.inner().value() * view_.taps() <= longest_chain;
    p["CHAIN"] = std::to_string(longest_chain / depth);
    p["CHAINED"] = longest_chain == 0 || is_short ? "0" : "1";
  }

  // Of the template for the target's matrix unit.
  void fill_unit() {
    const MatrixUnit& unit = this->unit();
    const SubGroupTile tile = unit_tile();
    auto& p = values_.parameters;
    set_steps(steps_of_unit(unit), tile.elements() <= kChainedElements ? kLongestMatrixChain : 0);
    p["WM"] = std::to_string(tile.rows);
    p["WN"] = std::to_string(tile.columns);
    if (unit.operand == UnitNumber::tf32) return;
    const auto lies_as = [&](const ScalarNode& x, DType type) { return is_plain_load(x) && view_.stored_type(x) == type; };
    const bool halves = lies_as(view_.a(), DType::f16) && lies_as(view_.b(), DType::f16),
               one_part = halves || (lies_as(view_.a(), DType::bf16) && lies_as(view_.b(), DType::bf16));
    p["UNIT"] = unit.name;
    p["LANES"] = std::to_string(unit.lanes);
    p["UM"] = std::to_string(unit.m);
    p["UN"] = std::to_string(unit.n);
    p["PARTS"] = std::to_string(one_part ? 1 : parts_of(target_.precision.bf16_products));
    p["HALF"] = halves ? "1" : "0";
    if (p["CHAINED"] == "0") p["CHAIN"] = "0";
  }

  const MatrixUnit& unit() const { return *target_.matrix_unit; }
  SubGroupTile unit_tile() const { return tiles_.of_sub_group(unit()).value(); }

  std::string_view unit_template() const { return unit().operand == UnitNumber::tf32 ? kMatrixTemplate : kHalfUnitTemplate; }

  // Floats of local memory beside the template's.
  std::string unit_exchange() const {
    if (unit().operand == UnitNumber::tf32) return "";
    return fmt::format(" + oclc_exchange_floats({})", items_ / unit().lanes);
  }

  // Groups share the terms of a tile: sizes are numbers then, see split_k.h.
  bool shares_sums() const { return sm90a_ && sm90a_->line > 0 && view_.roles().shares > 1; }

  bool on_matrix_unit() const { return !sm90a_ && uses_matrix_unit(tiles_, target_); }

  void fill_loads(const GpuLoad& a, GpuLoad b) {
    if (sm90a_ && sm90a_->halves)
      pack_b_as_halves(b);
    else if (b.width == 1 || (sm90a_ && !b.along_k))
      pack_b(b);
    values_.holes["A_PLACE"] = a.place;
    values_.holes["A_STEP"] = a.step;
    auto& p = values_.parameters;
    const bool shares_rows = sm90a_ && sm90a_->line > 1;
    values_.holes["A_ROW"] = shares_rows ? a.long_row : a.row;
    if (shares_rows || has_windows()) p["WIDTH"] = std::to_string(view_.line_rows().value());
    p["TABLE"] = a.row.empty() || (a.width > 1 && !a.along_k) ? "0" : "1";
    const bool masked = p["TABLE"] == "1" && a.edges_of_taps && view_.taps() > 1 && view_.taps() <= 2 * kMaskedTaps;
    p["MASKED"] = a.row.empty() ? "0" : "1";
    p["MASKS"] = std::to_string(masked ? ceil_div(view_.taps(), kMaskedTaps) : 0);
    p["AV"] = std::to_string(a.width);
    p["BV"] = std::to_string(b.width);
    p["A_ALONG_K"] = a.along_k ? "1" : "0";
    p["B_ALONG_K"] = b.along_k ? "1" : "0";
    values_.holes["A_ELEMENTS"] = a.text;
    values_.holes["B_ELEMENTS"] = b.text;
  }

  // A constant B whose neighbours do not lie side by side is laid out at compile time.
  void pack_b(GpuLoad& load) {
    const auto layout = constant_b_layout(view_, buffers_);
    if (!layout) return;
    const ScalarNode& b = view_.b();
    const Buffer& source = buffers_[static_cast<std::size_t>(view_.operand_of(b).buffer)];
    const std::int64_t groups = view_.groups().value(), columns = view_.columns().value(), inner = view_.inner().value();
    // Matrix units read columns of neighbours in k.
    load.along_k = sm90a_.has_value();
    const std::int64_t run = load.along_k ? view_.taps() * inner : columns;
    const std::int64_t pitch = ceil_div(run, kEpilogueWidth) * kEpilogueWidth;
    packed_.name = source.name + (load.along_k ? ".columns" : ".rows");
    packed_.kind = BufferKind::constant;
    packed_.constant = load.along_k ? pack_columns(source.constant, *layout, groups, columns, inner, pitch)
                                    : pack_panels(source.constant, *layout, groups, columns, inner, pitch);
    packed_.dtype = packed_.constant.dtype();
    packed_.elements = Expr(packed_.constant.elements());
    kernel_.operands[static_cast<std::size_t>(b.operand)].replaced = !view_.is_read_elsewhere(b);
    EmitMode mode;
    mode.width = load.width = kEpilogueWidth;
    const std::string at = load.along_k ? fmt::format("(size_t)(g * N + n) * {} + tap * K + k", pitch)
                                        : fmt::format("((size_t)(g * TAPS + tap) * K + k) * {} + n", pitch);
    load.text = is_half(packed_.dtype) ? fmt::format("v = {};\n", half_load(packed_.dtype, "weights", at, mode))
                                       : fmt::format("v = *(const __global float4*)(weights + {});\n", at);
    if (!load.along_k) values_.parameters["N_LOADED"] = std::to_string(pitch);
  }

  // Tiles of a constant B as they lie in local memory.
  void pack_b_as_halves(GpuLoad& load) {
    const HalvesLayout layout = halves_layout(view_, *sm90a_, target_);
    values_.parameters["STEP_SCALES"] = layout.step_scales ? "1" : "0";
    load.along_k = true;
    load.width = kEpilogueWidth;
    load.text = packed_halves_text(layout, "weights");
    if (layout.step_scales) {
      values_.holes["SIZES"] += fmt::format("const __global float* weights = {};\n", kImages);
      return drop_b();
    }
    const ScalarNode& b = view_.b();
    const Buffer& source = buffers_[static_cast<std::size_t>(view_.operand_of(b).buffer)];
    packed_.name = source.name + ".halves";
    packed_.kind = BufferKind::constant;
    packed_.constant = pack_halves(source.constant, *constant_b_layout(view_, buffers_), layout);
    packed_.dtype = DType::f32;
    packed_.elements = Expr(packed_.constant.elements());
    drop_b();
  }

  // The code does not read B where it lies.
  void drop_b() {
    const ScalarNode& b = view_.b();
    if (b.kind == ScalarNode::Kind::load)
      kernel_.operands[static_cast<std::size_t>(b.operand)].replaced = !view_.is_read_elsewhere(b);
  }

  // The functions of a text: their parameters, and what the kernel passes to its tile function.
  struct Functions {
    std::string name, tile_parameters, parameters, arguments;
    int items = 0;  // of a group

    std::string tile(std::string_view attribute, std::string_view number, const std::string& body) const {
      return fmt::format("{}void {}_tile({}, const int {}, __local float* restrict space) {{\n{}}}\n\n", attribute, name,
                         tile_parameters, number, body);
    }

    // `loop` stands before the call.
    std::string kernel(const std::string& floats, int alignment, std::string_view loop, std::string_view number,
                       std::string_view attribute = "") const {
      return fmt::format(
          "{8}__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n"
          "  __local float space[{3}] __attribute__((aligned({4})));\n  {5}{1}_tile({6}, {7}, space);\n}}\n",
          items, name, parameters, floats, alignment, loop, arguments, number, attribute);
    }
  };

  static constexpr const char* kGroup = "(int)get_group_id(0)";

  GeneratedKernel assemble() {
    GeneratedKernel g;
    g.name = kernel_.name;
    // Without shares a group computes one result of each of its windows after another.
    const Kernel one = has_windows() ? one_of_each_window(kernel_) : Kernel();
    const auto one_view = has_windows() ? ContractionView::of(one) : std::nullopt;
    std::optional<GpuContractionCode> windows;
    if (one_view) windows.emplace(*one_view, *this);
    GpuContractionCode& portable = windows ? *windows : *this;
    const Expr portable_tiles = tiles_of(portable.view_.rows(), tiles_.rows, tiles_.columns);
    fill_launch(g, portable_tiles);
    g.arguments = arguments_of(kernel_);
    Functions f{g.name, parameter_list(kernel_, false), parameter_list(kernel_, true), argument_list(kernel_), items_};
    if (!packed_.name.empty()) {
      const std::string type = fmt::format("const {}", c_type(packed_.dtype));
      add_buffer(g, f, std::move(packed_), type, "", "weights");
    }
    if (shares_sums()) add_shares(g, f);
    g.head = kernel_head(kernel_, g);
    const std::string loop = sm90a_ ? fmt::format("for (int tile = {}; tile < {}; tile += (int)get_num_groups(0)) ", kGroup,
                                                  view_.c_text(portable_tiles))
                                    : "";
    portable.set_steps(tiles_.depth, kLongestChain);
    g.source = portable.text_of(f, kTemplate, "2 * STAGE", loop, sm90a_ ? "tile" : kGroup);
    if (on_matrix_unit()) {
      portable.fill_unit();
      const std::string attribute = unit().attribute.empty() ? "" : fmt::format("{}\n", unit().attribute);
      g.source = fmt::format("#if {}\n", unit().condition) +
                 portable.text_of(f, unit_template(), "SPACE", "", kGroup, portable.unit_exchange(), attribute) + "#else\n" +
                 g.source + "#endif\n";
    }
    if (!sm90a_) return g;
    g.sm90a = true;
    g.source = "#ifdef OCLC_SM90A\n" + sm90a_text(f) + "#else\n" + g.source + "#endif\n";
    return g;
  }

  Expr tiles_of(const Expr& all_rows, std::int64_t rows, std::int64_t columns) const {
    return view_.groups() * ceil_div(all_rows, Expr(rows)) * ceil_div(view_.columns(), Expr(columns));
  }

  // Groups, their size, and the line that says what they do.
  void fill_launch(GeneratedKernel& g, const Expr& portable_tiles) const {
    const Expr tile_count =
        sm90a_ ? tiles_of(view_.rows_with(sm90a_->more_positions()), sm90a_->own_rows(), sm90a_->columns) : portable_tiles;
    // On matrix units a group goes on to further tiles.
    const Expr most = tile_count * Expr(shares_sums() ? view_.roles().shares : 1);
    g.groups = {sm90a_ ? min(most, Expr(std::int64_t{target_.compute_units} * sm90a_->groups_of_unit)) : tile_count};
    g.local = {static_cast<std::uint32_t>(items_)};
    g.schedule =
        sm90a_ ? fmt::format("template {}, tile {} x {}, or ", sm90a_->template_name(), sm90a_->tile_rows(), sm90a_->columns)
               : "";
    if (shares_sums()) g.schedule = fmt::format("{} groups share the terms of a tile; {}", view_.roles().shares, g.schedule);
    g.schedule += fmt::format("template {}, tile {} x {} x {}, {} x {} a work-item", kTemplate, tiles_.rows, tiles_.columns,
                              tiles_.depth, tiles_.item_rows, tiles_.item_columns);
    if (on_matrix_unit())
      g.schedule += fmt::format("; on a matrix unit {}, steps of {}, {} x {} a sub-group", unit_template(),
                                steps_of_unit(unit()), unit_tile().rows, unit_tile().columns);
  }

  // A buffer of the kernel's own making.
  void add_buffer(GeneratedKernel& g, Functions& f, Buffer buffer, std::string_view type, std::string_view access,
                  std::string_view name) const {
    g.arguments.push_back({.operand = static_cast<int>(kernel_.operands.size() + g.packed.size())});
    g.packed.push_back(std::move(buffer));
    f.tile_parameters += fmt::format(", {}__global {}* {}", access, type, name);
    f.parameters += fmt::format(", __global {0}* {1}, const long {1}_at", type, name);
    f.arguments += fmt::format(", {0} + {0}_at", name);
  }

  // What groups that share the terms of a tile hand to one another.
  void add_shares(GeneratedKernel& g, Functions& f) {
    values_.parameters["SHARES"] = std::to_string(view_.roles().shares);
    const auto size = [&](std::string_view macro) {
      return Expr(std::int64_t{std::stol(sm90a_macro(*sm90a_, macro, values_))});
    };
    add_buffer(g, f, {kernel_.name + ".parts", BufferKind::arena, DType::f32, size("PARTS_SPACE"), {}, -1}, "float", "",
               "parts");
    add_buffer(g, f, {kernel_.name + ".turns", BufferKind::state, DType::u32, size("TURNS"), {}, -1}, "uint", "volatile ",
               "turns");
    if (view_.roles().asked_bytes == 0) return;
    g.arguments.push_back({.operand = -1});
    f.tile_parameters += ", const __global uint* later";
    f.parameters += ", __global const uint* later, const long later_at";
    f.arguments += ", later + later_at";
    values_.holes["ASK"] = fmt::format("oclc_ask_for(later, {}, ticket, TICKETS);\n", view_.roles().asked_bytes);
  }

  // The functions from one template for any device, or for a matrix unit that sub-groups share; `floats` is its macro of local
  // memory. Of windows the one result of each that this object's view has.
  std::string text_of(const Functions& f, std::string_view name, std::string_view floats, std::string_view loop,
                      std::string_view number, const std::string& more_floats = "", std::string_view attribute = "") const {
    const TemplateValues values = gpu_values(name, values_);
    const std::string body = expand_tile_body(name, values), space = expand_macro(name, floats, values) + more_floats;
    if (window_results_ == 0) return f.tile("", "tile", body) + f.kernel(space, 16, loop, number, attribute);
    return f.tile("", "turn",
                  fmt::format("  const int tile = turn / {0}, window = turn % {0};\n", window_results_) +
                      window_coordinates(*whole_, "window") + body) +
           f.kernel(space, 16, fmt::format("{}for (int window = 0; window < {}; ++window) ", loop, window_results_),
                    fmt::format("{} * {} + window", number, window_results_), attribute);
  }

  std::string sm90a_text(const Functions& f) {
    set_steps(kMatrixDepth, kLongestMatrixChain);
    const EpiloguePhases phases = contraction_epilogue_phases(view_, kEpilogueWidth, true);
    values_.holes["EPILOGUE_VALUE"] = phases.value;
    values_.holes["EPILOGUE"] = phases.store;
    values_.parameters["RESULTS"] = std::to_string(phases.results);
    if (has_windows()) {
      const auto& lengths = view_.roles().windows;
      values_.parameters["WINDOW_LINES"] = std::to_string(lengths.size() > 1 ? lengths[lengths.size() - 2] : 1);
      values_.parameters["WINDOW_WIDTH"] = std::to_string(lengths.back());
    }
    return f.tile("__attribute__((always_inline)) ", "first_tile", sm90a_tile_body(*sm90a_, values_)) +
           f.kernel(sm90a_macro(*sm90a_, "SPACE", values_), 1024, "", kGroup);
  }

  const ContractionView& view_;
  const std::vector<Buffer>& buffers_;
  const Target& target_;
  Kernel kernel_;  // with the operands that the code has
  Buffer packed_;  // the constant B, if it is laid out anew
  GpuTiles tiles_;
  std::optional<Sm90aTiles> sm90a_;
  int items_ = 0;  // of a group
  // Of one result of each window: the kernel of all, and how many there are; 0: this object has no windows, or all results.
  const Kernel* whole_ = nullptr;
  std::int64_t window_results_ = 0;
  TemplateValues values_;
};

}  // namespace

GeneratedKernel emit_gpu(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target) {
  const GpuChoice& chosen = std::get<GpuChoice>(choice.tiles);
  Target with_products = target;
  with_products.precision.products = chosen.products;
  return GpuContractionCode(view, buffers, with_products).run(chosen);
}

}  // namespace oclc
