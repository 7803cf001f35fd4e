#include "compiler/codegen/contraction/contraction_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/text/half.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Lines = std::vector<std::string>;

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Declares row[i], the pointer to the element of A at `first` in row m0 + i.
std::string pointers_at(const ContractionView& view, const Expr& first) {
  const Operand& a = view.operand_of(view.a());
  const Expr at_row = first.substitute(view.to_flat_row()).substitute({{"m", Expr::axis("r", view.rows())}});
  return fmt::format(
      "const __global {}* row[MR];\n#pragma unroll\n"
      "for (int i = 0; i < MR; ++i) {{ const {} r = min(m0 + i, M - 1); row[i] = {} + {}; }}",
      c_type(a.dtype), view.index_type(), a.name, view.c_text(at_row));
}

class OperandCode {
 public:
  OperandCode(const ContractionView& view, const OperandReads& reads, const Target& target, TemplateValues& values)
      : view_(view), reads_(reads), target_(target), values_(values) {}

  void run() {
    convert();
    if (reads_.local_copy == LocalCopy::a)
      copy_a();
    else
      point_to_rows();
    if (reads_.local_copy == LocalCopy::b)
      copy_b();
    else
      point_to_b();
    // The template that copies B has one tap, that of the rows' pointers.
    if (reads_.local_copy == LocalCopy::b) values_.holes.erase("A_POINTER");
  }

 private:
  void point_to_rows() {
    const ScalarNode& a = view_.a();
    const Expr first = a.index.substitute({{view_.inner_axis().name, Expr(0)}});
    if (!a.guard.empty() || !view_.affine_in_row(first) || !affine_row_pointers(first)) general_row_pointers(first);
  }

  // Rows at row[i] = a + (an affine function of the row), and taps at a distance from there that is the same for all rows.
  // Returns whether `first`, the element of k = 0, is such a sum.
  bool affine_row_pointers(const Expr& first) {
    Substitution no_taps;
    const auto& roles = view_.roles();
    for (std::size_t i = 0; i + 1 < roles.k.size(); ++i) no_taps[view_.reduction(roles.k[i]).name] = Expr(0);
    const Expr to_tap = first - first.substitute(no_taps);
    if (std::any_of(roles.m.begin(), roles.m.end(), [&](int i) { return to_tap.uses(view_.axis(i).name); })) return false;
    Lines state = view_.group_coordinates(), pointer;
    state.push_back(pointers_at(view_, first.substitute(no_taps)));
    if (view_.taps() > 1) pointer = view_.tap_coordinates();
    pointer.push_back("#pragma unroll");
    pointer.push_back(to_tap == Expr(0)
                          ? "for (int i = 0; i < MR; ++i) p[i] = row[i];"
                          : fmt::format("for (int i = 0; i < MR; ++i) p[i] = row[i] + {};", view_.c_text(to_tap)));
    values_.holes["ROW_STATE"] = joined(state);
    values_.holes["A_POINTER"] = joined(pointer);
    return true;
  }

  // Rows by their coordinates, kept in arrays of which each tap computes its pointers.
  void general_row_pointers(const Expr& first) {
    const ScalarNode& a = view_.a();
    const auto& rows = view_.roles().m;
    const auto needed = [&](const std::string& name) {
      return first.uses(name) || std::any_of(a.guard.begin(), a.guard.end(), [&](const Expr& e) { return e.uses(name); });
    };
    Lines state = view_.group_coordinates(), names, arrays, assignments;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string& name = view_.axis(rows[i]).name;
      if (!needed(name)) continue;
      names.push_back(name);
      arrays.push_back(name + "_of[MR]");
      assignments.push_back(fmt::format("  {}_of[i] = {};", name, view_.row_coordinate(i, "r")));
    }
    if (!names.empty()) {
      state.push_back(fmt::format("{} {};", view_.index_type(), fmt::join(arrays, ", ")));
      state.push_back("#pragma unroll");
      state.push_back("for (int i = 0; i < MR; ++i) {");
      state.push_back(fmt::format("  const {} r = min(m0 + i, M - 1);", view_.index_type()));
      state.insert(state.end(), assignments.begin(), assignments.end());
      state.push_back("}");
    }
    // Without taps the pointers are those of the rows, which some templates use directly.
    const bool by_row = view_.taps() == 1;
    Lines pointer = view_.tap_coordinates();
    if (by_row) {
      state.push_back(fmt::format("const __global {}* row[MR];", a_type()));
      state.insert(state.end(), pointer.begin(), pointer.end());
      pointer = {"#pragma unroll", "for (int i = 0; i < MR; ++i) p[i] = row[i];"};
    }
    Lines& place = by_row ? state : pointer;
    place.push_back("#pragma unroll");
    place.push_back("for (int i = 0; i < MR; ++i) {");
    for (const std::string& n : names) place.push_back(fmt::format("  const {0} {1} = {1}_of[i];", view_.index_type(), n));
    const std::string address = fmt::format("{} + {}", a_name(), view_.c_text(first));
    place.push_back(fmt::format(
        "  {}[i] = {};", by_row ? "row" : "p",
        a.guard.empty() ? address
                        : fmt::format("({}) ? {} : {}zero", Emitter(view_.kernel(), view_.mode()).condition(a.guard), address,
                                      is_half(a_dtype()) ? fmt::format("(const __global {}*)", a_type()) : "")));
    place.push_back("}");
    values_.holes["ROW_STATE"] = joined(state);
    values_.holes["A_POINTER"] = joined(pointer);
  }

  const std::string& a_name() const { return view_.operand_of(view_.a()).name; }
  DType a_dtype() const { return view_.stored_type(view_.a()); }
  DType b_dtype() const { return view_.stored_type(view_.b()); }
  std::string_view a_type() const { return c_type(a_dtype()); }

  // How elements that are no floats in memory become floats, in place.
  void convert() {
    if (reads_.local_copy != LocalCopy::a && is_half(a_dtype())) {
      values_.parameters["A_TYPE"] = a_type();
      values_.parameters["A_FROM"] = fmt::format("oclc_from_{}", name_of(a_dtype()));
      values_.parameters["PLAIN_OPERANDS"] = "0";
    }
    if (reads_.local_copy != LocalCopy::b && is_half(b_dtype())) {
      values_.parameters["B_FROM"] = fmt::format("oclc_from_{}", name_of(b_dtype()));
      values_.parameters["PLAIN_OPERANDS"] = "0";
    }
  }

  // The vector of A at (row m, tap, k).
  void copy_a() {
    const std::string& inner = view_.inner_axis().name;
    const Kernel loads = part_for(view_.kernel(), view_.roles().a);
    const bool by_rows = reads_.row_lanes > 0;
    const int width = by_rows                                                                        ? reads_.row_lanes
                      : view_.inner().value() >= target_.vector_width && can_vectorize(loads, inner) ? target_.vector_width
                                                                                                     : 1;
    values_.parameters["PV"] = std::to_string(width);
    if (by_rows) values_.parameters["ROWS_INNERMOST"] = "1";
    if (reads_.copies_panels) values_.parameters["COPY_B"] = "1";
    values_.holes["A_ELEMENTS"] =
        elements_of_a(view_, by_rows ? view_.axis(view_.roles().m[0]).name : inner, width, view_.group_coordinates());
  }

  void point_to_b() {
    const std::string_view type = c_type(b_dtype());
    std::string pointer;
    if (reads_.constant_b) {
      pointer = fmt::format("const __global {}* w = weights + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;\n", type);
    } else {
      Substitution first{{view_.column_axis().name, Expr(0)}};
      for (const int i : view_.roles().k) first[view_.reduction(i).name] = Expr(0);
      pointer = fmt::format("const __global {}* w = {} + {} + panel * PW;\n", type, view_.operand_of(view_.b()).name,
                            view_.c_text(view_.b().index.substitute(first)));
    }
    // The template that copies A has no hole ROW_STATE, which declares the group's coordinates elsewhere.
    if (reads_.local_copy == LocalCopy::a) pointer = joined(view_.group_coordinates()) + pointer;
    values_.holes["B_POINTER"] = pointer;
  }

  // B's panel element by element: transposed operands, ragged columns and prologues alike. The outer loop runs over the longer
  // step.
  void copy_b() {
    const Kernel loads = part_for(view_.kernel(), view_.roles().b);
    const std::string &column = view_.column_axis().name, &inner = view_.inner_axis().name;
    std::set<std::string> outside;
    for (const int i : view_.roles().batch) outside.insert(view_.axis(i).name);
    Emitter e(loads, view_.mode());
    e.open("", outside);
    for (const std::string& line : view_.group_coordinates()) e.line(line);
    if (is_plain_load(view_.b()) && view_.b().guard.empty() && view_.b().index.coefficient(column) == Expr(1) &&
        !is_half(b_dtype())) {
      copy_rows_of_b(e);
      e.close();
      values_.holes["PACK_B"] = e.text();
      return;
    }
    const auto over_columns = [&] {
      e.open("for (int j = 0; j < PW; ++j)", {column});
      e.line(fmt::format("const {} {} = min(n0 + j, N - 1);", view_.index_type(), column));
    };
    const auto over_inner = [&] { e.open(fmt::format("for (int {0} = 0; {0} < K; ++{0})", inner), {inner}); };
    if (view_.b().index.coefficient(column) == Expr(1) || !is_plain_load(view_.b())) {
      over_inner();
      over_columns();
    } else {
      over_columns();
      over_inner();
    }
    e.line(fmt::format("panel[{} * PW + j] = {};", inner, e.value(view_.roles().b)));
    for (int scope = 0; scope < 3; ++scope) e.close();
    values_.holes["PACK_B"] = e.text();
  }

  // Rows of whole vectors, but for the end of a ragged last panel: single elements over zeros.
  void copy_rows_of_b(Emitter& e) const {
    const std::string &column = view_.column_axis().name, &inner = view_.inner_axis().name;
    const int width = target_.vector_width;
    e.open(fmt::format("for (int {0} = 0; {0} < K; ++{0})", inner), {inner});
    e.line(fmt::format("const __global float* from = {} + {} + n0;", view_.operand_of(view_.b()).name,
                       view_.c_text(view_.b().index.substitute({{column, Expr(0)}}))));
    e.line(fmt::format("__local float* to = panel + {} * PW;", inner));
    e.line("if (n0 + PW <= N) {");
    e.line(fmt::format("  for (int j = 0; j < PW; j += {0}) oclc_store(vload{0}(0, from + j), to + j);", width));
    e.line("} else {");
    e.line("  int j = 0;");
    e.line(fmt::format("  for (; n0 + j + {0} <= N; j += {0}) oclc_store(vload{0}(0, from + j), to + j);", width));
    e.line(fmt::format("  for (int at = j; at < PW; at += {0}) oclc_store((float{0})(0.0f), to + at);", width));
    e.line("  for (; n0 + j < N; ++j) to[j] = from[j];");
    e.line("}");
    e.close();
  }

  const ContractionView& view_;
  const OperandReads& reads_;
  const Target& target_;
  TemplateValues& values_;
};

std::int64_t literal(const Expr& e) {
  OCLC_CHECK(e.is_constant(), "padding of a convolution whose channel count or step is symbolic");
  return e.value();
}

// The element of A at the first term of the sum.
Expr at_first_term(const ContractionView& view) {
  Substitution first{{view.inner_axis().name, Expr(0)}};
  for (const int i : view.roles().k) first[view.reduction(i).name] = Expr(0);
  return view.a().index.substitute(first);
}

}  // namespace

std::string elements_of_a(const ContractionView& view, const std::string& axis, int lanes,
                          const std::vector<std::string>& first) {
  const Kernel loads = part_for(view.kernel(), view.roles().a);
  Emitter e(loads, view.mode());
  e.set_vector_axis(axis, lanes);
  e.open("", axis_names(view.kernel()));
  for (const Lines& lines : {first, view.row_coordinates(indices_of(loads)), view.tap_coordinates()}) {
    for (const std::string& line : lines) e.line(line);
  }
  e.line(fmt::format("const {} {} = k;", view.index_type(), view.inner_axis().name));
  e.line(fmt::format("v = {};", e.vector_value(view.roles().a)));
  e.close();
  return e.text();
}

bool has_row_pointers(const ContractionView& view) {
  const ScalarNode& a = view.a();
  const std::string& inner = view.inner_axis().name;
  return view.taps() == 1 && is_plain_load(a) && a.guard.empty() && !is_half(view.stored_type(a)) &&
         a.index.coefficient(inner) == Expr(1) && view.affine_in_row(at_first_term(view));
}

std::optional<std::string> row_pointers(const ContractionView& view) {
  return has_row_pointers(view) ? std::optional(pointers_at(view, at_first_term(view)) + "\n") : std::nullopt;
}

void fill_operands(const ContractionView& view, const OperandReads& reads, const Target& target, TemplateValues& values) {
  OperandCode(view, reads, target, values).run();
}

std::optional<HostTensor> padding_zeros(const ContractionView& view, const OperandReads& reads) {
  const ScalarNode& a = view.a();
  if (reads.local_copy == LocalCopy::a || a.guard.empty()) return std::nullopt;
  const Expr step = *a.index.coefficient(view.inner_axis().name);
  return HostTensor(DType::f32, {(literal(view.inner()) - 1) * literal(step) + 1});
}

}  // namespace oclc
