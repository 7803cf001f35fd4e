#include "compiler/codegen/contraction/contraction_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/text/index_type.h"
#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/support/error.h"

namespace oclc {

std::optional<ContractionView> ContractionView::of(const Kernel& kernel) {
  ContractionView view(kernel);
  if (!view.analyse()) return std::nullopt;
  return view;
}

bool ContractionView::is_read_elsewhere(const ScalarNode& load) const {
  return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
    return &n != &load && n.kind == ScalarNode::Kind::load && n.operand == load.operand;
  });
}

const Operand& ContractionView::operand_of(const ScalarNode& load) const {
  OCLC_CHECK(load.kind == ScalarNode::Kind::load, "only loads have an operand");
  return kernel_.operands[static_cast<std::size_t>(load.operand)];
}

DType ContractionView::stored_type(const ScalarNode& node) const {
  return node.kind == ScalarNode::Kind::load ? operand_of(node).dtype : node.dtype;
}

bool ContractionView::analyse() {
  const Contraction& c = roles();
  if (c.n.size() != 1 || c.k.empty() || kernel_.stages.size() != 1 || kernel_.stages[0].accumulator != DType::f32) return false;
  if (a().dtype != DType::f32 || b().dtype != DType::f32) return false;
  for (const int i : c.batch) group_shape_.push_back(axis(i).extent);
  for (const int i : c.m) row_shape_.push_back(axis(i).extent);
  groups_ = product(group_shape_);
  rows_ = product(row_shape_);
  columns_ = column_axis().extent;
  inner_ = inner_axis().extent;
  for (std::size_t i = 0; i + 1 < c.k.size(); ++i) {
    const Expr extent = reduction(c.k[i]).extent;
    if (!extent.is_constant()) return false;
    taps_ *= extent.value();
    tap_shape_.push_back(extent);
  }
  if (rows_ == Expr(0) || columns_ == Expr(0) || inner_ == Expr(0) || groups_ == Expr(0)) return false;
  wide_ = needs_wide_index(kernel_, {groups_, rows_, columns_});
  to_flat_row_ = flat_coordinates(c.m, row_shape_, Expr::axis("m", rows_));
  to_flat_group_ = flat_coordinates(c.batch, group_shape_, Expr::axis("g", groups_));
  return true;
}

Substitution ContractionView::flat_coordinates(const std::vector<int>& axes, const Shape& shape, const Expr& flat) const {
  Substitution by;
  const auto coords = unflatten(flat, shape);
  for (std::size_t i = 0; i < coords.size(); ++i) by[axis(axes[i]).name] = coords[i];
  return by;
}

Substitution ContractionView::at_tap(std::int64_t tap) const {
  Substitution by;
  const auto coords = unflatten(Expr(tap), tap_shape_);
  for (std::size_t i = 0; i < coords.size(); ++i) by[reduction(roles().k[i]).name] = coords[i];
  return by;
}

bool ContractionView::affine_in_row(const Expr& e) const {
  const Expr flat = e.substitute(to_flat_row_);
  return !flat.uses("m") || flat.coefficient("m").has_value();
}

std::string ContractionView::c_text(const Expr& e) const {
  return e.c_text([&](std::string_view s) -> std::string {
    static constexpr std::string_view kLocal[] = {"m", "g", "tap", "r", "k"};
    if (std::find(std::begin(kLocal), std::end(kLocal), s) != std::end(kLocal)) return std::string(s);
    for (const auto* list : {&kernel_.axes, &kernel_.reduction}) {
      for (const Axis& a : *list) {
        if (a.name == s) return a.name;
      }
    }
    return fmt::format("{}dim_{}", wide_ ? "" : "(int)", s);
  });
}

EmitMode ContractionView::mode() const {
  EmitMode m;
  m.wide_index = wide_;
  return m;
}

void ContractionView::fill_sizes(TemplateValues& values) const {
  std::string& sizes = values.holes["SIZES"];
  sizes.clear();
  const auto size = [&](const char* variable, const Expr& e) {
    if (e.is_constant()) return std::to_string(e.value());
    sizes += fmt::format("const int {} = {}({});\n", variable, wide_ ? "(int)" : "", c_text(e));
    return std::string(variable);
  };
  values.parameters["G"] = size("group_count", groups_);
  values.parameters["M"] = size("row_count", rows_);
  values.parameters["N"] = size("column_count", columns_);
  values.parameters["K"] = size("inner_count", inner_);
  values.parameters["TAPS"] = std::to_string(taps_);
}

std::vector<std::string> ContractionView::group_coordinates() const {
  std::vector<std::string> lines;
  const auto coords = unflatten(Expr::axis("g", groups_), group_shape_);
  for (std::size_t i = 0; i < coords.size(); ++i) {
    lines.push_back(fmt::format("const {} {} = {};", index_type(), axis(roles().batch[i]).name,
                                groups_ == Expr(1) ? "0" : c_text(coords[i])));
  }
  return lines;
}

std::vector<std::string> ContractionView::tap_coordinates() const {
  std::vector<std::string> lines;
  const auto coords = unflatten(Expr::axis("tap", Expr(taps_)), tap_shape_);
  for (std::size_t i = 0; i < coords.size(); ++i)
    lines.push_back(fmt::format("const int {} = {};", reduction(roles().k[i]).name, c_text(coords[i])));
  return lines;
}

std::string ContractionView::row_coordinate(std::size_t i, const std::string& row) const {
  return c_text(unflatten(Expr::axis(row, rows_), row_shape_)[i]);
}

Expr ContractionView::rows_with(std::int64_t more_positions) const {
  return more_positions == 0 ? rows_ : floor_div(rows_, line_rows()) * (line_rows() + Expr(more_positions));
}

std::vector<std::string> ContractionView::row_coordinates(const std::vector<Expr>& needed, std::int64_t more_positions) const {
  Shape shape = row_shape_;
  if (!shape.empty()) shape.back() += Expr(more_positions);
  const auto coordinates = unflatten(Expr::axis("m", rows_with(more_positions)), shape);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < roles().m.size(); ++i) {
    const std::string& name = axis(roles().m[i]).name;
    if (std::any_of(needed.begin(), needed.end(), [&](const Expr& e) { return e.uses(name); }))
      lines.push_back(fmt::format("const {} {} = {};", index_type(), name, c_text(coordinates[i])));
  }
  return lines;
}

std::optional<PackedOperand> constant_b_layout(const ContractionView& view, const std::vector<Buffer>& buffers) {
  const ScalarNode& b = view.b();
  if (!is_plain_load(b) || !b.guard.empty()) return std::nullopt;
  const Buffer& buffer = buffers[static_cast<std::size_t>(view.operand_of(b).buffer)];
  if (buffer.kind != BufferKind::constant || !view.groups().is_constant() || !view.columns().is_constant() ||
      !view.inner().is_constant())
    return std::nullopt;
  const std::string &inner_name = view.inner_axis().name, &column_name = view.column_axis().name;
  const Expr at_group = b.index.substitute(view.to_flat_group());
  const auto group = view.groups() == Expr(1) ? std::optional<std::int64_t>(0) : constant_stride(at_group, "g"),
             inner = constant_stride(b.index, inner_name), column = constant_stride(b.index, column_name);
  if (!group || !inner || !column) return std::nullopt;
  PackedOperand where;
  where.group_stride = *group;
  where.inner_stride = *inner;
  where.column_stride = *column;
  const Expr first = at_group.substitute({{"g", Expr(0)}, {inner_name, Expr(0)}, {column_name, Expr(0)}});
  for (std::int64_t tap = 0; tap < view.taps(); ++tap) {
    const auto offset = first.substitute(view.at_tap(tap)).constant();
    if (!offset) return std::nullopt;
    where.tap_offsets.push_back(*offset);
  }
  return where;
}

std::optional<PackedOperand> constant_a_layout(const ContractionView& view, const std::vector<Buffer>& buffers) {
  const ScalarNode& a = view.a();
  if (!is_plain_load(a) || !a.guard.empty() || view.taps() != 1 || !view.rows().is_constant() || !view.inner().is_constant() ||
      buffers[static_cast<std::size_t>(view.operand_of(a).buffer)].kind != BufferKind::constant)
    return std::nullopt;
  const std::string& inner = view.inner_axis().name;
  const Expr at_row = a.index.substitute(view.to_flat_row());
  const auto row_stride = constant_stride(at_row, "m"), inner_stride = constant_stride(at_row, inner),
             first = at_row.substitute({{"m", Expr(0)}, {inner, Expr(0)}}).constant();
  if (!row_stride || !inner_stride || !first) return std::nullopt;
  PackedOperand where;
  where.inner_stride = *inner_stride;
  where.column_stride = *row_stride;
  where.tap_offsets = {*first};
  return where;
}

bool takes_vectors(const Kernel& loads, const Axis& axis, int width) {
  return axis.extent.is_constant() && axis.extent.value() >= width && can_vectorize(loads, axis.name, width);
}

bool has_neighbours(const Kernel& loads, const Axis& axis) {
  return std::any_of(loads.nodes.begin(), loads.nodes.end(), [&](const ScalarNode& n) {
    return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis.name) == Expr(1);
  });
}

bool is_plain_load(const ScalarNode& node) {
  if (node.kind != ScalarNode::Kind::load || node.dtype != DType::f32) return false;
  return !reads_values(node.index);
}

std::optional<std::int64_t> constant_stride(const Expr& index, std::string_view axis) {
  const auto c = index.coefficient(axis);
  return c && c->is_constant() ? std::optional(c->value()) : std::nullopt;
}

}  // namespace oclc
