#include "compiler/codegen/contraction/contraction_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr const char *kBlock = "vector_of_columns", *kLane = "lane";

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
    column_ = view_.column_axis().name;
    if (!aligned_ && !stores_vectors()) split_columns();
  }

  bool has_phases() const {
    return stores_vectors() && std::all_of(part_.stores.begin(), part_.stores.end(), [&](const Store& s) {
             return is_float(part_.nodes[static_cast<std::size_t>(s.value)].dtype);
           });
  }

  int results() const { return static_cast<int>(part_.stores.size()); }

  // Lines that make of `v` what is to be stored, and of others[j] what further stores take.
  std::string value_text() const {
    return vector_text(part_, [&](Emitter& e) {
      std::vector<std::string> values;
      for (const Store& s : part_.stores) values.push_back(e.stored_value(s));
      for (std::size_t i = 1; i < values.size(); ++i) e.line(fmt::format("{} = {};", other(i), values[i]));
      e.line(fmt::format("v = {};", values[0]));
    });
  }

  // The same of the only result, whatever its type.
  std::string any_value_text() const {
    if (has_phases()) return value_text();
    return lanes_text([&](Emitter& e) { e.line(fmt::format("lanes[l] = {};", e.stored_value(part_.stores[0]))); },
                      fmt::format("v = vload{}(0, lanes);", width_));
  }

  // Lines that store these as they are.
  std::string store_text() const {
    Kernel plain = part_;
    std::vector<NodeId> stored;
    plain.stages.resize(plain.stores.size(), plain.stages[0]);
    for (std::size_t i = 0; i < plain.stores.size(); ++i) {
      stored.push_back(plain.stores[i].value = static_cast<NodeId>(plain.nodes.size()));
      ScalarNode result;
      result.kind = ScalarNode::Kind::reduced;
      result.stage = static_cast<int>(i);
      plain.nodes.push_back(result);
    }
    keep_needed(plain, stored);
    return vector_text(plain, [&](Emitter& e) {
      for (std::size_t i = 1; i < plain.stores.size(); ++i) e.stage_done(static_cast<int>(i), other(i), true);
      for (const Store& s : plain.stores) e.store(s);
    });
  }

  // Lines that ask for what the vectors at row m, columns n ... will be computed with, and for where they go, as far as such
  // places move evenly from row to row.
  std::string ahead_text() const {
    if (column_ == kLane || !stores_vectors()) return "";
    Kernel rows = part_;
    rows.axes = flat_axes();
    std::set<std::string> lines, names;
    for (const Axis& axis : rows.axes) names.insert(axis.name);
    Emitter e(rows, view_.mode());
    e.open("", names);
    for (const std::string& line : view_.group_coordinates()) e.line(line);
    e.line(fmt::format("const {} {} = n;", view_.index_type(), column_));
    const auto add = [&](int operand, const Expr& place, const std::vector<Expr>& guard) {
      if (!guard.empty() || (!flat_ && !view_.affine_in_row(place))) return;
      const Expr index = flat_ ? place : place.substitute(view_.to_flat_row());
      if (!index.uses("m") || index.coefficient(column_) != Expr(1)) return;
      lines.insert(
          fmt::format("oclc_prefetch_l2({} + {});", part_.operands[static_cast<std::size_t>(operand)].name, e.index(index)));
    };
    for (const ScalarNode& n : part_.nodes) {
      if (n.kind == ScalarNode::Kind::load) add(n.operand, n.index, n.guard);
    }
    for (const Store& s : part_.stores) add(s.operand, s.index, s.guard);
    if (lines.empty()) return "";
    for (const std::string& line : lines) e.line(line);
    e.close();
    return e.text();
  }

  std::string text() const {
    if (stores_vectors()) {
      return vector_text(part_, [&](Emitter& e) {
        for (const Store& s : part_.stores) e.store(s);
      });
    }
    if (scatters_bytes()) return bytes_text();
    return lanes_text([&](Emitter& e) {
      for (const Store& s : part_.stores) e.store(s);
    });
  }

 private:
  static std::string other(std::size_t store) { return fmt::format("others[j][{}]", store - 1); }

  template <class Lines>
  std::string vector_text(const Kernel& kernel, const Lines& lines) const {
    const std::string& column = column_;
    EmitMode mode = view_.mode();
    mode.vector_axis = column;
    mode.width = width_;
    mode.aligned = aligned_;
    const Expr& columns = view_.columns();
    if (!columns.is_constant() || columns.value() % width_ != 0) mode.lanes_left = fmt::format("N - {}", column);
    std::set<std::string> names;
    for (const Axis& axis : kernel.axes) names.insert(axis.name);
    Emitter e(kernel, mode);
    e.open("", names);
    row_coordinates(e);
    if (column == kLane)
      e.line(fmt::format("const {0} {1} = n / {2}, {3} = 0;", view_.index_type(), kBlock, width_, kLane));
    else
      e.line(fmt::format("const {} {} = n;", view_.index_type(), column));
    e.stage_done(0, "v", true);
    lines(e);
    e.close();
    return e.text();
  }

  // Opens a scope with the rows' coordinates and the lanes of `v` in an array.
  void open_lanes(Emitter& e) const {
    std::set<std::string> names;
    for (const Axis& axis : part_.axes) names.insert(axis.name);
    names.erase(view_.column_axis().name);
    e.open("", names);
    row_coordinates(e);
    e.line(fmt::format("float lanes[{}];", width_));
    e.line("oclc_store(v, lanes);");
  }

  // Opens the loop over lanes, `l`, while `condition` holds.
  void open_lane_loop(Emitter& e, const std::string& condition) const {
    const std::string& column = view_.column_axis().name;
    e.open(fmt::format("for (int l = 0; {}; ++l)", condition), {column});
    e.line(fmt::format("const {} {} = n + l;", view_.index_type(), column));
    e.stage_done(0, "lanes[l]", false);
  }

  // Lines for each lane of `v` alone, and one after all.
  template <class Lines>
  std::string lanes_text(const Lines& lines, const std::string& after = "") const {
    Emitter e(part_, view_.mode());
    open_lanes(e);
    open_lane_loop(e, fmt::format("l < {} && n + l < N", width_));
    lines(e);
    e.close();
    if (!after.empty()) e.line(after);
    e.close();
    return e.text();
  }

  // One result of bytes that lie apart, as of a quantised convolution whose result is channels-first: a scale, a rounding and
  // two bounds take longer than the stores, and compilers make vectors of them where no store stands between.
  bool scatters_bytes() const {
    if (aligned_ || part_.stores.size() != 1 || !part_.stores[0].guard.empty()) return false;
    const DType dtype = part_.operands[static_cast<std::size_t>(part_.stores[0].operand)].dtype;
    const auto step = part_.stores[0].index.coefficient(view_.column_axis().name);
    return (dtype == DType::u8 || dtype == DType::i8) && step && step->is_constant() && view_.columns().is_constant() &&
           view_.columns().value() % width_ == 0;
  }

  std::string bytes_text() const {
    const Store& store = part_.stores[0];
    const Operand& result = part_.operands[static_cast<std::size_t>(store.operand)];
    const std::string& column = view_.column_axis().name;
    Emitter e(part_, view_.mode());
    open_lanes(e);
    e.line(fmt::format("{} bytes[{}];", c_type(result.dtype), width_));
    open_lane_loop(e, fmt::format("l < {}", width_));
    e.line(fmt::format("bytes[l] = {};", e.stored_value(store)));
    e.close();
    // One address and constant steps from it: compilers would compute vectors of addresses.
    e.open("", {column});
    e.line(fmt::format("const {} {} = n;", view_.index_type(), column));
    e.line(fmt::format("__global {}* to = {} + ({});", c_type(result.dtype), result.name, e.index(store.index)));
    e.line(
        fmt::format("for (int l = 0; l < {}; ++l) to[l * {}] = bytes[l];", width_, store.index.coefficient(column)->value()));
    e.close();
    e.close();
    return e.text();
  }

  void row_coordinates(Emitter& e) const {
    if (flat_) return;
    for (const std::string& line : view_.row_coordinates(needed_)) e.line(line);
  }

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
    part_.axes = flat_axes();
    sum_varies_along_all_axes();
  }

  std::vector<Axis> flat_axes() const {
    std::vector<Axis> axes;
    for (const int i : view_.roles().batch) axes.push_back(view_.axis(i));
    axes.push_back({"m", view_.rows(), Expr::axis("m", view_.rows())});
    axes.push_back(view_.column_axis());
    return axes;
  }

  // Columns as whole vectors of lanes, if neighbouring columns of a vector are neighbours in memory though those of two vectors
  // are not: heads of attention, whose columns are gathered by head.
  void split_columns() {
    const Axis& column = view_.column_axis();
    const Expr width(width_);
    if (!column.extent.is_constant() || column.extent.value() % width_ != 0) return;
    const Kernel whole = part_;
    const Axis block{kBlock, floor_div(column.extent, width), Expr::axis(kBlock, floor_div(column.extent, width))},
        lane{kLane, width, Expr::axis(kLane, width)};
    const Substitution split{{column.name, block.var * width + lane.var}};
    for (ScalarNode& n : part_.nodes) {
      n.index = n.index.substitute(split);
      for (Expr& e : n.guard) e = e.substitute(split);
    }
    for (Store& s : part_.stores) s.index = s.index.substitute(split);
    std::erase_if(part_.axes, [&](const Axis& axis) { return axis.name == column.name; });
    part_.axes.insert(part_.axes.end(), {block, lane});
    column_ = kLane;
    if (stores_vectors()) return;
    part_ = whole;
    column_ = column.name;
  }

  bool stores_vectors() const {
    // Masks of 64 bits, as whole vectors.
    const auto masks =
        aligned_ && floor_mod(view_.columns(), Expr(width_)) == Expr(0) ? std::optional(DType::i64) : std::nullopt;
    return view_.columns() != Expr(1) && can_vectorize(part_, column_, 1, masks) &&
           std::all_of(part_.stores.begin(), part_.stores.end(),
                       [&](const Store& s) { return s.index.coefficient(column_) == Expr(1); });
  }

  const ContractionView& view_;
  const int width_;
  const bool aligned_;
  Kernel part_;
  std::vector<Expr> needed_;  // all indices and guards
  bool flat_ = false;
  std::string column_;  // the axis that vectors run along
};

}  // namespace

bool has_cheap_epilogue(const ContractionView& view) {
  double flops = 0;
  for (const ScalarNode& n : view.kernel().nodes) flops += n.kind == ScalarNode::Kind::apply ? n.op->flops : 0;
  return flops <= cost::kCheapEpilogueFlops;
}

std::string contraction_epilogue(const ContractionView& view, int width, bool aligned) {
  return Epilogue(view, width, aligned).text();
}

std::string epilogue_value(const ContractionView& view, int width, bool aligned) {
  return Epilogue(view, width, aligned).any_value_text();
}

std::string epilogue_ahead(const ContractionView& view, int width) { return Epilogue(view, width, false).ahead_text(); }

EpiloguePhases contraction_epilogue_phases(const ContractionView& view, int width, bool aligned) {
  const Epilogue epilogue(view, width, aligned);
  if (!view.roles().windows.empty()) {
    // Results have no places of their own.
    Kernel one = view.kernel();
    one.stores[0].index = view.column_axis().var;
    const auto row = ContractionView::of(one);
    return {Epilogue(row.value(), width, aligned).any_value_text(), epilogue.store_text()};
  }
  if (!epilogue.has_phases()) return {"", epilogue.text()};
  return {epilogue.value_text(), epilogue.store_text(), epilogue.results()};
}

}  // namespace oclc
