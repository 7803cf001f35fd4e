#include "compiler/codegen/loops/group_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/loops/group_shape.h"
#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/loop_text.h"
#include "compiler/codegen/text/reduction_text.h"
#include "compiler/codegen/text/scope.h"

namespace oclc {
namespace {

class GroupReduction : public GroupShape {
 public:
  using GroupShape::GroupShape;

  GroupTiles tiles(const std::string& name) {
    kernel_.name = name;
    Emitter e = emitter();
    return {function(e), accumulator_type(result_lanes_), ceil_div(vectors_, Expr(results_)),
            std::int64_t{items_} * result_lanes_ * static_cast<std::int64_t>(size_bytes(kernel_.stages[0].accumulator)) / 4};
  }

  GeneratedKernel run() {
    Emitter e = emitter();
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    choose_each(e);
    g.groups = {ceil_div(vectors_, Expr(results_ * each_))};
    g.local = {static_cast<std::uint32_t>(results_ * sharers_)};
    g.schedule = fmt::format("{} results a group, {} work-items each{}", results_ * result_lanes_ * each_, sharers_,
                             result_lanes_ * term_lanes_ == 1 ? "" : ", vectors");
    g.head = kernel_head(kernel_, g);
    const std::string type = accumulator_type(result_lanes_);
    g.source = function(e);
    if (megakernel_groups_ > 0) {
      g.tile_source = g.source;
      g.local_type = type;
      g.local_floats = std::to_string(g.local[0] * static_cast<std::uint32_t>(result_lanes_ * each_) *
                                      static_cast<std::uint32_t>(size_bytes(kernel_.stages[0].accumulator)) / 4);
    }
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n  __local {3} parts[{0}];\n"
        "  {1}_tile({4}, get_group_id(0), parts);\n}}\n",
        g.local[0], g.name, parameter_list(kernel_, true), type, argument_list(kernel_));
    return g;
  }

 private:
  Emitter emitter() {
    choose();
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_, megakernel_groups_ > 0);
    mode.aligned = true;
    return Emitter(kernel_, mode);
  }

  std::string function(Emitter& e) {
    if (result_lanes_ > 1) e.set_vector_axis(kernel_.axes.back().name, kLanes);
    several_ ? body_of_several(e) : body(e);
    return fmt::format("void {}_tile({}, const {} tile, __local {}* parts) {{\n{}}}\n\n", kernel_.name,
                       parameter_list(kernel_, false), e.index_type(), accumulator_type(result_lanes_), e.text());
  }

  std::string accumulator_type(int lanes) const {
    const std::string_view type = c_type(kernel_.stages[0].accumulator);
    return lanes > 1 ? fmt::format("{}{}", type, lanes) : std::string(type);
  }

  // This work-item's share of the points of `axes`. Loops of whole rounds have one condition, so that a round's loads need not
  // wait for the one before it; what is left over follows them.
  template <class Body>
  void over_share(Emitter& e, const std::vector<int>& axes, const Body& body) const {
    std::vector<const Axis*> list;
    for (const int a : axes) list.push_back(&reduction(a));
    const std::int64_t step = std::int64_t{sharers_} * term_lanes_;
    const Expr all = terms(axes), rounds = floor_div(all, Expr(step));
    const std::string first = term_lanes_ > 1 ? fmt::format("sharer * {}", term_lanes_) : "sharer";
    const auto points = [&](const std::string& header, const std::string& term) {
      e.open(header, {});
      e.line(fmt::format("const {} term = {};", e.index_type(), term));
      if (term_lanes_ > 1) e.set_vector_axis(kernel_.reduction.back().name, kLanes);
      e.open("", declare_coordinates(e, "term", list));
      body();
      e.close();
      if (term_lanes_ > 1) e.set_vector_axis({}, 1);
      e.close();
    };
    // The hint stands in the loop's own line, since what the loop does not change is declared before that.
    if (rounds == Expr(1))
      points("", first);
    else if (!(rounds == Expr(0)))
      points(fmt::format("#pragma unroll {0}\nfor ({1} round = 0; round < {2}; ++round)", unroll_, e.index_type(),
                         e.index(rounds)),
             fmt::format("round * {} + {}", step, first));
    const Expr whole = rounds * Expr(step);
    const std::string rest = whole == Expr(0) ? first : fmt::format("{} + {}", e.index(whole), first);
    if (!(whole == all)) points(fmt::format("if ({} < {})", rest, e.index(all)), rest);
  }

  void ask_ahead(Emitter& e) const {
    const Stage& last = kernel_.stages.back();
    e.line(fmt::format("{} ahead[{}];", accumulator_type(term_lanes_), terms(last.axes).value() / (sharers_ * term_lanes_)));
    over_share(e, last.axes, [&] { e.line(fmt::format("ahead[round] = {};", e.vector_value(*ahead_))); });
  }

  void stages(Emitter& e, int count) {
    if (ahead_) ask_ahead(e);
    for (int first = 0, next = 0; first < count; first = next) {
      next = end_of_shared_loops(e, kernel_, first);
      const auto each = [&](const auto& visit) {
        for (int i = first; i < next; ++i) visit(i, kernel_.stages[static_cast<std::size_t>(i)], fmt::format("s{}", i));
      };
      const int lanes = result_lanes_ * term_lanes_;
      const bool vector = lanes > 1;
      const std::string type = accumulator_type(lanes);
      each([&](int, const Stage& s, const std::string& name) {
        e.line(fmt::format("{0} {1} = ({0})({2});", type, name, initial_text(s.combine, s.accumulator)));
        if (carries(s)) e.line(fmt::format("{0} {1}_rest = ({0})(0.0f);", type, name));
      });
      over_share(e, kernel_.stages[static_cast<std::size_t>(first)].axes, [&] {
        if (ahead_ && next == static_cast<int>(kernel_.stages.size())) e.define(*ahead_, "ahead[round]");
        each([&](int, const Stage& s, const std::string& name) { accumulate_term(e, kernel_, s, name, vector, carries(s)); });
      });
      const int parts = parts_of_result(next - first);
      each([&](int i, const Stage& s, const std::string& name) {
        e.line(
            fmt::format("parts[item] = {};", term_lanes_ > 1 ? fmt::format("{}({})", lane_function(s.combine), name) : name));
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        const std::string result = term_lanes_ > 1 ? name + "_all" : name;
        if (sums_sharers(s, parts)) {
          e.line(fmt::format("float {};", result));
          e.line(fmt::format("oclc_sharers_sums(parts, {}, {}, 1, &{});", results_ * sharers_, sharers_, result));
        } else {
          combine_sharers(e, s, parts, result);
        }
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        // What all lanes have in common is one number.
        const bool one = result_lanes_ > 1 && !e.is_vector(s.body);
        e.stage_done(i, one ? result + ".x" : result, !one);
      });
    }
  }

  // What the sharers of a result have, first in pairs until `parts` are left, then one after another.
  void combine_sharers(Emitter& e, const Stage& s, int parts, const std::string& result) const {
    const auto combined = [&](const std::string& a, const std::string& b) {
      return combine_text(s.combine, s.accumulator, a, b);
    };
    const auto part = [&](const std::string& place, const std::string& number) {
      return along_ && results_ > 1 ? fmt::format("parts[{} + {} * {}]", place, number, results_)
                                    : fmt::format("parts[{} + {}]", place, number);
    };
    if (sharers_ > parts) {
      e.line(fmt::format("for (int step = {}; step >= {}; step /= 2) {{", sharers_ / 2, parts));
      e.line(fmt::format("  if (sharer < step) parts[item] = {};", combined("parts[item]", part("item", "step"))));
      e.line("  barrier(CLK_LOCAL_MEM_FENCE);");
      e.line("}");
    }
    e.line(fmt::format("{}{} = parts[first_part];", term_lanes_ > 1 ? accumulator_type(1) + " " : "", result));
    e.line(fmt::format("for (int part = 1; part < {}; ++part) {} = {};", std::min(sharers_, parts), result,
                       combined(result, part("first_part", "part"))));
  }

  void body(Emitter& e) {
    const std::string_view index = e.index_type();
    e.line("const int item = get_local_id(0);");
    if (along_)
      e.line(fmt::format("const int result = item % {0}, sharer = item / {0}, first_part = result;", results_));
    else
      e.line(fmt::format("const int result = item / {0}, sharer = item % {0}, first_part = result * {0};", sharers_));
    e.line(fmt::format("const {} wanted = tile * {} + result;", index, results_));
    e.line(fmt::format("const {0} element = min(wanted, ({0})({1}) - 1){2};", index, e.index(vectors_),
                       result_lanes_ > 1 ? fmt::format(" * {}", kLanes) : ""));
    std::vector<const Axis*> list;
    for (const Axis& a : kernel_.axes) list.push_back(&a);
    e.open("", declare_coordinates(e, "element", list));
    stages(e, static_cast<int>(kernel_.stages.size()));
    e.open(result_lanes_ > 1 ? fmt::format("if (wanted * {} == element)", kLanes) : "if (wanted == element)", {});
    for (const Store& store : kernel_.stores) {
      if (store.row_axes.empty()) {
        e.open("if (sharer == 0)", {});
        e.store(store);
      } else {
        e.open("", {});
        over_share(e, store.row_axes, [&] { e.store(store); });
      }
      e.close();
    }
    e.close();
    e.close();
  }

  // As body(), for `each_` results of a work-item, `results_` apart: what they have in common is computed once.
  void body_of_several(Emitter& e) {
    const std::string_view index = e.index_type();
    const int count = static_cast<int>(kernel_.stages.size()), items = results_ * sharers_;
    const Stage& s = kernel_.stages.back();
    const Axis& axis = kernel_.axes.back();
    const std::string name = fmt::format("s{}", count - 1), type = accumulator_type(term_lanes_);
    e.line("const int item = get_local_id(0);");
    e.line(fmt::format("const int result = item / {0}, sharer = item % {0}, first_part = result * {0};", sharers_));
    std::set<std::string> ones;
    for (std::size_t i = 0; i + 1 < kernel_.axes.size(); ++i) {
      e.line(fmt::format("const {} {} = 0;", index, kernel_.axes[i].name));
      ones.insert(kernel_.axes[i].name);
    }
    e.open("", ones);
    stages(e, count - 1);
    const auto each = [&](const auto& visit) {
      e.open(fmt::format("#pragma unroll\nfor (int r = 0; r < {}; ++r)", each_), {});
      e.line(fmt::format("const {0} wanted = (tile * {1} + r) * {2} + result, {3} = min(wanted, ({0})({4}) - 1);", index, each_,
                         results_, axis.name, e.index(vectors_)));
      e.open("", {axis.name});
      visit();
      e.close();
      e.close();
    };
    e.line(fmt::format("{} {}[{}];", type, name, each_));
    e.line(fmt::format("for (int r = 0; r < {0}; ++r) {1}[r] = ({2})({3});", each_, name, type,
                       initial_text(s.combine, s.accumulator)));
    over_share(e, s.axes, [&] { each([&] { accumulate_term(e, kernel_, s, name + "[r]", true, false); }); });
    e.line(fmt::format("for (int r = 0; r < {}; ++r) parts[r * {} + item] = {}({}[r]);", each_, items, lane_function(s.combine),
                       name));
    e.line("barrier(CLK_LOCAL_MEM_FENCE);");
    e.line(fmt::format("float sums[{}];", each_));
    e.line(fmt::format("oclc_sharers_sums(parts, {}, {}, {}, sums);", items, sharers_, each_));
    each([&] {
      // Each of the first sharers stores one of the results.
      e.open(fmt::format("if (sharer == r && wanted == {})", axis.name), {});
      e.stage_done(count - 1, "sums[r]", false);
      for (const Store& store : kernel_.stores) e.store(store);
      e.close();
    });
    e.line("barrier(CLK_LOCAL_MEM_FENCE);");
    e.close();
  }
};

}  // namespace

std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const Target& target, std::int64_t groups) {
  if (!target.has_group_templates() || kernel.contraction) return std::nullopt;
  GroupReduction code(kernel, target, groups, 0);
  if (!code.applies()) return std::nullopt;
  return code.run();
}

std::optional<GroupTiles> generate_group_tiles(const Kernel& kernel, const Target& target, int items, const std::string& name) {
  if (kernel.contraction) return std::nullopt;
  GroupReduction code(kernel, target, 0, items);
  if (!code.applies()) return std::nullopt;
  return code.tiles(name);
}

}  // namespace oclc
