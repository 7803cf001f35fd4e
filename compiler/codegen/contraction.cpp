#include "compiler/codegen/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/generic.h"
#include "compiler/codegen/pack.h"
#include "compiler/codegen/scope.h"
#include "compiler/codegen/template_text.h"
#include "compiler/codegen/tiling.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/index_maps.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Kind = ScalarNode::Kind;
using Substitution = std::map<std::string, Expr, std::less<>>;

// Longest chain of fused multiply-adds: longer sums are added up from pieces, which divides their rounding error.
constexpr std::int64_t kLongestChain = 128;

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class ContractionCode {
 public:
  ContractionCode(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target)
      : kernel_(kernel), buffers_(buffers), target_(target), c_(*kernel.contraction), a_(node(c_.a)), b_(node(c_.b)) {}

  std::optional<GeneratedKernel> run() {
    if (!analyse()) return std::nullopt;
    choose();
    if (!choose_template()) return std::nullopt;
    fill_parameters();
    fill_holes();
    return assemble();
  }

 private:
  const ScalarNode& node(NodeId id) const { return kernel_.nodes[static_cast<std::size_t>(id)]; }
  const Axis& axis(int i) const { return kernel_.axes[static_cast<std::size_t>(i)]; }
  const Axis& reduction(int i) const { return kernel_.reduction[static_cast<std::size_t>(i)]; }
  const Axis& column_axis() const { return axis(c_.n[0]); }
  const Axis& inner_axis() const { return reduction(c_.k.back()); }

  static bool plain_load(const ScalarNode& n) {
    if (n.kind != Kind::load || n.dtype != DType::f32) return false;
    const auto symbols = n.index.symbols();
    return std::none_of(symbols.begin(), symbols.end(), [](const std::string& s) { return dynamic_index(s).has_value(); });
  }

  bool analyse() {
    if (c_.n.size() != 1 || c_.k.empty() || kernel_.stages.size() != 1 || kernel_.stages[0].accumulator != DType::f32)
      return false;
    if (a_.dtype != DType::f32 || b_.dtype != DType::f32) return false;
    for (const int i : c_.batch) {
      groups_ *= axis(i).extent;
      group_shape_.push_back(axis(i).extent);
    }
    for (const int i : c_.m) {
      rows_ *= axis(i).extent;
      row_shape_.push_back(axis(i).extent);
    }
    columns_ = column_axis().extent;
    inner_ = inner_axis().extent;
    for (std::size_t i = 0; i + 1 < c_.k.size(); ++i) {
      const Expr extent = reduction(c_.k[i]).extent;
      if (!extent.is_constant()) return false;
      taps_ *= extent.value();
      tap_shape_.push_back(extent);
    }
    if (rows_ == Expr(0) || columns_ == Expr(0) || inner_ == Expr(0) || groups_ == Expr(0)) return false;
    wide_ = needs_wide_index(kernel_, {groups_, rows_, columns_});
    // Flat coordinates: m over the rows, g over the batch.
    const auto name = [&](const std::vector<int>& axes, const Shape& shape, const Expr& flat, Substitution& into) {
      const auto coords = unflatten(flat, shape);
      for (std::size_t i = 0; i < coords.size(); ++i) into[axis(axes[i]).name] = coords[i];
    };
    name(c_.m, row_shape_, Expr::axis("m", rows_), to_flat_row_);
    name(c_.batch, group_shape_, Expr::axis("g", groups_), to_flat_group_);
    return true;
  }

  void choose() {
    ContractionShape shape;
    shape.groups = typical_extent(groups_);
    shape.rows = typical_extent(rows_);
    shape.columns = typical_extent(columns_);
    shape.depth = typical_extent(inner_) * taps_;
    shape.row_bytes = typical_extent(inner_) * 4;
    tiles_ = choose_tiles(shape, target_);
  }

  bool a_direct() const {
    if (!plain_load(a_) || (!a_.guard.empty() && a_.number != 0)) return false;
    if (!a_.index.coefficient(inner_axis().name)) return false;
    return std::none_of(a_.guard.begin(), a_.guard.end(), [&](const Expr& e) { return e.uses(inner_axis().name); });
  }

  std::optional<std::int64_t> constant_stride(const Expr& index, const std::string& name) const {
    const auto c = index.coefficient(name);
    return c && c->is_constant() ? std::optional(c->value()) : std::nullopt;
  }

  // The right operand as constant panels, if it is a constant read through strides.
  bool pack_constant() {
    if (!plain_load(b_) || !b_.guard.empty()) return false;
    const Buffer& buffer = buffers_[static_cast<std::size_t>(kernel_.operands[static_cast<std::size_t>(b_.operand)].buffer)];
    if (buffer.kind != BufferKind::constant || !groups_.is_constant() || !columns_.is_constant() || !inner_.is_constant())
      return false;
    PackedOperand where;
    Expr base = b_.index.substitute(to_flat_group_);
    const auto group = groups_ == Expr(1) ? std::optional<std::int64_t>(0) : constant_stride(base, "g");
    const auto inner = constant_stride(b_.index, inner_axis().name), column = constant_stride(b_.index, column_axis().name);
    if (!group || !inner || !column) return false;
    where.group_stride = *group;
    where.inner_stride = *inner;
    where.column_stride = *column;
    Substitution zero{{"g", Expr(0)}, {inner_axis().name, Expr(0)}, {column_axis().name, Expr(0)}};
    base = base.substitute(zero);
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      Substitution at;
      const auto coords = unflatten(Expr(tap), tap_shape_);
      for (std::size_t i = 0; i < coords.size(); ++i) at[reduction(c_.k[i]).name] = coords[i];
      const auto offset = base.substitute(at).constant();
      if (!offset) return false;
      where.tap_offsets.push_back(*offset);
    }
    Buffer packed;
    packed.name = buffer.name + ".packed";
    packed.kind = BufferKind::constant;
    packed.constant = pack_panels(buffer.constant, where, groups_.value(), columns_.value(), inner_.value(), panel_width());
    packed.elements = Expr(packed.constant.elements());
    packed_.push_back(std::move(packed));
    packed_names_.push_back("weights");
    const bool read_elsewhere = std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
      return &n != &b_ && n.kind == Kind::load && n.operand == b_.operand;
    });
    kernel_.operands[static_cast<std::size_t>(b_.operand)].replaced = !read_elsewhere;
    return true;
  }

  std::int64_t panel_width() const { return std::int64_t{tiles_.vectors} * target_.vector_width; }

  // Rows of the right operand that vectors read in place: [inner][column] with unit step in columns, panels without a ragged
  // end.
  bool raw_rows() const {
    return plain_load(b_) && b_.guard.empty() && b_.index.coefficient(column_axis().name) == Expr(1) &&
           b_.index.coefficient(inner_axis().name).has_value() && taps_are_consecutive() && columns_.is_constant() &&
           rows_hold_panels();
  }

  // Whole panels of columns, or rows padded to them.
  bool rows_hold_panels() const {
    const std::int64_t panels = (columns_.value() + panel_width() - 1) / panel_width();
    if (columns_.value() % panel_width() == 0) return true;
    const auto step = constant_stride(b_.index, inner_axis().name);
    return groups_ == Expr(1) && step && *step >= panels * panel_width() && *step % panel_width() == 0 && starts_rows();
  }

  // The first column of each row is the row's first element: surplus columns end with the row.
  bool starts_rows() const {
    Substitution zero{{column_axis().name, Expr(0)}};
    for (const int i : c_.k) zero[reduction(i).name] = Expr(0);
    return b_.index.substitute(zero) == Expr(0);
  }

  // The rows of a tap follow those of the tap before it.
  bool taps_are_consecutive() const {
    const Expr rows_of_tap = inner_ * b_.index.coefficient(inner_axis().name).value_or(Expr(0));
    const auto at_tap = [&](std::int64_t tap) {
      Substitution at;
      const auto coords = unflatten(Expr(tap), tap_shape_);
      for (std::size_t i = 0; i < coords.size(); ++i) at[reduction(c_.k[i]).name] = coords[i];
      return b_.index.substitute(at);
    };
    const Expr first = at_tap(0);
    for (std::int64_t tap = 1; tap < taps_; ++tap) {
      if (!(at_tap(tap) - first == Expr(tap) * rows_of_tap)) return false;
    }
    return true;
  }

  // Widest panel that divides the columns, if they are read in place.
  void fit_panel() {
    if (!columns_.is_constant()) return;
    while (tiles_.vectors > 1 && columns_.value() % panel_width() != 0) --tiles_.vectors;
  }

  bool choose_template() {
    const bool direct = a_direct();
    constant_b_ = pack_constant();
    if (!constant_b_) {
      const ContractionTiles before = tiles_;
      if (b_.index.coefficient(column_axis().name) == Expr(1)) fit_panel();
      if (!raw_rows()) {
        tiles_ = before;
        return direct && taps_ == 1 && choose_packed_b();
      }
    }
    if (direct) {
      template_ = "contraction_cpu";
      return true;
    }
    return choose_packed_a();
  }

  bool choose_packed_b() {
    if (!inner_.is_constant()) return false;
    const std::int64_t budget = std::min(target_.l2_bytes / 2, target_.local_bytes);
    tiles_.rows = 8;
    tiles_.vectors = 2;
    while (tiles_.vectors > 1 && inner_.value() * panel_width() * 4 > budget) --tiles_.vectors;
    if (inner_.value() * panel_width() * 4 > budget) return false;
    const std::int64_t row_tiles = (typical_extent(rows_) + tiles_.rows - 1) / tiles_.rows;
    const std::int64_t panels = (typical_extent(columns_) + panel_width() - 1) / panel_width();
    const std::int64_t blocks =
        std::max<std::int64_t>(1, 4 * target_.compute_units / std::max<std::int64_t>(1, typical_extent(groups_) * panels));
    tiles_.row_tiles = std::max<std::int64_t>(1, (row_tiles + blocks - 1) / blocks);
    template_ = "contraction_packed_b_cpu";
    return true;
  }

  bool choose_packed_a() {
    if (!inner_.is_constant()) return false;
    const std::int64_t pitch = taps_ * inner_.value() + 16, budget = std::min(target_.l2_bytes / 2, target_.local_bytes);
    const std::int64_t row_bytes = pitch * 4;
    tiles_.rows = static_cast<int>(std::min<std::int64_t>(tiles_.rows, std::max<std::int64_t>(1, budget / row_bytes)));
    if (tiles_.rows * row_bytes > budget) return false;
    const std::int64_t row_tiles = (typical_extent(rows_) + tiles_.rows - 1) / tiles_.rows,
                       panels = (typical_extent(columns_) + panel_width() - 1) / panel_width();
    const std::int64_t cores = target_.compute_units;
    // All panels share a packed row, unless cores would idle.
    std::int64_t fitting = std::max<std::int64_t>(1, budget / (row_bytes * tiles_.rows));
    tiles_.row_tiles = std::min<std::int64_t>({fitting, row_tiles, std::max<std::int64_t>(1, row_tiles / (4 * cores))});
    const std::int64_t row_blocks = (row_tiles + tiles_.row_tiles - 1) / tiles_.row_tiles;
    const std::int64_t panel_blocks = std::clamp<std::int64_t>(2 * cores / row_blocks, 1, panels);
    tiles_.panels = (panels + panel_blocks - 1) / panel_blocks;
    template_ = "contraction_packed_a_cpu";
    return true;
  }

  // C text of an expression in the tile function.
  std::string c_text(const Expr& e) const {
    return e.c_text([&](std::string_view s) -> std::string {
      static constexpr std::string_view kLocal[] = {"m", "g", "tap", "r", "k"};
      if (std::find(std::begin(kLocal), std::end(kLocal), s) != std::end(kLocal)) return std::string(s);
      for (const auto* list : {&kernel_.axes, &kernel_.reduction}) {
        for (const Axis& a : *list) {
          if (a.name == s) return a.name;
        }
      }
      return fmt::format("dim_{}", s);
    });
  }

  std::string index_type() const { return wide_ ? "long" : "int"; }

  // A size as the template's parameter: a literal, or the name of a variable that the hole SIZES declares.
  std::string size(const std::string& variable, const Expr& e) {
    if (e.is_constant()) return std::to_string(e.value());
    sizes_.push_back(fmt::format("const int {} = (int)({});", variable, c_text(e)));
    return variable;
  }

  void fill_parameters() {
    auto& p = values_.parameters;
    p["G"] = size("group_count", groups_);
    p["M"] = size("row_count", rows_);
    p["N"] = size("column_count", columns_);
    p["K"] = size("inner_count", inner_);
    p["TAPS"] = std::to_string(taps_);
    p["VW"] = std::to_string(target_.vector_width);
    p["MR"] = std::to_string(tiles_.rows);
    p["NV"] = std::to_string(tiles_.vectors);
    p["MT"] = std::to_string(tiles_.row_tiles);
    p["NP"] = std::to_string(tiles_.panels);
    p["ROWS_FASTEST"] = tiles_.rows_fastest ? "1" : "0";
    const std::int64_t depth = inner_.is_constant() ? inner_.value() * taps_ : 0;
    const bool chained = depth > 2 * kLongestChain;
    if (inner_.is_constant() && chained) {
      if (template_ != "contraction_cpu" || inner_.value() > kLongestChain)
        p["K_CHAIN"] = std::to_string(kLongestChain);
      else
        p["TAP_CHAIN"] = std::to_string(std::max<std::int64_t>(1, kLongestChain / inner_.value()));
    }
    if (!inner_.is_constant())
      p["K_CHAIN"] = std::to_string(kLongestChain), p["CHAINED"] = "1";
    else
      p["CHAINED"] = chained ? "1" : "0";
    const auto step = a_.index.coefficient(inner_axis().name);
    if (template_ != "contraction_packed_a_cpu" && step) p["A_STEP"] = fmt::format("({})", c_text(*step));
    if (!constant_b_) p["B_STEP"] = fmt::format("({})", c_text(b_.index.coefficient(inner_axis().name).value_or(Expr(1))));
    if (cheap_epilogue())
      p["EPILOGUE_UNROLL"] = p["MR"];
    else
      p["EPILOGUE_UNROLL"] = "1";
  }

  bool cheap_epilogue() const {
    int applies = 0;
    for (const ScalarNode& n : kernel_.nodes) applies += n.kind == Kind::apply ? static_cast<int>(n.op->flops) : 0;
    return applies <= 8;
  }

  // The row coordinates that `e` needs, declared for row `flat`; empty if `e` is affine in it.
  std::vector<std::string> row_coordinates(const std::string& flat, const std::vector<Expr>& needed) const {
    std::vector<std::string> lines;
    const auto coords = unflatten(Expr::axis("m", rows_), row_shape_);
    for (std::size_t i = 0; i < coords.size(); ++i) {
      const std::string& name = axis(c_.m[i]).name;
      if (std::none_of(needed.begin(), needed.end(), [&](const Expr& e) { return e.uses(name); })) continue;
      std::string text = c_text(coords[i]);
      if (flat != "m") text = coords[i].c_text([&](std::string_view s) { return s == "m" ? flat : fmt::format("dim_{}", s); });
      lines.push_back(fmt::format("const {} {} = {};", index_type(), name, text));
    }
    return lines;
  }

  std::vector<std::string> group_coordinates() const {
    std::vector<std::string> lines;
    const auto coords = unflatten(Expr::axis("g", groups_), group_shape_);
    for (std::size_t i = 0; i < coords.size(); ++i)
      lines.push_back(
          fmt::format("const {} {} = {};", index_type(), axis(c_.batch[i]).name, groups_ == Expr(1) ? "0" : c_text(coords[i])));
    return lines;
  }

  std::vector<std::string> tap_coordinates() const {
    std::vector<std::string> lines;
    const auto coords = unflatten(Expr::axis("tap", Expr(taps_)), tap_shape_);
    for (std::size_t i = 0; i < coords.size(); ++i)
      lines.push_back(fmt::format("const int {} = {};", reduction(c_.k[i]).name, c_text(coords[i])));
    return lines;
  }

  bool flat_affine(const Expr& e) const {
    const Expr flat = e.substitute(to_flat_row_);
    return !flat.uses("m") || flat.coefficient("m").has_value();
  }

  const std::string& a_name() const { return kernel_.operands[static_cast<std::size_t>(a_.operand)].name; }

  void fill_row_pointers() {
    const Substitution first{{inner_axis().name, Expr(0)}};
    const Expr at = a_.index.substitute(first);
    std::vector<std::string> state = group_coordinates(), pointer;
    const bool affine = a_.guard.empty() && flat_affine(at);
    if (affine) {
      Substitution no_taps;
      for (std::size_t i = 0; i + 1 < c_.k.size(); ++i) no_taps[reduction(c_.k[i]).name] = Expr(0);
      const Expr base = at.substitute(no_taps).substitute(to_flat_row_), per_tap = at - at.substitute(no_taps);
      bool row_free = true;
      for (const int i : c_.m) row_free = row_free && !per_tap.uses(axis(i).name);
      if (row_free) {
        Substitution rename{{"m", Expr::axis("r", rows_)}};
        state.push_back("const __global float* row[MR];");
        state.push_back("#pragma unroll");
        state.push_back(fmt::format("for (int i = 0; i < MR; ++i) {{ const {} r = min(m0 + i, M - 1); row[i] = {} + {}; }}",
                                    index_type(), a_name(), c_text(base.substitute(rename))));
        if (taps_ > 1) pointer = tap_coordinates();
        pointer.push_back("#pragma unroll");
        pointer.push_back(per_tap == Expr(0)
                              ? "for (int i = 0; i < MR; ++i) p[i] = row[i];"
                              : fmt::format("for (int i = 0; i < MR; ++i) p[i] = row[i] + {};", c_text(per_tap)));
        values_.holes["ROW_STATE"] = indented(state);
        values_.holes["A_POINTER"] = indented(pointer);
        return;
      }
    }
    std::vector<Expr> needed = a_.guard;
    needed.push_back(at);
    std::vector<std::string> names;
    for (const int i : c_.m) {
      if (std::any_of(needed.begin(), needed.end(), [&](const Expr& e) { return e.uses(axis(i).name); }))
        names.push_back(axis(i).name);
    }
    if (!names.empty()) {
      std::vector<std::string> arrays;
      for (const std::string& n : names) arrays.push_back(fmt::format("{}_of[MR]", n));
      state.push_back(fmt::format("{} {};", index_type(), fmt::join(arrays, ", ")));
      state.push_back("#pragma unroll");
      state.push_back("for (int i = 0; i < MR; ++i) {");
      state.push_back(fmt::format("  const {} r = min(m0 + i, M - 1);", index_type()));
      const auto coords = unflatten(Expr::axis("r", rows_), row_shape_);
      for (std::size_t i = 0; i < coords.size(); ++i) {
        if (std::find(names.begin(), names.end(), axis(c_.m[i]).name) != names.end())
          state.push_back(fmt::format("  {}_of[i] = {};", axis(c_.m[i]).name, c_text(coords[i])));
      }
      state.push_back("}");
    }
    // Without taps the pointers are those of the rows, which some templates use directly.
    const bool by_row = taps_ == 1;
    pointer = tap_coordinates();
    if (by_row) {
      state.push_back("const __global float* row[MR];");
      state.insert(state.end(), pointer.begin(), pointer.end());
      pointer = {"#pragma unroll", "for (int i = 0; i < MR; ++i) p[i] = row[i];"};
    }
    std::vector<std::string>& place = by_row ? state : pointer;
    place.push_back("#pragma unroll");
    place.push_back("for (int i = 0; i < MR; ++i) {");
    for (const std::string& n : names) place.push_back(fmt::format("  const {0} {1} = {1}_of[i];", index_type(), n));
    const char* target = by_row ? "row" : "p";
    if (a_.guard.empty()) {
      place.push_back(fmt::format("  {}[i] = {} + {};", target, a_name(), c_text(at)));
    } else {
      Emitter e(kernel_, mode());
      place.push_back(fmt::format("  {}[i] = ({}) ? {} + {} : zero;", target, e.condition(a_.guard), a_name(), c_text(at)));
      need_zero();
    }
    place.push_back("}");
    values_.holes["ROW_STATE"] = indented(state);
    values_.holes["A_POINTER"] = indented(pointer);
  }

  // An area of zeros that pointers of padded taps go to.
  void need_zero() {
    const Expr step = *a_.index.coefficient(inner_axis().name);
    Buffer zeros;
    zeros.name = "zero";
    zeros.kind = BufferKind::constant;
    zeros.constant = HostTensor(DType::f32, {(typical_upper(inner_) - 1) * typical_upper(step) + 1});
    zeros.elements = Expr(zeros.constant.elements());
    packed_.push_back(std::move(zeros));
    packed_names_.push_back("zero");
  }

  static std::int64_t typical_upper(const Expr& e) {
    OCLC_CHECK(e.is_constant(), "padding of a convolution whose channel count or step is symbolic");
    return e.value();
  }

  EmitMode mode() const {
    EmitMode m;
    m.wide_index = wide_;
    return m;
  }

  void fill_packed_rows() {
    const std::string inner = inner_axis().name;
    Kernel loads = only(c_.a);
    const std::int64_t width = inner_.value() >= target_.vector_width && can_vectorize(loads, inner) ? target_.vector_width : 1;
    values_.parameters["PV"] = std::to_string(width);
    std::vector<std::string> names;
    for (const Axis& a : kernel_.axes) names.push_back(a.name);
    for (const Axis& a : kernel_.reduction) names.push_back(a.name);
    Emitter e(loads, mode());
    e.set_vector_axis(inner, static_cast<int>(width));
    e.open("", {names.begin(), names.end()});
    for (const std::string& line : group_coordinates()) e.line(line);
    std::vector<Expr> all = indices_of(loads);
    for (const std::string& line : row_coordinates("m", all)) e.line(line);
    for (const std::string& line : tap_coordinates()) e.line(line);
    e.line(fmt::format("const {} {} = k;", index_type(), inner));
    e.line(fmt::format("v = {};", e.vector_value(c_.a)));
    e.close();
    values_.holes["A_ELEMENTS"] = e.text();
  }

  static std::vector<Expr> indices_of(const Kernel& kernel) {
    std::vector<Expr> all;
    for (const ScalarNode& n : kernel.nodes) {
      all.push_back(n.index);
      all.insert(all.end(), n.guard.begin(), n.guard.end());
    }
    for (const Store& s : kernel.stores) all.push_back(s.index);
    return all;
  }

  // The kernel with every node that `root` does not need made a constant.
  Kernel only(NodeId root) const {
    Kernel part = kernel_;
    part.stores.clear();
    part.stages.clear();
    keep_needed(part, {root});
    return part;
  }

  static void keep_needed(Kernel& part, std::vector<NodeId> stack) {
    std::vector<bool> needed(part.nodes.size(), false);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id < 0 || needed[static_cast<std::size_t>(id)]) continue;
      needed[static_cast<std::size_t>(id)] = true;
      const ScalarNode& n = part.nodes[static_cast<std::size_t>(id)];
      stack.insert(stack.end(), n.args.begin(), n.args.end());
      std::vector<Expr> indices = n.guard;
      indices.push_back(n.index);
      for (const Expr& e : indices) {
        for (const std::string& s : e.symbols()) {
          if (const auto dynamic = dynamic_index(s)) stack.push_back(*dynamic);
        }
      }
    }
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) part.nodes[i] = ScalarNode{};
    }
  }

  void fill_b() {
    if (template_ == "contraction_packed_b_cpu") return fill_pack_b();
    if (constant_b_) {
      values_.holes["B_POINTER"] = "const __global float* w = weights + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;\n";
      return;
    }
    const std::string& name = kernel_.operands[static_cast<std::size_t>(b_.operand)].name;
    Substitution at{{column_axis().name, Expr(0)}};
    for (const int i : c_.k) at[reduction(i).name] = Expr(0);
    values_.holes["B_POINTER"] =
        fmt::format("const __global float* w = {} + {} + panel * PW;\n", name, c_text(b_.index.substitute(at)));
  }

  void fill_pack_b() {
    // Element by element: transposed operands, ragged columns and prologues alike. The outer loop runs over the longer step.
    Kernel loads = only(c_.b);
    const std::string column = column_axis().name, inner = inner_axis().name;
    std::set<std::string> outside;
    for (const int i : c_.batch) outside.insert(axis(i).name);
    Emitter e(loads, mode());
    e.open("", outside);
    for (const std::string& line : group_coordinates()) e.line(line);
    const auto columns = [&] {
      e.open("for (int j = 0; j < PW; ++j)", {column});
      e.line(fmt::format("const {} {} = min(n0 + j, N - 1);", index_type(), column));
    };
    const auto inners = [&] { e.open(fmt::format("for (int {0} = 0; {0} < K; ++{0})", inner), {inner}); };
    const bool rows = b_.index.coefficient(column) == Expr(1) || !plain_load(b_);
    if (rows)
      inners(), columns();
    else
      columns(), inners();
    e.line(fmt::format("panel[{} * PW + j] = {};", inner, e.value(c_.b)));
    e.close();
    e.close();
    e.close();
    values_.holes["PACK_B"] = e.text();
  }

  void fill_epilogue() {
    Kernel part = kernel_;
    Stage& stage = part.stages[0];
    std::vector<NodeId> roots;
    for (const Store& s : part.stores) roots.push_back(s.value);
    keep_needed(part, roots);
    // The sum varies along every parallel axis.
    ScalarNode everywhere;
    everywhere.kind = Kind::index;
    everywhere.dtype = DType::i32;
    for (const Axis& a : part.axes) everywhere.index += a.var;
    part.nodes[static_cast<std::size_t>(stage.body)] = everywhere;
    const std::vector<Expr> all = indices_of(part);
    const bool flat =
        std::all_of(all.begin(), all.end(), [&](const Expr& e) { return e == everywhere.index || flat_affine(e); });
    if (flat) {
      const auto flatten_row = [&](Expr& e) { e = e.substitute(to_flat_row_); };
      for (ScalarNode& n : part.nodes) {
        flatten_row(n.index);
        for (Expr& e : n.guard) flatten_row(e);
      }
      for (Store& s : part.stores) flatten_row(s.index);
      std::vector<Axis> axes;
      for (const int i : c_.batch) axes.push_back(axis(i));
      axes.push_back({"m", rows_, Expr::axis("m", rows_)});
      axes.push_back(column_axis());
      part.axes = std::move(axes);
      ScalarNode& body = part.nodes[static_cast<std::size_t>(stage.body)];
      body.index = Expr(0);
      for (const Axis& a : part.axes) body.index += a.var;
    }
    std::set<std::string> names;
    for (const Axis& a : part.axes) names.insert(a.name);
    const std::string& column = column_axis().name;
    const bool unit = std::all_of(part.stores.begin(), part.stores.end(),
                                  [&](const Store& s) { return s.index.coefficient(column) == Expr(1); });
    const bool vector = unit && column_axis().extent != Expr(1) && can_vectorize(part, column);
    const bool ragged = !columns_.is_constant() || columns_.value() % target_.vector_width != 0;
    const int width = target_.vector_width;
    EmitMode emit = mode();
    if (vector) {
      emit.vector_axis = column;
      emit.width = width;
      if (ragged) emit.lanes_left = fmt::format("N - {}", column);
    }
    if (!vector) names.erase(column);
    Emitter e(part, emit);
    e.open("", names);
    if (!flat) {
      for (const std::string& line : row_coordinates("m", all)) e.line(line);
    }
    if (vector) {
      e.line(fmt::format("const {} {} = n;", index_type(), column));
      e.stage_done(0, "v", true);
      for (const Store& s : part.stores) e.store(s);
    } else {
      e.line(fmt::format("float lanes[{}];", width));
      e.line(fmt::format("vstore{}(v, 0, lanes);", width));
      e.open(fmt::format("for (int l = 0; l < {} && n + l < N; ++l)", width), {column});
      e.line(fmt::format("const {} {} = n + l;", index_type(), column));
      e.stage_done(0, "lanes[l]", false);
      for (const Store& s : part.stores) e.store(s);
      e.close();
    }
    e.close();
    values_.holes["EPILOGUE"] = e.text();
    values_.holes["STORE"] = "";
    values_.holes["C_ROW"] = "";
  }

  void fill_holes() {
    if (template_ == "contraction_packed_a_cpu")
      fill_packed_rows();
    else
      fill_row_pointers();
    fill_b();
    fill_epilogue();
    values_.holes["SIZES"] = indented(sizes_);
    if (template_ == "contraction_packed_a_cpu") {
      // The groups' coordinates are needed by the right operand and the epilogue.
      values_.holes["B_POINTER"] = indented(group_coordinates()) + values_.holes["B_POINTER"];
    }
  }

  GeneratedKernel assemble() {
    GeneratedKernel g;
    g.name = kernel_.name;
    const std::string body = expand_tile_body(template_, values_);
    const Expr row_tiles = ceil_div(rows_, Expr(tiles_.rows)), row_blocks = ceil_div(row_tiles, Expr(tiles_.row_tiles));
    const Expr panels = ceil_div(columns_, Expr(panel_width()));
    const Expr panel_blocks = template_ == "contraction_packed_b_cpu" ? panels : ceil_div(panels, Expr(tiles_.panels));
    g.groups = {groups_ * row_blocks * panel_blocks};
    g.local = {1};
    g.arguments = arguments_of(kernel_);
    std::string tile_parameters = parameter_list(kernel_, false), parameters = parameter_list(kernel_, true),
                arguments = argument_list(kernel_);
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      KernelArgument argument;
      argument.operand = static_cast<int>(kernel_.operands.size() + i);
      g.arguments.push_back(argument);
      tile_parameters += fmt::format(", __global const float* {}", packed_names_[i]);
      parameters += fmt::format(", __global const float* {0}, const long {0}_at", packed_names_[i]);
      arguments += fmt::format(", {0} + {0}_at", packed_names_[i]);
    }
    g.packed = std::move(packed_);
    g.schedule = fmt::format("template {}, tile {} x {}, {} x {} tiles a group", template_, tiles_.rows, panel_width(),
                             tiles_.row_tiles, template_ == "contraction_packed_b_cpu" ? 1 : tiles_.panels);
    g.head = kernel_head(kernel_, g);
    std::string local_parameter, local_argument, local_array;
    if (template_ != "contraction_cpu") {
      const bool rows_packed = template_ == "contraction_packed_a_cpu";
      const std::string array = rows_packed ? "block" : "panel";
      const std::string elements = expand_macro(template_, rows_packed ? "MT * MR * A_PITCH" : "K * PW", values_);
      local_parameter = fmt::format(", __local float* {}", array);
      local_argument = ", " + array;
      local_array = fmt::format("  __local float {}[{}];\n", array, elements);
      g.local_floats = elements;
    }
    g.tile_source =
        fmt::format("void {}_tile({}, const int tile{}) {{\n{}}}\n\n", g.name, tile_parameters, local_parameter, body);
    g.source = g.tile_source;
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void {}({}) {{\n{}  {}_tile({}, "
        "(int)get_group_id(0){});\n}}\n",
        g.name, parameters, local_array, g.name, arguments, local_argument);
    return g;
  }

  Kernel kernel_;
  const std::vector<Buffer>& buffers_;
  const Target& target_;
  const Contraction& c_;
  const ScalarNode& a_;
  const ScalarNode& b_;
  Expr groups_ = 1, rows_ = 1, columns_ = 1, inner_ = 1;
  Shape group_shape_, row_shape_, tap_shape_;
  std::int64_t taps_ = 1;
  bool wide_ = false, constant_b_ = false;
  Substitution to_flat_row_, to_flat_group_;
  ContractionTiles tiles_;
  std::string template_;
  TemplateValues values_;
  std::vector<std::string> sizes_;
  std::vector<Buffer> packed_;
  std::vector<std::string> packed_names_;
};

}  // namespace

std::optional<GeneratedKernel> generate_contraction(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                    const Target& target) {
  if (target.device_class != DeviceClass::cpu || target.vector_width < 4) return std::nullopt;
  // The templates rely on unrolled loops over the register tile: where every iteration counts, one element a time takes fewer.
  if (target.loop_iterations != Target::kNoLimit) return std::nullopt;
  return ContractionCode(kernel, buffers, target).run();
}

}  // namespace oclc
