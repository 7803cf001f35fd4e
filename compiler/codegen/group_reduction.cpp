#include "compiler/codegen/group_reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/axis_dependencies.h"
#include "compiler/codegen/collapse.h"
#include "compiler/codegen/index_type.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/loop_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/scope.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Fewer terms than this stay with one work-item; the same in a group that computes all results.
constexpr std::int64_t kFewTerms = 64, kFewTermsOfGroup = 16;
// Results of a launch are few where there are no more of them than this part of the work-items that a group for each compute
// unit has.
constexpr std::int64_t kIdleShare = 4;
// Results of unknown number: a few of them in a group do not keep others waiting, and many groups of one do.
constexpr std::int64_t kUnknownResults = 4096;
// Neighbouring results that a group may hold: as many floats as memory moves at once.
constexpr int kMostResults = 8;
// Work-items that share a result whose terms lie side by side, where results are many: they read a line of memory at once, and
// each adds up all their parts.
constexpr int kSharers = 32;
// Work-items that share a result at least, in a group that computes all results.
constexpr int kFewestSharers = 2;
// Fewer terms a work-item are not worth more work-items.
constexpr std::int64_t kFewTermsOfItem = 4;
// Work-items that keep a compute unit busy.
constexpr std::int64_t kBusyItems = 1024;
// Floats of a vector; vectors that neighbours in a group read at least, a piece of a line of memory, and at most.
constexpr int kLanes = 4, kFewestVectors = 2, kMostVectors = 4;
// Parts that each work-item adds up by itself, where it has added up vectors; none where sums are many, whose parts would fill
// its registers.
constexpr int kVectorParts = 8, kManySums = 4;
// Terms of the last of several sums that are asked for before the first sum, at most.
constexpr std::int64_t kMostAhead = 6;
// Terms that are asked for before the first is used, and what they may load together: more finds no registers.
constexpr int kUnroll = 8, kMostLoads = 16;
// Results of a work-item, at most, where as many groups run as there are: their terms are asked for together.
constexpr int kMostEach = 4;

class GroupReduction {
 public:
  // `groups` not 0: a part of a launch of so many groups. `items` not 0: of the one group that computes all results.
  GroupReduction(const Kernel& kernel, const Target& target, std::int64_t groups, int items)
      : kernel_(kernel), target_(target), resident_groups_(groups), items_(items) {
    narrow_indices(kernel_);
    collapse_axes(kernel_);
    if (kernel_.axes.empty()) kernel_.axes.push_back({"one", Expr(1), Expr(0)});
    for (const Axis& a : kernel_.axes) all_ *= a.extent;
  }

  bool applies() const {
    if (kernel_.stages.empty()) return false;
    const DType dtype = kernel_.stages[0].accumulator;
    if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) return false;
    std::int64_t longest = 0;
    for (const Stage& s : kernel_.stages) {
      if (s.accumulator != dtype || s.arg_index >= 0) return false;
      longest = std::max(longest, likely_terms(s));
    }
    return longest >= (items_ > 0 || leaves_idle() ? kFewTermsOfGroup : kFewTerms);
  }

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
    if (resident_groups_ > 0) {
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
    choose_lanes();
    items_ > 0 ? choose_shape_of_group() : choose_shape();
    unroll_ = std::clamp(kMostLoads / std::max(loads_of_term(kernel_), 1), 1, kUnroll);
    if (resident_groups_ > 0) {
      while (results_ * sharers_ < target_.work_group) results_ *= 2;
    } else {
      choose_ahead();
    }
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_, resident_groups_ > 0);
    mode.aligned = true;
    return Emitter(kernel_, mode);
  }

  std::string function(Emitter& e) {
    if (result_lanes_ > 1) e.set_vector_axis(kernel_.axes.back().name, kLanes);
    several_ ? body_of_several(e) : body(e);
    return fmt::format("void {}_tile({}, const {} tile, __local {}* parts) {{\n{}}}\n\n", kernel_.name,
                       parameter_list(kernel_, false), e.index_type(), accumulator_type(result_lanes_), e.text());
  }

  const Axis& reduction(int i) const { return kernel_.reduction[static_cast<std::size_t>(i)]; }

  Expr terms(const std::vector<int>& axes) const {
    Expr n(1);
    for (const int a : axes) n *= reduction(a).extent;
    return n;
  }

  // A launch of so few results that a work-item each leaves most of the device idle, waiting for one term after another.
  bool leaves_idle() const {
    return resident_groups_ == 0 && all_.is_constant() &&
           all_.value() <= std::int64_t{target_.work_group} * std::max(1, target_.compute_units) / kIdleShare;
  }

  std::int64_t likely_terms(const Stage& s) const { return typical_terms(terms(s.axes)); }

  std::string accumulator_type(int lanes) const {
    const std::string_view type = c_type(kernel_.stages[0].accumulator);
    return lanes > 1 ? fmt::format("{}{}", type, lanes) : std::string(type);
  }

  bool loads_along(const std::string& axis) const {
    return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis) == Expr(1);
    });
  }

  // Whole vectors of neighbours along an axis, in the sums and in what is stored.
  bool fills_vectors(const Axis& axis) const {
    return floor_mod(axis.extent, Expr(kLanes)) == Expr(0) && loads_along(axis.name) &&
           can_vectorize(kernel_, axis.name, kLanes, true) &&
           std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const Store& s) { return s.index.coefficient(axis.name).has_value(); });
  }

  // A work-item computes neighbouring results, or adds up neighbouring terms, as a vector.
  void choose_lanes() {
    along_ = sums_along(kernel_, kernel_.axes.back().name);
    vectors_ = all_;
    if (kernel_.stages[0].accumulator != DType::f32) return;
    if (along_) {
      if (!fills_vectors(kernel_.axes.back())) return;
      result_lanes_ = kLanes;
      vectors_ = floor_div(all_, Expr(kLanes));
      return;
    }
    const int last = static_cast<int>(kernel_.reduction.size()) - 1;
    const auto over_last = [&](const std::vector<int>& axes) { return !axes.empty() && axes.back() == last; };
    if (std::all_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& s) { return over_last(s.axes); }) &&
        std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                    [&](const Store& s) { return s.row_axes.empty() || over_last(s.row_axes); }) &&
        fills_vectors(kernel_.reduction.back()))
      term_lanes_ = kLanes;
  }

  // Results of a group lie side by side where loads run along them and groups are many; the rest of the group shares terms.
  // Otherwise terms lie side by side, and so do those who share them.
  void choose_shape() {
    const std::int64_t all = vectors_.is_constant() ? vectors_.value() : std::max(typical_extent(vectors_), kUnknownResults),
                       units = std::max(1, target_.compute_units);
    if (along_) {
      if (result_lanes_ > 1) results_ = kFewestVectors;
      while (results_ < (result_lanes_ > 1 ? kMostVectors : kMostResults) && results_ * 2 <= all / units) results_ *= 2;
      sharers_ = std::max(1, target_.work_group / results_);
      while ((sharers_ & (sharers_ - 1)) != 0) --sharers_;
      return;
    }
    std::int64_t longest = 0;
    for (const Stage& s : kernel_.stages) longest = std::max(longest, likely_terms(s));
    sharers_ = 1;
    while (sharers_ * 2 <= std::min(kSharers, target_.work_group) && longest > sharers_ * term_lanes_) sharers_ *= 2;
    // Work-items that hold weights ahead take more registers each.
    const std::int64_t busy = load_of_weights() ? kBusyItems / 2 : kBusyItems;
    while (sharers_ * 2 <= target_.work_group && all * sharers_ < units * busy && longest >= 2 * kFewTermsOfItem * sharers_)
      sharers_ *= 2;
    while (results_ * 2 * sharers_ <= target_.work_group && results_ * 2 <= all / units) results_ *= 2;
  }

  // One group computes all results: as many at once as leave each some work-items.
  void choose_shape_of_group() {
    const std::int64_t fewest = along_ ? kFewestSharers : kVectorParts,
                       all = vectors_.is_constant() ? vectors_.value() : kUnknownResults;
    while (results_ < all && results_ * 2 * fewest <= items_) results_ *= 2;
    sharers_ = items_ / results_;
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

  // The load for the last of several sums that each result makes of its own, a weight: asked for before the first sum, memory
  // sends it while the others are added up.
  std::optional<NodeId> load_of_weights() const {
    const Stage& last = kernel_.stages.back();
    if (items_ > 0 || kernel_.stages.size() < 2 || result_lanes_ > 1 || last.accumulator != DType::f32) return std::nullopt;
    Kernel part = kernel_;
    keep_needed(part, {last.body});
    std::optional<NodeId> found;
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      const ScalarNode& n = part.nodes[i];
      if (n.kind != ScalarNode::Kind::load || !n.guard.empty() || reads_values(n.index)) continue;
      const auto runs_along = [&](const Axis& a) { return n.index.uses(a.name); };
      if (std::none_of(kernel_.axes.begin(), kernel_.axes.end(), runs_along) || !runs_along(reduction(last.axes.back())))
        continue;
      if (found) return std::nullopt;
      found = static_cast<NodeId>(i);
    }
    return found;
  }

  // Nothing where a work-item has many terms of it or an unknown number: they lie in registers, and loops are unrolled.
  void choose_ahead() {
    const Expr step(std::int64_t{sharers_} * term_lanes_), all = terms(kernel_.stages.back().axes),
                                                           rounds = floor_div(all, step);
    ahead_ = load_of_weights();
    if (ahead_ && rounds.is_constant() && rounds.value() > 1 && rounds.value() <= kMostAhead && rounds * step == all)
      unroll_ = std::max(unroll_, static_cast<int>(rounds.value()));
    else
      ahead_.reset();
  }

  void ask_ahead(Emitter& e) const {
    const Stage& last = kernel_.stages.back();
    e.line(fmt::format("{} ahead[{}];", accumulator_type(term_lanes_), terms(last.axes).value() / (sharers_ * term_lanes_)));
    over_share(e, last.axes, [&] { e.line(fmt::format("ahead[round] = {};", e.vector_value(*ahead_))); });
  }

  // Parts that each work-item adds up, of `sums` that share their loops.
  int parts_of_result(int sums) const {
    return result_lanes_ * term_lanes_ == 1 ? kSharers : sums >= kManySums ? 1 : kVectorParts;
  }

  // Whether a function adds up what sharers have, in the same order.
  bool sums_sharers(const Stage& s, int parts) const {
    return resident_groups_ > 0 && s.combine == Stage::Combine::sum && s.accumulator == DType::f32 && term_lanes_ > 1 &&
           parts == kVectorParts && sharers_ >= kVectorParts;
  }

  bool carries(const Stage& s) const {
    return s.combine == Stage::Combine::sum && s.accumulator == DType::f32 &&
           static_cast<double>(typical_extent(terms(s.axes)) / (sharers_ * term_lanes_)) > kLongSum;
  }

  // The results of the last stage that a work-item takes part in, so that a tile is left for each group and no more; 1 where
  // what comes before depends on them.
  void choose_each(const Emitter& e) {
    if (resident_groups_ == 0 || along_ || !vectors_.is_constant()) return;
    const Stage& last = kernel_.stages.back();
    const auto is_one = [](const Axis& a) { return a.extent == Expr(1); };
    if (std::any_of(kernel_.axes.begin(), kernel_.axes.end() - 1, [&](const Axis& a) { return !is_one(a); }) || carries(last) ||
        std::any_of(kernel_.stages.begin(), kernel_.stages.end() - 1,
                    [&](const Stage& s) { return e.depends(s.body, kernel_.axes.back().name); }) ||
        (kernel_.stages.size() > 1 && !e.depends(last.body, kernel_.axes.back().name)) ||
        std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [](const Store& s) { return !s.row_axes.empty(); }) ||
        !sums_sharers(last, parts_of_result(1)))
      return;
    several_ = true;
    const std::int64_t tiles = (vectors_.value() + results_ - 1) / results_;
    each_ = static_cast<int>(
        std::clamp<std::int64_t>((tiles + resident_groups_ - 1) / resident_groups_, 1, std::min(kMostEach, sharers_)));
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
      each([&](int i, const Stage& s, const std::string& name) {
        const int stride = along_ ? results_ : 1;  // of the parts of a result
        const auto combined = [&](const std::string& a, const std::string& b) {
          return combine_text(s.combine, s.accumulator, a, b);
        };
        const int parts = parts_of_result(next - first);
        e.line(
            fmt::format("parts[item] = {};", term_lanes_ > 1 ? fmt::format("{}({})", lane_function(s.combine), name) : name));
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        if (sums_sharers(s, parts)) {
          e.line(fmt::format("float {}_all;", name));
          e.line(fmt::format("oclc_sharers_sums(parts, {}, {}, 1, &{}_all);", results_ * sharers_, sharers_, name));
          e.line("barrier(CLK_LOCAL_MEM_FENCE);");
          e.stage_done(i, name + "_all", true);
          return;
        }
        if (sharers_ > parts) {
          e.line(fmt::format("for (int step = {}; step >= {}; step /= 2) {{", sharers_ / 2, parts));
          e.line(fmt::format(
              "  if (sharer < step) parts[item] = {};",
              combined("parts[item]", stride == 1 ? "parts[item + step]" : fmt::format("parts[item + step * {}]", stride))));
          e.line("  barrier(CLK_LOCAL_MEM_FENCE);");
          e.line("}");
        }
        const std::string result = term_lanes_ > 1 ? name + "_all" : name;
        e.line(fmt::format("{}{} = parts[first_part];", term_lanes_ > 1 ? accumulator_type(1) + " " : "", result));
        e.line(fmt::format(
            "for (int part = 1; part < {}; ++part) {} = {};", std::min(sharers_, parts), result,
            combined(result, stride == 1 ? "parts[first_part + part]" : fmt::format("parts[first_part + part * {}]", stride))));
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        // What all lanes have in common is one number.
        const bool one = result_lanes_ > 1 && !e.is_vector(s.body);
        e.stage_done(i, one ? result + ".x" : result, !one);
      });
    }
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

  Kernel kernel_;
  const Target& target_;
  const std::int64_t resident_groups_;  // 0: a launch of its own
  const int items_;
  Expr all_ = 1, vectors_ = 1;  // results; vectors of them
  int results_ = 1, sharers_ = 1;
  int result_lanes_ = 1, term_lanes_ = 1;
  int unroll_ = 1;
  std::optional<NodeId> ahead_;
  bool several_ = false;  // a work-item takes part in `each_` results, one after another in a tile
  int each_ = 1;
  bool along_ = false;  // loads run along the results
};

}  // namespace

std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const Target& target, std::int64_t groups) {
  if (target.device_class != DeviceClass::gpu || target.loop_iterations != Target::kNoLimit || kernel.contraction)
    return std::nullopt;
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
