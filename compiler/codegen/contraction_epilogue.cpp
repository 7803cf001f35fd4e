#include "compiler/codegen/contraction_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/kernel_part.h"
#include "compiler/codegen/scope.h"

namespace oclc {
namespace {

class Epilogue {
 public:
  Epilogue(const ContractionView& view, int width, bool aligned)
      : view_(view), width_(width), aligned_(aligned), part_(view.kernel()) {
    std::vector<NodeId> roots;
    for (const Store& s : part_.stores) roots.push_back(s.value);
    keep_needed(part_, roots);
    sum_varies_along_all_axes();
    needed_ = indices_of(part_);
    // Neither the sum nor an index that is affine in the row needs the row's coordinates.
    flat_ =
        std::all_of(needed_.begin(), needed_.end(), [&](const Expr& e) { return e == sum().index || view_.affine_in_row(e); });
    if (flat_) flatten_rows();
  }

  std::string text() const {
    const std::string& column = view_.column_axis().name;
    const bool vector = stores_vectors();
    EmitMode mode = view_.mode();
    if (vector) {
      mode.vector_axis = column;
      mode.width = width_;
      mode.aligned = aligned_;
      const Expr& columns = view_.columns();
      if (!columns.is_constant() || columns.value() % width_ != 0) mode.lanes_left = fmt::format("N - {}", column);
    }
    std::set<std::string> names;
    for (const Axis& axis : part_.axes) names.insert(axis.name);
    if (!vector) names.erase(column);
    Emitter e(part_, mode);
    e.open("", names);
    if (!flat_) {
      for (const std::string& line : view_.row_coordinates(needed_)) e.line(line);
    }
    if (vector) {
      e.line(fmt::format("const {} {} = n;", view_.index_type(), column));
      e.stage_done(0, "v", true);
      for (const Store& s : part_.stores) e.store(s);
    } else {
      e.line(fmt::format("float lanes[{}];", width_));
      e.line(fmt::format("vstore{}(v, 0, lanes);", width_));
      e.open(fmt::format("for (int l = 0; l < {} && n + l < N; ++l)", width_), {column});
      e.line(fmt::format("const {} {} = n + l;", view_.index_type(), column));
      e.stage_done(0, "lanes[l]", false);
      for (const Store& s : part_.stores) e.store(s);
      e.close();
    }
    e.close();
    return e.text();
  }

 private:
  // What the stage sums: a node of which only the axes that it varies along count here.
  ScalarNode& sum() { return part_.nodes[static_cast<std::size_t>(part_.stages[0].body)]; }

  void sum_varies_along_all_axes() {
    ScalarNode everywhere;
    everywhere.kind = ScalarNode::Kind::index;
    everywhere.dtype = DType::i32;
    for (const Axis& axis : part_.axes) everywhere.index += axis.var;
    sum() = everywhere;
  }

  // Replaces the axes of rows by the flat row m.
  void flatten_rows() {
    const auto flatten = [&](Expr& e) { e = e.substitute(view_.to_flat_row()); };
    for (ScalarNode& n : part_.nodes) {
      flatten(n.index);
      for (Expr& e : n.guard) flatten(e);
    }
    for (Store& s : part_.stores) flatten(s.index);
    std::vector<Axis> axes;
    for (const int i : view_.roles().batch) axes.push_back(view_.axis(i));
    axes.push_back({"m", view_.rows(), Expr::axis("m", view_.rows())});
    axes.push_back(view_.column_axis());
    part_.axes = std::move(axes);
    sum_varies_along_all_axes();
  }

  bool stores_vectors() const {
    const Axis& column = view_.column_axis();
    return column.extent != Expr(1) && can_vectorize(part_, column.name) &&
           std::all_of(part_.stores.begin(), part_.stores.end(),
                       [&](const Store& s) { return s.index.coefficient(column.name) == Expr(1); });
  }

  const ContractionView& view_;
  const int width_;
  const bool aligned_;
  Kernel part_;
  std::vector<Expr> needed_;  // all indices and guards
  bool flat_ = false;
};

}  // namespace

std::string contraction_epilogue(const ContractionView& view, int width, bool aligned) {
  return Epilogue(view, width, aligned).text();
}

}  // namespace oclc
