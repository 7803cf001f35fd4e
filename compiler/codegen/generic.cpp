#include "compiler/codegen/generic.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/codegen/block_transpose.h"
#include "compiler/codegen/collapse.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/scope.h"
#include "compiler/ir/typical.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Floats of a cache line.
constexpr std::int64_t kTransposeLanes = 16;

class LoopNest {
 public:
  LoopNest(Kernel kernel, const Target& target) : kernel_(std::move(kernel)), target_(target) {
    narrow_indices(kernel_);
    collapse_axes(kernel_);
    if (kernel_.axes.empty()) kernel_.axes.push_back({"one", Expr(1), Expr(0)});
    cpu_ = target.device_class == DeviceClass::cpu;
    choose_vector_axis();
    if (cpu_ && vector_axis_ == kNone && block_transpose(kernel_, kTransposeLanes)) {
      vector_axis_ = kernel_.axes.size() - 1;
      scalar_lanes_ = true;
    }
  }

  GeneratedKernel run() {
    std::vector<Expr> extents;
    for (const Axis& a : kernel_.axes) extents.push_back(a.extent);
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_, extents);
    Emitter e(kernel_, mode);
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    if (cpu_)
      cpu_body(e, g);
    else
      gpu_body(e, g);
    const std::string tile_type = mode.wide_index ? "long" : "int";
    g.head = kernel_head(kernel_, g);
    g.tile_source = fmt::format("void {}_tile({}, const {} tile) {{\n{}}}\n\n", g.name, parameter_list(kernel_, false),
                                tile_type, e.text());
    g.source = g.tile_source;
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n  {}_tile({}, get_group_id(0));\n}}\n",
        g.local[0], g.name, parameter_list(kernel_, true), g.name, argument_list(kernel_));
    return g;
  }

  std::string whole(int group) {
    whole_ = true;
    std::vector<Expr> extents;
    for (const Axis& a : kernel_.axes) extents.push_back(a.extent);
    EmitMode mode;
    mode.wide_index = needs_wide_index(without_symbols(), extents);
    Emitter e(kernel_, mode);
    if (!cpu_) {
      e.open(fmt::format("for ({} element = get_local_id(0); element < {}; element += {})", e.index_type(),
                         e.index(product(extents)), group),
             {});
      e.open("", unflatten_axes(e, "element", kNone));
      element(e);
      e.close();
      e.close();
      return e.text();
    }
    std::set<std::string> single;
    for (const Axis& a : kernel_.axes) {
      if (a.extent == Expr(1)) single.insert(a.name);
    }
    e.open("", single);
    int loops = 0;
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      const Axis& a = kernel_.axes[i];
      if (i == vector_axis_ || a.extent == Expr(1)) continue;
      open_loop(e, a);
      ++loops;
    }
    if (vector_axis_ != kNone)
      vector_loops(e, kernel_.axes[vector_axis_], "0", e.index(kernel_.axes[vector_axis_].extent), true,
                   [&](int) { element(e); });
    else
      element(e);
    for (int i = 0; i <= loops; ++i) e.close();
    return e.text();
  }

 private:
  // The kernel with 1 for counters and dimensions: they are `long` themselves, so that what they take part in is too.
  Kernel without_symbols() const {
    std::map<std::string, Expr, std::less<>> ones;
    for (const std::string& s : kernel_.model_symbols()) ones.emplace(s, Expr(1));
    Kernel kernel = kernel_;
    for (ScalarNode& node : kernel.nodes) node.index = node.index.substitute(ones);
    for (Store& store : kernel.stores) store.index = store.index.substitute(ones);
    return kernel;
  }

  Expr stride(const Expr& index, const std::string& axis) const { return index.coefficient(axis).value_or(Expr(-1)); }

  void choose_vector_axis() {
    if (!cpu_ || target_.vector_width == 1 || kernel_.stores.empty()) return;
    for (std::size_t i = kernel_.axes.size(); i-- > 0;) {
      const Axis& axis = kernel_.axes[i];
      const bool unit = std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                                    [&](const Store& s) { return stride(s.index, axis.name) == Expr(1); });
      if (!unit || typical(axis.extent) < 4 || !can_vectorize(kernel_, axis.name)) continue;
      vector_axis_ = i;
      return;
    }
    // Along the innermost reduction axis: rows are read and written with unit stride, sums end in one addition over lanes.
    if (kernel_.reduction.empty()) return;
    const Axis& last = kernel_.reduction.back();
    const auto all_run_over_it = [&](const std::vector<int>& axes) {
      return std::find(axes.begin(), axes.end(), static_cast<int>(kernel_.reduction.size()) - 1) != axes.end();
    };
    const bool rows = std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const Store& s) {
      return s.row_axes.empty() || (all_run_over_it(s.row_axes) && stride(s.index, last.name) == Expr(1));
    });
    // Lanes are combined by functions of float and int.
    const auto has_lanes = [](DType d) { return d == DType::f32 || d == DType::i32; };
    const bool stages = std::all_of(kernel_.stages.begin(), kernel_.stages.end(),
                                    [&](const Stage& s) { return all_run_over_it(s.axes) && has_lanes(s.accumulator); });
    if (rows && stages && typical(last.extent) >= 4 && can_vectorize(kernel_, last.name)) vector_reduction_ = true;
    if (!vector_reduction_ && rows && stages_have_lanes()) choose_scattered_axis();
  }

  bool stages_have_lanes() const {
    return std::all_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [](const Stage& s) { return s.accumulator == DType::f32; });
  }

  // An axis that loads run along, though results are stored one by one: few of them end long sums.
  void choose_scattered_axis() {
    for (std::size_t i = kernel_.axes.size(); i-- > 0;) {
      const Axis& axis = kernel_.axes[i];
      const bool loads = std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
        return n.kind == ScalarNode::Kind::load && stride(n.index, axis.name) == Expr(1);
      });
      const bool stores = std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const Store& s) {
        const auto step = s.index.coefficient(axis.name);
        return step && *step != Expr(0) && s.row_axes.empty() &&
               kernel_.operands[static_cast<std::size_t>(s.operand)].dtype == DType::f32;
      });
      if (!loads || !stores || typical(axis.extent) < 4 || !can_vectorize(kernel_, axis.name)) continue;
      vector_axis_ = i;
      return;
    }
  }

  // Widest vector that the extent fills at least once.
  int width_for(const Expr& extent) const {
    if (scalar_lanes_) return 1;
    int width = target_.vector_width;
    if (const auto c = extent.constant()) {
      while (width > 4 && width > *c) width /= 2;
      if (width > *c) width = 1;
    }
    return width;
  }

  // Loops over the vector axis (or nothing), widest first, then what is left one by one.
  template <class Body>
  void vector_loops(Emitter& e, const Axis& axis, const std::string& begin, const std::string& end, bool exact, Body body) {
    const int width = width_for(axis.extent);
    const auto extent = axis.extent.constant();
    if (whole_ && exact && extent && !vector_reduction_) return literal_vector_loops(e, axis, *extent, width, body);
    const bool tail = !(exact && extent && *extent % width == 0) || width == 1;
    const std::string_view type = e.index_type();
    if (width > 1) {
      e.set_vector_axis(axis.name, width);
      if (tail) {
        e.line(fmt::format("{} {} = {};", type, axis.name, begin));
        e.open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", axis.name, width, end), {axis.name});
      } else {
        e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, axis.name, begin, end, width), {axis.name});
      }
      body(width);
      e.close();
      if (tail) {
        e.set_vector_axis({}, 1);
        e.open(fmt::format("for (; {0} < {1}; ++{0})", axis.name, end), {axis.name});
        body(1);
        e.close();
      }
    } else {
      e.set_vector_axis({}, 1);
      e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1})", type, axis.name, begin, end), {axis.name});
      body(1);
      e.close();
    }
    e.set_vector_axis({}, 1);
  }

  // The same over [0, extent): what a vector of one width leaves is done by one of half the width.
  template <class Body>
  void literal_vector_loops(Emitter& e, const Axis& axis, std::int64_t extent, int width, Body body) {
    for (std::int64_t at = 0; at<extent; width = width> 4 ? width / 2 : 1) {
      const std::int64_t end = at + (extent - at) / width * width;
      if (end == at) continue;
      e.set_vector_axis(width > 1 ? axis.name : std::string(), width);
      e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", e.index_type(), axis.name, at, end, width), {axis.name});
      body(width);
      e.close();
      at = end;
    }
    e.set_vector_axis({}, 1);
  }

  // Stages [first, last), which run over the same axes, in one loop nest in the present vector mode.
  void stage_loops(Emitter& e, int first, int last) {
    if (vector_reduction_) return row_stage(e, first);
    const auto stage_of = [&](int i) -> const Stage& { return kernel_.stages[static_cast<std::size_t>(i)]; };
    const auto name_of_sum = [](int i) { return fmt::format("s{}", i); };
    for (int i = first; i < last; ++i) {
      const Stage& stage = stage_of(i);
      const DType dtype = stage.accumulator;
      const std::string name = name_of_sum(i), scalar_type(dtype == DType::boolean ? "int" : c_type(dtype));
      e.line(e.is_vector(stage.body)
                 ? fmt::format("{0} {1} = ({0})({2});", e.vector_type(dtype), name, initial_text(stage.combine, dtype))
                 : fmt::format("{} {} = {};", scalar_type, name, initial_text(stage.combine, dtype)));
      if (stage.arg_index >= 0) e.line(fmt::format("long {}_at = 0;", name));
      if (compensated(stage)) {
        const std::string type = e.is_vector(stage.body) ? e.vector_type(dtype) : scalar_type;
        e.line(fmt::format("{0} {1}_rest = ({0})(0.0f);", type, name));
      }
    }
    const std::vector<int>& axes = stage_of(first).axes;
    for (const int a : axes) open_loop(e, kernel_.reduction[static_cast<std::size_t>(a)]);
    for (int i = first; i < last; ++i)
      accumulate(e, stage_of(i), name_of_sum(i), e.is_vector(stage_of(i).body), stage_of(i).arg_index >= 0);
    for (const int a : axes) {
      if (kernel_.reduction[static_cast<std::size_t>(a)].extent != Expr(1)) e.close();
    }
    for (int i = first; i < last; ++i)
      e.stage_done(i, stage_of(i).arg_index >= 0 ? name_of_sum(i) + "_at" : name_of_sum(i), e.is_vector(stage_of(i).body));
  }

  // One past the last stage that may share the loops of stage `first`: same axes, and no need of a result from among them.
  int shared_until(const Emitter& e, int first) const {
    int last = first + 1;
    const Stage& stage = kernel_.stages[static_cast<std::size_t>(first)];
    if (vector_reduction_ || stage.arg_index >= 0) return last;
    for (; last < static_cast<int>(kernel_.stages.size()); ++last) {
      const Stage& next = kernel_.stages[static_cast<std::size_t>(last)];
      if (next.axes != stage.axes || next.arg_index >= 0) break;
      bool needs = false;
      for (int i = first; i < last; ++i) needs = needs || e.depends(next.body, fmt::format("stage {}", i));
      if (needs) break;
    }
    return last;
  }

  // Long sums into one number carry what rounding takes from each addition.
  bool compensated(const Stage& stage) const {
    double terms = 1;
    for (const int a : stage.axes) terms *= typical(kernel_.reduction[static_cast<std::size_t>(a)].extent);
    return stage.combine == Stage::Combine::sum && stage.accumulator == DType::f32 &&
           terms / (vector_reduction_ ? target_.vector_width : 1) > kLongSum;
  }

  void accumulate(Emitter& e, const Stage& stage, const std::string& name, bool vector, bool arg) {
    if (arg) {
      const std::string x = e.value(stage.body);
      const bool largest = stage.combine == Stage::Combine::argmax_first || stage.combine == Stage::Combine::argmax_last;
      const bool last = stage.combine == Stage::Combine::argmax_last || stage.combine == Stage::Combine::argmin_last;
      const std::string position = e.value(stage.arg_index);
      e.line(
          fmt::format("if ({0} {1}{2} {3}) {3} = {0}, {3}_at = {4};", x, largest ? ">" : "<", last ? "=" : "", name, position));
      return;
    }
    accumulate_term(e, kernel_, stage, name, vector, compensated(stage));
  }

  void open_loop(Emitter& e, const Axis& axis) {
    if (axis.extent == Expr(1)) return;
    e.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", e.index_type(), axis.name, e.index(axis.extent)), {axis.name});
  }

  // A stage whose innermost axis runs in vectors: lanes are combined at the end.
  void row_stage(Emitter& e, int number) {
    const Stage& stage = kernel_.stages[static_cast<std::size_t>(number)];
    const Axis& inner = kernel_.reduction.back();
    const int width = width_for(inner.extent);
    const std::string name = fmt::format("s{}", number), lanes = name + "_lanes";
    const DType dtype = stage.accumulator;
    e.line(fmt::format("{} {} = {};", c_type(dtype), name, initial_text(stage.combine, dtype)));
    if (width > 1)
      e.line(fmt::format("{0}{1} {2} = ({0}{1})({3});", c_type(dtype), width, lanes, initial_text(stage.combine, dtype)));
    if (compensated(stage)) {
      e.line(fmt::format("float {}_rest = 0.0f;", name));
      if (width > 1) e.line(fmt::format("float{0} {1}_rest = (float{0})(0.0f);", width, lanes));
    }
    // The loops over the row stand in a block of their own, so that every stage can name its counter alike.
    e.open("", {});
    for (std::size_t i = 0; i + 1 < stage.axes.size(); ++i)
      open_loop(e, kernel_.reduction[static_cast<std::size_t>(stage.axes[i])]);
    vector_loops(e, inner, "0", e.index(inner.extent), true,
                 [&](int w) { accumulate(e, stage, w > 1 ? lanes : name, w > 1, false); });
    for (std::size_t i = 0; i + 1 < stage.axes.size(); ++i) {
      if (kernel_.reduction[static_cast<std::size_t>(stage.axes[i])].extent != Expr(1)) e.close();
    }
    e.close();
    if (width > 1)
      e.line(fmt::format("{0} = {1};", name,
                         combine_text(stage.combine, dtype, name, fmt::format("{}({})", lane_function(stage.combine), lanes))));
    e.stage_done(number, name, false);
  }

  void stores(Emitter& e) {
    for (const Store& store : kernel_.stores) {
      if (store.row_axes.empty()) {
        e.store(store);
        continue;
      }
      e.open("", {});
      const std::size_t loops = store.row_axes.size() - (vector_reduction_ ? 1 : 0);
      for (std::size_t i = 0; i < loops; ++i) open_loop(e, kernel_.reduction[static_cast<std::size_t>(store.row_axes[i])]);
      if (vector_reduction_)
        vector_loops(e, kernel_.reduction.back(), "0", e.index(kernel_.reduction.back().extent), true,
                     [&](int) { e.store(store); });
      else
        e.store(store);
      for (std::size_t i = 0; i < loops; ++i) {
        if (kernel_.reduction[static_cast<std::size_t>(store.row_axes[i])].extent != Expr(1)) e.close();
      }
      e.close();
    }
  }

  void element(Emitter& e) {
    for (int i = 0, next = 0; i < static_cast<int>(kernel_.stages.size()); i = next) {
      next = shared_until(e, i);
      stage_loops(e, i, next);
    }
    stores(e);
  }

  // Names the coordinates of flat position `flat` along the axes before `end`.
  std::set<std::string> unflatten_axes(Emitter& e, const std::string& flat, std::size_t skip) {
    std::set<std::string> names;
    std::vector<const Axis*> list;
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (i != skip) list.push_back(&kernel_.axes[i]);
    }
    std::vector<std::string> lines;
    Expr divisor(1);
    for (std::size_t i = list.size(); i-- > 0;) {
      const std::string quotient = divisor == Expr(1) ? flat : fmt::format("{} / ({})", flat, e.index(divisor));
      lines.push_back(fmt::format("const {} {} = {};", e.index_type(), list[i]->name,
                                  i == 0 ? quotient : fmt::format("{} % ({})", quotient, e.index(list[i]->extent))));
      divisor *= list[i]->extent;
      names.insert(list[i]->name);
    }
    for (std::size_t i = lines.size(); i-- > 0;) e.line(lines[i]);
    return names;
  }

  Expr rows() const {
    Expr n(1);
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (i != vector_axis_) n *= kernel_.axes[i].extent;
    }
    return n;
  }

  // Upper bound, for all values of the symbols, of the loop iterations that one element of the iteration space takes. Each
  // entry of a loop counts 2 more, for the test that ends it and that of a vector loop's tail.
  std::int64_t element_iterations() const {
    Expr all(6);  // the loops over rows and over a row's elements around it
    const auto nest = [&](const std::vector<int>& axes) {
      Expr entered(1);
      for (const int a : axes) {
        const Expr& extent = kernel_.reduction[static_cast<std::size_t>(a)].extent;
        if (extent != Expr(1)) all += entered * (extent + 2);
        entered *= extent;
      }
    };
    for (const Stage& stage : kernel_.stages) nest(stage.axes);
    for (const Store& store : kernel_.stores) nest(store.row_axes);
    // The integer power is a loop over the exponent's bits.
    for (const ScalarNode& n : kernel_.nodes) {
      if (n.kind == ScalarNode::Kind::apply && n.op_name == "pow" && !is_float(n.dtype))
        all += (all + 1) * Expr(8 * static_cast<std::int64_t>(size_bytes(n.dtype)) + 1);
    }
    return all.upper();
  }

  void check_iterations(std::int64_t iterations) const {
    if (iterations <= target_.loop_iterations) return;
    std::string loops;
    for (const Axis& a : kernel_.reduction)
      loops += fmt::format("{}{} < {}", loops.empty() ? "" : ", ", a.name, a.extent.text());
    throw CompileError({.stage = "codegen",
                        .node = kernel_.sources.empty() ? kernel_.name : fmt::format("{}", fmt::join(kernel_.sources, ", ")),
                        .wanted = fmt::format("at most {} loop iterations a work-item, all that target '{}' makes",
                                              target_.loop_iterations, target_.name),
                        .found = iterations == kUnbounded ? fmt::format("no bound for the loops over {}", loops)
                                                          : fmt::format("up to {} in the loops over {}", iterations, loops),
                        .advice = iterations == kUnbounded ? "bind the dimension with --dim" : "another device",
                        .exit_code = ExitCode::unsupported});
  }

  // Seconds that one core needs for one element of the iteration space.
  double element_seconds() const {
    double points = 1;
    for (const Axis& a : kernel_.axes) points *= typical(a.extent);
    const double cores = target_.compute_units;
    return std::max(typical(kernel_.flops) / (target_.flops / 8), typical(kernel_.bytes) / target_.bytes_per_second) * cores /
           std::max(points, 1.0);
  }

  void cpu_body(Emitter& e, GeneratedKernel& g) {
    // Tiles of some 50 us: enough of them to share among cores, not so many that their start costs.
    constexpr double kTileSeconds = 50e-6;
    const bool has_vector = vector_axis_ != kNone;
    const Expr all_rows = rows();
    const double per_element = element_seconds();
    const Expr inner = has_vector ? kernel_.axes[vector_axis_].extent : Expr(1);
    const double inner_typical = typical(inner);
    std::int64_t chunk = 0;  // of the vector axis; 0: all of it
    std::int64_t row_block = 1;
    const double wanted = std::max(1.0, kTileSeconds / std::max(per_element, 1e-12));
    if (has_vector && inner_typical > wanted * 2) {
      const std::int64_t whole = target_.vector_width * 4;
      const std::int64_t unit =
          inner_typical < static_cast<double>(2 * target_.compute_units * whole) ? target_.vector_width : whole;
      chunk = std::max<std::int64_t>(unit, static_cast<std::int64_t>(wanted) / unit * unit);
    } else {
      row_block = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted / std::max(inner_typical, 1.0)));
    }
    if (const auto r = all_rows.constant(); r && row_block < *r && chunk == 0) {
      const std::int64_t tiles = (*r + row_block - 1) / row_block, cores = target_.compute_units;
      const std::int64_t even = (tiles + cores - 1) / cores * cores;
      row_block = std::max<std::int64_t>(1, (*r + even - 1) / even);
    }
    if (target_.loop_iterations != Target::kNoLimit) {
      const std::int64_t element = element_iterations();
      check_iterations(element);
      const std::int64_t elements = target_.loop_iterations / element;
      if (has_vector && inner.upper() > elements) chunk = chunk ? std::min(chunk, elements) : elements;
      row_block = chunk ? 1 : std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, inner.upper()), 1, row_block);
    }
    const Expr row_tiles = ceil_div(all_rows, Expr(row_block));
    const Expr chunks = chunk ? ceil_div(inner, Expr(chunk)) : Expr(1);
    g.groups = {row_tiles * chunks};
    g.local = {1};
    g.schedule = fmt::format("{} rows x {} a tile{}", row_block, chunk ? std::to_string(chunk) : inner.text(),
                             vector_reduction_ ? ", vectors along the row" : "");
    const std::string_view type = e.index_type();
    std::set<std::string> open_axes;
    std::string begin = "0", end = has_vector ? e.index(inner) : "1";
    if (chunk) {
      const std::string tile = all_rows == Expr(1) ? "tile" : fmt::format("tile % ({})", e.index(chunks));
      e.line(fmt::format("const {} chunk_begin = {} * {};", type, tile, chunk));
      e.line(fmt::format("const {} chunk_end = min(chunk_begin + {}, ({})({}));", type, chunk, type, e.index(inner)));
      begin = "chunk_begin";
      end = "chunk_end";
    }
    const bool one_row = all_rows == Expr(1);
    if (!one_row) {
      const std::string tile = chunks == Expr(1) ? "tile" : fmt::format("tile / ({})", e.index(chunks));
      if (row_block > 1) {
        e.line(fmt::format("const {} row_end = min(({}) * {} + {}, ({})({}));", type, tile, row_block, row_block, type,
                           e.index(all_rows)));
        e.open(fmt::format("for ({} row = ({}) * {}; row < row_end; ++row)", type, tile, row_block), {});
      } else {
        e.open("", {});
        e.line(fmt::format("const {} row = {};", type, tile));
      }
      open_axes = unflatten_axes(e, "row", vector_axis_);
    } else {
      e.open("", {});
      for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
        if (i != vector_axis_) {
          e.line(fmt::format("const {} {} = 0;", type, kernel_.axes[i].name));
          open_axes.insert(kernel_.axes[i].name);
        }
      }
    }
    e.open("", open_axes);
    if (has_vector)
      vector_loops(e, kernel_.axes[vector_axis_], begin, end, chunk == 0, [&](int) { element(e); });
    else
      element(e);
    e.close();
    e.close();
  }

  void gpu_body(Emitter& e, GeneratedKernel& g) {
    check_iterations(element_iterations());
    const std::int64_t group = target_.work_group;
    Expr all(1);
    for (const Axis& a : kernel_.axes) all *= a.extent;
    g.groups = {ceil_div(all, Expr(group))};
    g.local = {static_cast<std::uint32_t>(group)};
    g.schedule = "one element a work-item";
    e.line(fmt::format("const {} element = tile * {} + get_local_id(0);", e.index_type(), group));
    e.line(fmt::format("if (element >= {}) return;", e.index(all)));
    const auto names = unflatten_axes(e, "element", kNone);
    e.open("", names);
    element(e);
    e.close();
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  Kernel kernel_;
  const Target& target_;
  bool cpu_ = true;
  std::size_t vector_axis_ = kNone;
  bool vector_reduction_ = false;
  bool scalar_lanes_ = false;  // the vector axis is a block of a transposition, done one by one
  bool whole_ = false;
};

}  // namespace

GeneratedKernel generate_loops(Kernel kernel, const Target& target) { return LoopNest(std::move(kernel), target).run(); }

std::string whole_loops(Kernel kernel, const Target& target, int group) {
  return LoopNest(std::move(kernel), target).whole(group);
}

bool needs_wide_index(const Kernel& kernel, const std::vector<Expr>& extents) {
  Expr points(1);
  for (const Expr& e : extents) points *= e;
  if (points.upper() > INT32_MAX) return true;
  const auto too_large = [](const Expr& e) { return e.upper() > INT32_MAX || e.lower() < INT32_MIN; };
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind == ScalarNode::Kind::load && too_large(node.index)) return true;
    if (node.kind == ScalarNode::Kind::index && too_large(node.index)) return true;
  }
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) { return too_large(s.index); });
}

void narrow_indices(Kernel& kernel) {
  std::vector<bool> narrow(kernel.nodes.size(), false);
  const auto fits = [](std::int64_t v) { return v >= -(1 << 30) && v <= (1 << 30); };
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    ScalarNode& node = kernel.nodes[i];
    if (node.kind == ScalarNode::Kind::index && node.dtype == DType::i64 && fits(node.index.lower()) &&
        fits(node.index.upper()))
      narrow[i] = true;
    if (node.kind == ScalarNode::Kind::constant && node.dtype == DType::i64 && fits(static_cast<std::int64_t>(node.number)))
      narrow[i] = true;
  }
  // Only where all users compare: the result's type stays as it is.
  std::vector<bool> keep(kernel.nodes.size(), false);
  const auto pin = [&](NodeId id) {
    if (id >= 0) keep[static_cast<std::size_t>(id)] = true;
  };
  for (const ScalarNode& node : kernel.nodes) {
    const bool compares =
        node.kind == ScalarNode::Kind::apply && node.op->result_is_bool &&
        std::all_of(node.args.begin(), node.args.end(), [&](NodeId a) { return narrow[static_cast<std::size_t>(a)]; });
    const bool converts = node.kind == ScalarNode::Kind::cast && node.dtype == DType::f32;
    for (const NodeId a : node.args) {
      if (!compares && !converts) pin(a);
    }
    for (const std::string& s : node.index.symbols()) {
      if (const auto id = dynamic_index(s)) pin(*id);
    }
  }
  for (const Stage& stage : kernel.stages) pin(stage.body), pin(stage.arg_index);
  for (const Store& store : kernel.stores) pin(store.value);
  for (bool changed = true; changed;) {  // a comparison needs both sides alike
    changed = false;
    for (const ScalarNode& node : kernel.nodes) {
      if (node.kind != ScalarNode::Kind::apply || !node.op->result_is_bool) continue;
      const bool any_kept = std::any_of(node.args.begin(), node.args.end(), [&](NodeId a) {
        return keep[static_cast<std::size_t>(a)] || !narrow[static_cast<std::size_t>(a)];
      });
      for (const NodeId a : node.args) {
        if (any_kept && narrow[static_cast<std::size_t>(a)] && !keep[static_cast<std::size_t>(a)])
          keep[static_cast<std::size_t>(a)] = changed = true;
      }
    }
  }
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (narrow[i] && !keep[i]) kernel.nodes[i].dtype = DType::i32;
  }
}

}  // namespace oclc
