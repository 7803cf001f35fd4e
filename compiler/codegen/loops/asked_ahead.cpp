#include "compiler/codegen/loops/asked_ahead.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

class WindowEnds {
 public:
  WindowEnds(const Kernel& kernel, const std::string& vector_axis) : kernel_(kernel), vector_axis_(vector_axis) {
    for (std::size_t i = kernel.axes.size(); i-- > 0;) {
      const Axis& axis = kernel.axes[i];
      if (axis.extent == Expr(1) || axis.name == vector_axis) continue;
      (point_ ? row_ : point_) = &axis;
      if (row_) break;
    }
  }

  std::vector<AskedAhead> run() const {
    std::vector<AskedAhead> all;
    if (!point_) return all;
    for (std::size_t operand = 0; operand < kernel_.operands.size(); ++operand) {
      std::vector<Expr> places;
      std::optional<Expr> row;
      for (const ScalarNode& node : kernel_.nodes) {
        if (node.kind != ScalarNode::Kind::load || node.operand != static_cast<int>(operand)) continue;
        if (node.index.coefficient(vector_axis_) != Expr(1)) continue;
        row = add_last_taps(node.index, places);
      }
      for (const Expr& end : ends(places)) {
        all.push_back({static_cast<int>(operand), end});
        for (std::int64_t back = 1; row && back < new_rows(end, *row); ++back)
          all.push_back({static_cast<int>(operand), end - *row * back});
      }
    }
    return all;
  }

 private:
  // Where a load reads in the last rounds of the loops over its window: as many columns as a point is away from the next. The
  // step from a row of the window to the next, if there is a loop over them.
  std::optional<Expr> add_last_taps(Expr index, std::vector<Expr>& places) const {
    std::optional<Expr> column, row;
    for (std::size_t i = kernel_.reduction.size(); i-- > 0;) {
      const Axis& axis = kernel_.reduction[i];
      const auto step = index.coefficient(axis.name);
      if (!step || !step->is_constant() || !axis.extent.is_constant()) return std::nullopt;
      if (step->value() > 0) {
        if (!column)
          column = *step;
        else
          row = *step;
      }
      index = index.substitute({{axis.name, axis.extent - 1}});
    }
    places.push_back(index);
    const auto next = index.coefficient(point_->name);
    if (!column || !next || !next->is_constant()) return row;
    for (Expr back = *column; back.value() < next->value(); back += *column) places.push_back(index - back);
    return row;
  }

  // Of the places that a point reads, moved to a point ahead, those that lie behind all that the one before that reads.
  std::vector<Expr> ends(const std::vector<Expr>& places) const {
    std::vector<Expr> ends;
    if (places.empty()) return ends;
    const auto step = places.front().coefficient(point_->name);
    if (!step || !step->is_constant() || step->value() <= 0) return ends;
    std::int64_t last = 0;
    for (const Expr& e : places) {
      const Expr distance = e - places.front();
      if (!distance.is_constant()) return ends;
      last = std::max(last, distance.value());
    }
    const Expr ahead = *step * ceil_div(kAheadFloats, step->value());
    for (const Expr& e : places) {
      const Expr end = e + ahead;
      const bool is_new = (e - places.front()).value() > last - step->value();
      if (is_new && std::find(ends.begin(), ends.end(), end) == ends.end()) ends.push_back(end);
    }
    return ends;
  }

  // Rows of a window that the window above did not read.
  std::int64_t new_rows(const Expr& place, const Expr& step) const {
    const auto next = row_ ? place.coefficient(row_->name) : std::nullopt;
    return next && next->is_constant() ? next->value() / step.value() : 1;
  }

  const Kernel& kernel_;
  const std::string& vector_axis_;
  const Axis *point_ = nullptr, *row_ = nullptr;  // the innermost axes besides the vectors'
};

}  // namespace

std::vector<AskedAhead> asked_ahead(const Kernel& kernel, const std::string& vector_axis) {
  return WindowEnds(kernel, vector_axis).run();
}

}  // namespace oclc
