#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

constexpr int kWidth = 4;
// Conditions of a window in two dimensions.
constexpr std::size_t kMostEdges = 4;

bool divides(const Expr& extent) { return floor_mod(extent, Expr(kWidth)) == Expr(0); }

class LoadCode {
 public:
  LoadCode(const ContractionView& view, bool is_a)
      : view_(view), is_a_(is_a), root_(is_a ? view.roles().a : view.roles().b), part_(part_for(view.kernel(), root_)) {
    other_ = is_a ? view.axis(view.roles().m.back()).name : view.column_axis().name;
    if (is_a) flatten_rows();
  }

  std::string element() {
    return at_element(view_.mode(), [&](Emitter& e) { e.line(fmt::format("v = {};", e.value(root_))); });
  }

  GpuLoad run() {
    const std::string& inner = view_.inner_axis().name;
    GpuLoad load;
    load.along_k = stride(inner) <= stride(other_);
    const std::string& axis = load.along_k ? inner : other_;
    if (runs_along(axis) && divides(load.along_k ? view_.inner() : other_extent()) && can_vectorize(part_, axis))
      load.width = kWidth;
    EmitMode mode = view_.mode();
    mode.aligned = true;
    if (load.width > 1) mode.vector_axis = axis, mode.width = load.width;
    load.text = at_element(mode, [&](Emitter& e) { e.line(fmt::format("v = {};", e.vector_value(root_))); });
    const ScalarNode& node = part_.nodes[static_cast<std::size_t>(root_)];
    load.has_edges = !node.guard.empty();
    const bool copies = is_plain_load(node) && node.dtype == DType::f32 && (node.guard.empty() || node.number == 0);
    if (is_a_ && copies && load.width == 1) separate(node, load);
    if (copies && load.width > 1 && is_aligned(node, axis)) {
      load.place = at_element(mode, [&](Emitter& e) {
        const std::string& operand = part_.operands[static_cast<std::size_t>(node.operand)].name;
        e.line(fmt::format("from = {} + {};", operand, e.index(node.index)));
        if (!node.guard.empty()) e.line(fmt::format("inside = {};", e.condition(node.guard)));
      });
      if (is_a_ && (!flat_ || !node.guard.empty())) separate(node, load);
    }
    return load;
  }

 private:
  template <class Lines>
  std::string at_element(const EmitMode& mode, const Lines& lines, bool of_row = true, bool of_term = true,
                         std::int64_t more_positions = 0) const {
    Emitter e(part_, mode);
    e.open("", axis_names(part_));
    if (is_a_ && !flat_ && of_row) {
      for (const std::string& line : view_.row_coordinates(indices_of(part_), more_positions)) e.line(line);
    }
    if (of_term) {
      for (const std::string& line : view_.tap_coordinates()) e.line(line);
      e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    }
    if (!is_a_) e.line(fmt::format("const {} {} = n;", view_.index_type(), other_));
    lines(e);
    e.close();
    return e.text();
  }

  // Splits the index and the guards into what depends on the row and what depends on the term.
  void separate(const ScalarNode& node, GpuLoad& load) const {
    if (view_.index_type() != "int" || node.guard.size() > kMostEdges) return;
    Substitution first;
    for (const Axis& a : part_.reduction) first.emplace(a.name, Expr(0));
    std::vector<Expr> rows, steps;
    std::vector<Expr> all = node.guard;
    all.push_back(node.index);
    for (const Expr& e : all) {
      rows.push_back(e.substitute(first));
      steps.push_back(e - rows.back());
      if (std::any_of(part_.axes.begin(), part_.axes.end(), [&](const Axis& a) { return steps.back().uses(a.name); })) return;
    }
    const auto edges = [](Emitter& e, std::vector<Expr> list) {
      list.pop_back();
      list.resize(kMostEdges, Expr(0));
      return fmt::format("(int4)({}, {}, {}, {})", e.index(list[0]), e.index(list[1]), e.index(list[2]), e.index(list[3]));
    };
    const auto row_lines = [&](Emitter& e) {
      e.line(fmt::format("row_at = {};", e.index(rows.back())));
      e.line(fmt::format("row_edges = {};", edges(e, rows)));
    };
    const auto step_lines = [&](Emitter& e) {
      e.line(fmt::format("base = {};", part_.operands[static_cast<std::size_t>(node.operand)].name));
      e.line(fmt::format("step_at = {};", e.index(steps.back())));
      e.line(fmt::format("step_edges = {};", edges(e, steps)));
    };
    const std::string& inner = view_.inner_axis().name;
    load.edges_of_taps = std::none_of(steps.begin(), steps.end() - 1, [&](const Expr& e) { return e.uses(inner); });
    load.row = at_element(view_.mode(), row_lines, true, false);
    find_line(all, load);
    if (load.line > 1) load.long_row = at_element(view_.mode(), row_lines, true, false, load.line - 1);
    load.step = at_element(view_.mode(), step_lines, false, true);
  }

  // `all`: the guards and the index.
  void find_line(const std::vector<Expr>& all, GpuLoad& load) const {
    const auto& terms = view_.roles().k;
    if (terms.size() < 2) return;
    const Axis &line = view_.reduction(terms[terms.size() - 2]), &row = view_.axis(view_.roles().m.back());
    const auto is_same = [&](const Expr& e) {
      const auto of_row = constant_stride(e, row.name);
      return of_row && of_row == constant_stride(e, line.name);
    };
    if (!line.extent.is_constant() || !row.extent.is_constant() || !std::all_of(all.begin(), all.end(), is_same)) return;
    load.line = line.extent.value();
  }

  // Vectors along `axis` begin at multiples of their width.
  static bool is_aligned(const ScalarNode& node, const std::string& axis) {
    const Expr first = node.index.substitute({{axis, Expr(kWidth) * Expr::symbol("vector", 0)}});
    return floor_mod(first, Expr(kWidth)) == Expr(0);
  }

  // Where every index is affine in the flat row, rows need no coordinates.
  void flatten_rows() {
    const auto indices = indices_of(part_);
    flat_ = std::all_of(indices.begin(), indices.end(), [&](const Expr& e) { return view_.affine_in_row(e); });
    if (!flat_) return;
    for (ScalarNode& n : part_.nodes) {
      n.index = n.index.substitute(view_.to_flat_row());
      for (Expr& e : n.guard) e = e.substitute(view_.to_flat_row());
    }
    std::vector<Axis> axes;
    for (const int i : view_.roles().batch) axes.push_back(view_.axis(i));
    axes.push_back({"m", view_.rows(), Expr::axis("m", view_.rows())});
    axes.push_back(view_.column_axis());
    part_.axes = std::move(axes);
    other_ = "m";
  }

  // Extent of a run of neighbours along the rows or columns.
  Expr other_extent() const {
    if (!is_a_) return view_.columns();
    return flat_ ? view_.rows() : view_.axis(view_.roles().m.back()).extent;
  }

  // The shortest distance in memory of neighbours along an axis.
  std::int64_t stride(const std::string& axis) const {
    std::int64_t shortest = kUnbounded;
    for (const ScalarNode& n : part_.nodes) {
      if (n.kind != ScalarNode::Kind::load) continue;
      auto c = constant_stride(n.index, axis);
      if (!c) c = stride_of_first(n.index, axis);
      if (c && *c != 0) shortest = std::min(shortest, std::abs(*c));
    }
    return shortest;
  }

  // Of an index that runs in pieces: the distance of the second and third elements, whose other coordinates are 1.
  std::optional<std::int64_t> stride_of_first(const Expr& index, const std::string& axis) const {
    const auto at = [&](std::int64_t place) {
      Substitution coordinates;
      for (const auto* list : {&part_.axes, &part_.reduction}) {
        for (const Axis& a : *list) coordinates.emplace(a.name, Expr(a.name == axis ? place : 1));
      }
      return index.substitute(coordinates);
    };
    return (at(2) - at(1)).constant();
  }

  bool runs_along(const std::string& axis) const {
    return std::any_of(part_.nodes.begin(), part_.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis) == Expr(1);
    });
  }

  const ContractionView& view_;
  const bool is_a_;
  const NodeId root_;
  Kernel part_;
  std::string other_;  // the axis of rows or columns that neighbours may run along
  bool flat_ = false;
};

}  // namespace

GpuLoad load_of_a(const ContractionView& view) { return LoadCode(view, true).run(); }
GpuLoad load_of_b(const ContractionView& view) { return LoadCode(view, false).run(); }
std::string element_of_a(const ContractionView& view) { return LoadCode(view, true).element(); }
std::string element_of_b(const ContractionView& view) { return LoadCode(view, false).element(); }

}  // namespace oclc
