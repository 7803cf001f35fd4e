#include "compiler/codegen/loops/loop_prefetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

// Elements of a row from which on one ahead is prefetched while this one is computed, and how far ahead: what memory brings
// while a line is waited for.
constexpr int kFewestAhead = 32, kAheadElements = 1024;

// A core waits for ten to fifty lines at a time, and what is asked for beyond them holds up the sums.
constexpr std::size_t kMostPlacesAhead = 32;

struct PlaceAhead {
  int operand = -1;
  Expr place;
};

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

  std::vector<PlaceAhead> run() const {
    std::vector<PlaceAhead> all;
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
    // More of them than are asked for say as much as all of them.
    std::size_t steps = 0;
    for (Expr back = *column; back.value() < next->value() && steps <= kMostPlacesAhead; back += *column, ++steps)
      places.push_back(index - back);
    return row;
  }

  // Of the places that a point reads, moved to a point ahead, those that lie behind all that the one before that reads; no more
  // than show that there are too many.
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
      if (ends.size() > kMostPlacesAhead) break;
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

std::string prefetch_text(Emitter& e, const Kernel& kernel, int operand, const Expr& place) {
  return fmt::format("oclc_prefetch({} + {});", kernel.operands[static_cast<std::size_t>(operand)].name, e.index(place));
}

}  // namespace

void prefetch_next_point(Emitter& e, const Kernel& kernel) {
  if (e.mode().outside.empty() || e.mode().width == 1) return;
  const std::vector<PlaceAhead> places = WindowEnds(kernel, e.mode().vector_axis).run();
  if (places.size() > kMostPlacesAhead) return;
  for (const PlaceAhead& a : places) e.line(prefetch_text(e, kernel, a.operand, a.place));
}

void prefetch_vectors(Emitter& e, const Kernel& kernel) {
  const EmitMode& mode = e.mode();
  if (!mode.streams || mode.width == 1 || !mode.outside.empty()) return;
  std::set<std::string> lines;
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind != ScalarNode::Kind::load || !node.guard.empty() || node.index.coefficient(mode.vector_axis) != Expr(1))
      continue;
    const bool is_large = std::all_of(kernel.axes.begin(), kernel.axes.end(),
                                      [&](const Axis& a) { return a.extent == Expr(1) || node.index.uses(a.name); });
    if (is_large) lines.insert(prefetch_text(e, kernel, node.operand, node.index + Expr(std::int64_t{kAheadElements})));
  }
  for (const std::string& line : lines) e.line(line);
}

void prefetch_next_row(Emitter& e, const Kernel& kernel) {
  const Axis& inner = kernel.reduction.back();
  const auto rows = std::find_if(kernel.axes.rbegin(), kernel.axes.rend(), [](const Axis& a) { return a.extent != Expr(1); });
  if (rows == kernel.axes.rend() || kernel.reduction.size() != 1 || typical(inner.extent) < kFewestAhead) return;
  const double ahead = std::ceil(kAheadElements / typical(inner.extent));
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.kind != ScalarNode::Kind::load || !node.guard.empty() || !e.depends(static_cast<NodeId>(i), inner.name)) continue;
    const auto along = node.index.coefficient(inner.name), step = node.index.coefficient(rows->name);
    if (!along || *along != Expr(1) || !step || *step == Expr(0)) continue;
    e.line(prefetch_text(e, kernel, node.operand, node.index + *step * Expr(static_cast<std::int64_t>(ahead))));
  }
}

}  // namespace oclc
