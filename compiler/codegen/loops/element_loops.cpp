#include "compiler/codegen/loops/element_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/loops/kept_values.h"
#include "compiler/codegen/loops/loop_prefetch.h"
#include "compiler/codegen/text/loop_text.h"
#include "compiler/codegen/text/reduction_text.h"
#include "compiler/ir/typical.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Terms that are added up before what rounding took is carried.
constexpr int kPartTerms = 32;
// Vectors of a row whose largest elements are found side by side: each comparison waits for the one before.
constexpr int kChains = 4;

class ElementLoops {
 public:
  ElementLoops(Emitter& e, const Kernel& kernel, const VectorAxis& vector) : e_(e), kernel_(kernel), vector_(vector) {}

  void run() {
    if (vector_.reduction) {
      kept_ = values_to_keep(kernel_);
      for (const KeptValue& k : kept_) e_.line(fmt::format("float {}[{}];", k.name, kept_floats(kernel_)));
    }
    for (int first = 0, next = 0; first < static_cast<int>(kernel_.stages.size()); first = next) {
      next = vector_.reduction ? first + 1 : end_of_shared_loops(e_, kernel_, first);
      if (vector_.reduction)
        stage_along_row(first);
      else
        stages(first, next);
    }
    if (kernel_.stores.size() > 1) in_order();
    prefetch_next_point(e_, kernel_);
    if (kernel_.stages.empty()) prefetch_vectors(e_, kernel_);
    int loop = static_cast<int>(kernel_.stages.size());
    for (const Store& store : kernel_.stores) {
      if (store.row_axes.empty())
        e_.store(store);
      else
        store_row(store, loop);
      ++loop;
    }
  }

  // Whether strip() computes what run() does, and in registers.
  bool has_strips(const Axis& axis) {
    constexpr std::size_t kMostStages = 3, kMostNodes = 40;
    const int count = static_cast<int>(kernel_.stages.size());
    if (!vector_.parallel || vector_.width == 1 || count == 0) return false;
    if (kernel_.stages.size() > kMostStages || kernel_.nodes.size() > kMostNodes) return false;
    for (int i = 0; i < count; ++i) {
      if (stage_at(i).arg_index >= 0 || !e_.depends(stage_at(i).body, axis.name)) return false;
    }
    return std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [](const Store& s) { return s.row_axes.empty(); });
  }

  void strip(const Axis& axis, const StripVectors& vectors) {
    const int count = static_cast<int>(kernel_.stages.size());
    const auto sum = [&](int i) { return name_of_sum(i) + "[u]"; };
    // Visits each vector, to which the sums of stages before `known` are known.
    const auto each = [&](int known, const auto& visit) {
      open_unrolled(e_, "u", vectors.count, 1, {axis.name});
      e_.line(fmt::format("const {} {} = {};", e_.index_type(), axis.name, vectors.begin));
      for (int i = 0; i < known; ++i) e_.stage_done(i, sum(i), true);
      visit();
      e_.close();
    };
    for (int first = 0, next = 0; first < count; first = next) {
      next = end_of_shared_loops(e_, kernel_, first);
      for (int i = first; i < next; ++i) declare_sums(stage_at(i), name_of_sum(i), vectors.count);
      const std::vector<int> carrying = carrying_stages(first, next);
      const auto each_sum = [&](const auto& visit) {
        if (carrying.empty()) return;
        open_unrolled(e_, "u", vectors.count);
        for (const int i : carrying) visit(sum(i));
        e_.close();
      };
      const std::string terms = declare_count(carrying);
      const int opened = open_loops(e_, reduction_axes(stage_at(first).axes));
      each(first, [&] {
        for (const std::string& line : rows_ahead(e_, kernel_, axis, *reduction_axes(stage_at(first).axes).back()))
          e_.line(line);
        for (int i = first; i < next; ++i)
          accumulate_term(e_, kernel_, stage_at(i), compensated(stage_at(i)) ? beside_sum(sum(i), "_part") : sum(i), true,
                          false);
      });
      add_full_parts(terms, [&] { each_sum([&](const std::string& s) { restart_part(s, true); }); });
      close_scopes(e_, opened);
      each_sum([&](const std::string& s) { add_part(s); });
    }
    each(count, [&] {
      prefetch_next_point(e_, kernel_);
      for (const Store& store : kernel_.stores) e_.store(store);
    });
  }

 private:
  const Stage& stage_at(int i) const { return kernel_.stages[static_cast<std::size_t>(i)]; }
  static std::string name_of_sum(int i) { return fmt::format("s{}", i); }

  std::vector<const Axis*> reduction_axes(const std::vector<int>& axes) const {
    std::vector<const Axis*> list;
    for (const int a : axes) list.push_back(&kernel_.reduction[static_cast<std::size_t>(a)]);
    return list;
  }

  // Long sums into one number carry what rounding takes from each addition.
  bool compensated(const Stage& stage) const { return is_sum(stage) && terms_of_lane(stage) > cost::kCarriedSum; }

  // Means of pools and sums of parts: what is added up is a few numbers, each rounded on its own.
  bool carries_each(const Stage& stage) const {
    const ScalarNode& body = kernel_.nodes[static_cast<std::size_t>(stage.body)];
    return vector_.carries_each && is_sum(stage) && body.op_name != "mul" && terms_of_lane(stage) > cost::kFewTermsOfLane &&
           !compensated(stage);
  }

  static bool is_sum(const Stage& stage) {
    return stage.combine == Stage::Combine::sum && stage.accumulator == DType::f32 && stage.arg_index < 0;
  }
  double terms_of_lane(const Stage& stage) const {
    double terms = 1;
    for (const int a : stage.axes) terms *= typical(kernel_.reduction[static_cast<std::size_t>(a)].extent);
    return terms / (vector_.reduction ? vector_.width : 1);
  }

  // Stages [first, last), which run over the same axes, in one loop nest in the present vector mode.
  void stages(int first, int last) {
    for (int i = first; i < last; ++i) declare_sum(stage_at(i), name_of_sum(i));
    const std::vector<int> carrying = carrying_stages(first, last);
    const std::string terms = declare_count(carrying);
    const int opened = open_loops(e_, reduction_axes(stage_at(first).axes));
    for (int i = first; i < last; ++i) {
      const Stage& stage = stage_at(i);
      if (stage.arg_index >= 0)
        compare_term(e_, stage, name_of_sum(i));
      else
        accumulate_term(e_, kernel_, stage, name_of_sum(i) + (compensated(stage) ? "_part" : ""), e_.is_vector(stage.body),
                        carries_each(stage));
    }
    add_full_parts(terms, [&] {
      for (const int i : carrying) restart_part(name_of_sum(i), e_.is_vector(stage_at(i).body));
    });
    close_scopes(e_, opened);
    for (const int i : carrying) add_part(name_of_sum(i));
    for (int i = first; i < last; ++i)
      e_.stage_done(i, name_of_sum(i) + (stage_at(i).arg_index >= 0 ? "_at" : ""), e_.is_vector(stage_at(i).body));
  }

  std::vector<int> carrying_stages(int first, int last) const {
    std::vector<int> list;
    for (int i = first; i < last; ++i) {
      if (compensated(stage_at(i))) list.push_back(i);
    }
    return list;
  }

  // One count of terms for all sums of a loop nest; its name, empty where none carries.
  std::string declare_count(const std::vector<int>& carrying) {
    if (carrying.empty()) return "";
    const std::string terms = fmt::format("terms{}", carrying.front());
    e_.line(fmt::format("int {} = 0;", terms));
    return terms;
  }

  template <class AddParts>
  void add_full_parts(const std::string& terms, const AddParts& add_parts) {
    if (terms.empty()) return;
    e_.open(fmt::format("if (++{} == {})", terms, kPartTerms), {});
    add_parts();
    e_.line(fmt::format("{} = 0;", terms));
    e_.close();
  }

  void restart_part(const std::string& sum, bool vector) {
    add_part(sum);
    e_.line(fmt::format("{} = ({})(0.0f);", beside_sum(sum, "_part"), carry_type(vector)));
  }

  void declare_sum(const Stage& stage, const std::string& name) {
    const DType dtype = stage.accumulator;
    const std::string initial = initial_text(stage.combine, dtype);
    const bool vector = e_.is_vector(stage.body);
    const std::string type = vector ? e_.vector_type(dtype) : dtype == DType::boolean ? "int" : std::string(c_type(dtype));
    e_.line(vector ? fmt::format("{0} {1} = ({0})({2});", type, name, initial)
                   : fmt::format("{} {} = {};", type, name, initial));
    if (stage.arg_index >= 0) e_.line(fmt::format("long {}_at = 0;", name));
    if (compensated(stage)) declare_carry(name, type);
    if (carries_each(stage)) e_.line(fmt::format("{0} {1}_rest = ({0})(0.0f);", type, name));
  }

  // The sums of a strip, an array of `count` vectors.
  void declare_sums(const Stage& stage, const std::string& name, int count) {
    const bool carries = compensated(stage);
    const std::string type = e_.vector_type(stage.accumulator);
    e_.line(carries ? fmt::format("{0} {1}[{2}], {1}_rest[{2}], {1}_part[{2}];", type, name, count)
                    : fmt::format("{} {}[{}];", type, name, count));
    open_unrolled(e_, "u", count);
    e_.line(fmt::format("{}[u] = ({})({});", name, type, initial_text(stage.combine, stage.accumulator)));
    if (carries) e_.line(fmt::format("{0}_rest[u] = {0}_part[u] = ({1})(0.0f);", name, type));
    e_.close();
  }

  std::string carry_type(bool vector) const { return vector ? e_.vector_type(DType::f32) : "float"; }

  // Of a sum to which the sums of kPartTerms terms are added with what rounding took from those before: a step of a plain sum
  // waits for one addition, one that carries for four.
  void declare_carry(const std::string& name, const std::string& type) {
    e_.line(fmt::format("{0} {1}_rest = ({0})(0.0f), {1}_part = ({0})(0.0f);", type, name));
  }

  void add_part(const std::string& sum) { e_.line(carry_text(sum, beside_sum(sum, "_part"))); }

  // Along a row, whose vectors and what they leave are counted apart.
  void declare_counted_carry(const std::string& name, const std::string& type) {
    declare_carry(name, type);
    e_.line(fmt::format("int {}_terms = 0;", name));
  }

  void accumulate(const Stage& stage, const std::string& name, bool vector, bool carry) {
    accumulate_term(e_, kernel_, stage, carry ? name + "_part" : name, vector, carries_each(stage));
    if (carry) add_full_parts(name + "_terms", [&] { restart_part(name, vector); });
  }

  // A stage whose innermost axis runs in vectors: lanes are combined at the end.
  void stage_along_row(int number) {
    const Stage& stage = stage_at(number);
    const Axis& inner = kernel_.reduction.back();
    const int width = vector_width_for(inner.extent, vector_.width);
    const std::string name = name_of_sum(number), lanes = name + "_lanes";
    const DType dtype = stage.accumulator;
    const std::string initial = initial_text(stage.combine, dtype);
    const bool carry = compensated(stage);
    e_.line(fmt::format("{} {} = {};", c_type(dtype), name, initial));
    if (width > 1) e_.line(fmt::format("{0}{1} {2} = ({0}{1})({3});", c_type(dtype), width, lanes, initial));
    if (carry) declare_counted_carry(name, "float");
    if (carry && width > 1) declare_counted_carry(lanes, fmt::format("float{}", width));
    // The loops over the row stand in a block of their own, so that every stage can name its counter alike.
    e_.open("", {});
    const auto term = [&](int w, const std::string& of_lanes) {
      read_kept(number, w);
      if (w > 1 && w < width)
        accumulate_narrow(stage, carry ? name + "_part" : name);
      else
        accumulate(stage, w > 1 ? of_lanes : name, w > 1, carry);
      keep(number, w);
      if (w > 1 && (number == 1 || is_short_and_read_once())) prefetch_next_row(e_, kernel_);
    };
    const auto body = [&](int w) { term(w, lanes); };
    if (has_chains(stage, width))
      literal_vector_loops(e_, inner, width, body, chains(stage, lanes, width, term));
    else
      over_row(stage.axes, body);
    e_.close();
    if (carry) add_part(name);
    if (carry && width > 1) add_part(lanes);
    if (width > 1) {
      const std::string sum = fmt::format("{}({})", lane_function(stage.combine), lanes);
      e_.line(fmt::format("{0} = {1};", name, combine_text(stage.combine, dtype, name, sum)));
    }
    e_.stage_done(number, name, false);
  }

  // What whole vectors leave of a row.
  void accumulate_narrow(const Stage& stage, const std::string& sum) {
    const std::string lanes = fmt::format("{}({})", lane_function(stage.combine), e_.vector_value(stage.body));
    e_.line(fmt::format("{} = {};", sum, combine_text(stage.combine, stage.accumulator, sum, lanes)));
  }

  bool has_chains(const Stage& stage, int width) const {
    const Expr& extent = kernel_.reduction.back().extent;
    const bool is_extreme = stage.combine == Stage::Combine::max || stage.combine == Stage::Combine::min;
    return is_extreme && stage.axes.size() == 1 && width > 1 && extent.is_constant() && extent.value() >= kChains * width;
  }

  // Steps of kChains vectors, each with lanes of its own, which end up in `lanes`. Returns where in the row they end.
  template <class Term>
  std::int64_t chains(const Stage& stage, const std::string& lanes, int width, const Term& term) {
    const Axis& inner = kernel_.reduction.back();
    const auto chain = [&](int i) { return i == 0 ? lanes : fmt::format("{}{}", lanes, i); };
    for (int i = 1; i < kChains; ++i) e_.line(fmt::format("{}{} {} = {};", c_type(stage.accumulator), width, chain(i), lanes));
    const std::int64_t step = kChains * width, end = inner.extent.value() / step * step;
    e_.set_vector_axis(inner.name, width);
    e_.open(fmt::format("for ({0} {1}_from = 0; {1}_from < {2}; {1}_from += {3})", e_.index_type(), lanes, end, step), {});
    for (int i = 0; i < kChains; ++i) {
      e_.open("", {inner.name});
      e_.line(fmt::format("const {} {} = {}_from + {};", e_.index_type(), inner.name, lanes, i * width));
      term(width, chain(i));
      e_.close();
    }
    e_.close();
    for (int i = 1; i < kChains; ++i)
      e_.line(fmt::format("{} = {};", lanes, combine_text(stage.combine, stage.accumulator, lanes, chain(i))));
    return end;
  }

  void store_row(const Store& store, int number) {
    e_.open("", {});
    if (vector_.reduction) {
      over_row(store.row_axes, [&](int w) {
        read_kept(number, w);
        e_.store(store);
        keep(number, w);
        if (number == 1 && w > 1) prefetch_next_row(e_, kernel_);
      });
    } else {
      const int opened = open_loops(e_, reduction_axes(store.row_axes));
      e_.store(store);
      close_scopes(e_, opened);
    }
    e_.close();
  }

  // What several stores share in the order in which it was built: neighbouring sums advance together, and what they read is
  // used up soon.
  void in_order() {
    std::vector<bool> wanted(kernel_.nodes.size(), false);
    for (const Store& store : kernel_.stores) {
      if (!store.row_axes.empty()) continue;
      wanted[static_cast<std::size_t>(store.value)] = true;
    }
    for (std::size_t i = wanted.size(); i-- > 0;) {
      if (!wanted[i]) continue;
      for (const NodeId a : kernel_.nodes[i].args) wanted[static_cast<std::size_t>(a)] = true;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] && kernel_.nodes[i].op_name == "fma") e_.value(static_cast<NodeId>(i));
    }
  }

  // In the body of loop `number` of a row, for a vector of `width` or an element: what an earlier loop kept, and what it keeps.
  void read_kept(int number, int width) {
    const std::string& at = kernel_.reduction.back().name;
    for (const KeptValue& k : kept_) {
      if (std::find(k.others.begin(), k.others.end(), number) == k.others.end()) continue;
      e_.define(k.node, width > 1 ? fmt::format("vload{}(0, {} + {})", width, k.name, at) : fmt::format("{}[{}]", k.name, at));
    }
  }
  void keep(int number, int width) {
    const std::string& at = kernel_.reduction.back().name;
    for (const KeptValue& k : kept_) {
      if (k.first != number) continue;
      const std::string v = e_.value(k.node);
      e_.line(width > 1 ? fmt::format("oclc_store({}, {} + {});", v, k.name, at) : fmt::format("{}[{}] = {};", k.name, at, v));
    }
  }

  bool is_short_and_read_once() const {
    return kernel_.stages.size() == 1 && typical(kernel_.reduction.back().extent) < cost::kLongRow &&
           std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [](const Store& s) { return s.row_axes.empty(); });
  }

  // Loops over reduction axes of which the last is the innermost, in vectors.
  void over_row(const std::vector<int>& axes, const LoopBody& body) {
    std::vector<const Axis*> outer = reduction_axes(axes);
    outer.pop_back();
    const Axis& inner = kernel_.reduction.back();
    const int opened = open_loops(e_, outer), width = vector_width_for(inner.extent, vector_.width);
    if (inner.extent.is_constant() && width > 1)
      literal_vector_loops(e_, inner, width, body);
    else
      vector_loops(e_, {inner, "0", e_.index(inner.extent), true}, width, body);
    close_scopes(e_, opened);
  }

  Emitter& e_;
  const Kernel& kernel_;
  const VectorAxis& vector_;
  std::vector<KeptValue> kept_;
};

}  // namespace

void emit_element(Emitter& e, const Kernel& kernel, const VectorAxis& vector) { ElementLoops(e, kernel, vector).run(); }

bool has_strips(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis) {
  return ElementLoops(e, kernel, vector).has_strips(axis);
}

void emit_strip(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& axis, const StripVectors& vectors) {
  ElementLoops(e, kernel, vector).strip(axis, vectors);
}

}  // namespace oclc
