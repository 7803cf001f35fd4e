#include "compiler/codegen/contraction/panel_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Rows of B by which they are asked for before they are copied.
constexpr std::int64_t kPanelRowsAhead = 8;

void add_lines(Emitter& e, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) e.line(line);
}

class PanelCode {
 public:
  PanelCode(const ContractionView& view, int width, std::int64_t panel_width, std::int64_t chunk)
      : view_(view), width_(width), panel_width_(panel_width), chunk_(chunk), names_(axis_names(view.kernel())) {}

  std::string run() const {
    const Kernel loads = part_for(view_.kernel(), view_.roles().b);
    if (takes_vectors(loads, view_.column_axis(), width_)) return b_by_columns(loads);
    if (takes_vectors(loads, view_.inner_axis(), width_)) return b_by_squares(loads);
    return loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW",
                            b_elements(loads, "k"));
  }

 private:
  static std::string loop_over_panels(const std::string& terms, const std::string& row, const std::string& body) {
    return fmt::format(
        "{} {{\n  for (int panel = panel_begin; panel < panel_end; ++panel) {{\n"
        "    __local float* row = {};\n{}  }}\n}}\n",
        terms, row, body);
  }

  // Elements row[j] of a panel at the term `k` from column `first` on, one by one; columns beyond the last repeat it.
  std::string b_elements(const Kernel& loads, const std::string& k, const std::string& first = "0") const {
    Emitter e(loads, view_.mode());
    e.open(fmt::format("for (int j = {}; j < PW; ++j)", first), names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = {};", view_.index_type(), view_.inner_axis().name, k));
    e.line(fmt::format("const {} {} = min(panel * PW + j, N - 1);", view_.index_type(), view_.column_axis().name));
    e.line(fmt::format("row[j] = {};", e.value(view_.roles().b)));
    e.close();
    return e.text();
  }

  std::string b_by_columns(const Kernel& loads) const {
    const std::int64_t columns = view_.columns().value();
    const bool ragged = columns % width_ != 0;
    Emitter e(loads, view_.mode());
    e.set_vector_axis(view_.column_axis().name, width_);
    e.open(fmt::format("for (int j = 0; j < {}; j += VW)", ragged ? "whole" : "PW"), names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    // Vectors beyond the last column repeat those before it; of one that is partly beyond it, elements are copied.
    e.line(fmt::format("const {} {} = {};", view_.index_type(), view_.column_axis().name,
                       ragged || columns % panel_width_ == 0 ? "panel * PW + j" : "min(panel * PW + j, N - VW)"));
    // Rows of B are a page apart: the processor guesses none of them.
    if (is_plain_load(view_.b())) {
      const Expr term = Expr::axis(view_.inner_axis().name, view_.inner());
      const Expr ahead = view_.b().index.substitute({{view_.inner_axis().name, term + Expr(kPanelRowsAhead)}});
      e.line(fmt::format("if (j % 16 == 0) oclc_prefetch({} + {});", view_.operand_of(view_.b()).name, view_.c_text(ahead)));
    }
    e.line(fmt::format("STORE({}, row + j);", e.vector_value(view_.roles().b)));
    e.close();
    std::string body = e.text();
    if (ragged) {
      std::string rest = b_elements(loads, "k", "whole");
      if (!rest.starts_with("for (")) rest = "{\n" + rest + "}\n";  // what both loops have before them has one name
      body = "const int whole = max(0, min(PW, (N - panel * PW) / VW * VW));\n" + body + rest;
    }
    return loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW", body);
  }

  std::string b_by_squares(const Kernel& loads) const {
    Emitter e(loads, view_.mode());
    e.set_vector_axis(view_.inner_axis().name, width_);
    e.open("for (int l = 0; l < VW; ++l)", names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    e.line(fmt::format("const {} {} = min(panel * PW + j + l, N - 1);", view_.index_type(), view_.column_axis().name));
    e.line(fmt::format("r[l] = {};", e.vector_value(view_.roles().b)));
    e.close();
    const std::string square =
        "for (int j = 0; j < PW; j += VW) {\n  VEC r[VW];\n  #pragma unroll\n" + e.text() +
        "  oclc_transpose(r);\n  #pragma unroll\n  for (int l = 0; l < VW; ++l) STORE(r[l], row + l * PW + j);\n}\n";
    const std::string squares = "// Squares of terms and columns; the last one overlaps its neighbour.\n" +
                                loop_over_panels("for (int at = k0; at < k_end; at += VW)",
                                                 "to + (panel - panel_begin) * B_PANEL + (min(at, k_end - VW) - k0) * PW",
                                                 "const int k = min(at, k_end - VW);\n" + square);
    if (every_chunk_fills_vectors()) return squares;
    return "if (k_end - k0 >= VW) {\n" + squares + "} else {\n" +
           loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW",
                            b_elements(loads, "k")) +
           "}\n";
  }

  bool every_chunk_fills_vectors() const {
    const auto terms = view_.inner().constant();
    if (!terms || chunk_ == 0) return false;
    const std::int64_t last = *terms % chunk_;
    return std::min(chunk_, *terms) >= width_ && (last == 0 || last >= width_);
  }

  const ContractionView& view_;
  const int width_;
  const std::int64_t panel_width_, chunk_;
  const std::set<std::string> names_;
};

// Lines that ask for what `root`, an operand, loads where `lanes` are neighbours; empty: nowhere.
std::string lines_ahead(const ContractionView& view, NodeId root, const Axis& lanes) {
  const Kernel loads = part_for(view.kernel(), root);
  const std::string& inner = view.inner_axis().name;
  std::set<std::string> lines;
  std::vector<Expr> needed;
  Emitter e(loads, view.mode());
  e.open("", axis_names(view.kernel()));
  for (const ScalarNode& n : loads.nodes) {
    if (n.kind != ScalarNode::Kind::load || reads_values(n.index) || !n.index.uses(inner) ||
        n.index.coefficient(lanes.name) != Expr(1))
      continue;
    needed.push_back(n.index);
    lines.insert(
        fmt::format("oclc_prefetch_l2({} + {});", loads.operands[static_cast<std::size_t>(n.operand)].name, e.index(n.index)));
  }
  if (lines.empty()) return "";
  add_lines(e, view.tap_coordinates());
  e.line(fmt::format("const {} {} = k;", view.index_type(), inner));
  if (root == view.roles().a)
    add_lines(e, view.row_coordinates(needed));
  else if (view.column_axis().name != "n")
    e.line(fmt::format("const {} {} = n;", view.index_type(), view.column_axis().name));
  for (const std::string& line : lines) e.line(line);
  e.close();
  return e.text();
}

}  // namespace

std::string copy_of_panels(const ContractionView& view, int width, std::int64_t panel_width, std::int64_t chunk) {
  return PanelCode(view, width, panel_width, chunk).run();
}

std::string last_rows_of_a(const ContractionView& view) {
  const Kernel loads = part_for(view.kernel(), view.roles().a);
  Emitter e(loads, view.mode());
  e.open("for (int l = 0; l < PV; ++l)", axis_names(view.kernel()));
  add_lines(e, view.tap_coordinates());
  e.line(fmt::format("const {} {} = k;", view.index_type(), view.inner_axis().name));
  e.line(fmt::format("const {} {} = min(m + l, M - 1);", view.index_type(), view.axis(view.roles().m[0]).name));
  e.line(fmt::format("to[l] = {};", e.value(view.roles().a)));
  e.close();
  return e.text();
}

bool ask_for_lines(const ContractionView& view, bool rows_innermost, int width, TemplateValues& values) {
  const Axis& inner = view.inner_axis();
  const bool by_terms = !takes_vectors(part_for(view.kernel(), view.roles().b), view.column_axis(), width);
  const std::string a = lines_ahead(view, view.roles().a, rows_innermost ? view.axis(view.roles().m[0]) : inner),
                    b = lines_ahead(view, view.roles().b, by_terms ? inner : view.column_axis());
  if (a.empty() || b.empty()) return false;
  if (by_terms) values.parameters["B_BY_TERMS"] = "1";
  values.holes["NEXT_A"] = a;
  values.holes["NEXT_B"] = b;
  return true;
}

}  // namespace oclc
