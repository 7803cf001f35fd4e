#include "compiler/codegen/group_reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/collapse.h"
#include "compiler/codegen/index_type.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/loop_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/scope.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

// Fewer terms than this stay with one work-item.
constexpr std::int64_t kFewTerms = 64;
// Neighbouring results that a group may hold: as many floats as memory moves at once.
constexpr int kMostResults = 8;
// Work-items that share a result whose terms lie side by side, where results are many: they read a line of memory at once, and
// each adds up all their parts.
constexpr int kSharers = 32;
// Fewer terms a work-item are not worth more work-items.
constexpr std::int64_t kFewTermsOfItem = 4;
// Work-items that keep a compute unit busy.
constexpr std::int64_t kBusyItems = 1024;

class GroupReduction {
 public:
  GroupReduction(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {
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
    return longest >= kFewTerms;
  }

  GeneratedKernel run() {
    choose_shape();
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_);
    Emitter e(kernel_, mode);
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    g.groups = {ceil_div(all_, Expr(results_))};
    g.local = {static_cast<std::uint32_t>(results_ * sharers_)};
    g.schedule = fmt::format("{} results a group, {} work-items each", results_, sharers_);
    g.head = kernel_head(kernel_, g);
    body(e);
    const std::string_view index = e.index_type(), type = c_type(kernel_.stages[0].accumulator);
    g.source = fmt::format("void {}_tile({}, const {} tile, __local {}* parts) {{\n{}}}\n\n", g.name,
                           parameter_list(kernel_, false), index, type, e.text());
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n  __local {3} parts[{0}];\n"
        "  {1}_tile({4}, get_group_id(0), parts);\n}}\n",
        g.local[0], g.name, parameter_list(kernel_, true), type, argument_list(kernel_));
    return g;
  }

 private:
  const Axis& reduction(int i) const { return kernel_.reduction[static_cast<std::size_t>(i)]; }

  Expr terms(const std::vector<int>& axes) const {
    Expr n(1);
    for (const int a : axes) n *= reduction(a).extent;
    return n;
  }

  std::int64_t likely_terms(const Stage& s) const { return typical_terms(terms(s.axes)); }

  // Results of a group lie side by side where loads run along them and groups are many; the rest of the group shares terms.
  // Otherwise terms lie side by side, and so do those who share them.
  void choose_shape() {
    const std::string& last = kernel_.axes.back().name;
    along_ = std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && n.index.coefficient(last) == Expr(1);
    });
    const std::int64_t all = typical_extent(all_), units = std::max(1, target_.compute_units);
    if (along_) {
      while (results_ < kMostResults && results_ * 2 <= all / units) results_ *= 2;
      sharers_ = std::max(1, target_.work_group / results_);
      while ((sharers_ & (sharers_ - 1)) != 0) --sharers_;
      return;
    }
    std::int64_t longest = 0;
    for (const Stage& s : kernel_.stages) longest = std::max(longest, likely_terms(s));
    sharers_ = 1;
    while (sharers_ * 2 <= std::min(kSharers, target_.work_group)) sharers_ *= 2;
    while (sharers_ * 2 <= target_.work_group && all * sharers_ < units * kBusyItems &&
           longest >= 2 * kFewTermsOfItem * sharers_)
      sharers_ *= 2;
    while (results_ * 2 * sharers_ <= target_.work_group && results_ * 2 <= all / units) results_ *= 2;
  }

  // Opens a loop over this work-item's share of the points of `axes`; two scopes.
  void open_share(Emitter& e, const std::vector<int>& axes) const {
    e.open(fmt::format("for ({} term = sharer; term < {}; term += {})", e.index_type(), e.index(terms(axes)), sharers_), {});
    std::vector<const Axis*> list;
    for (const int a : axes) list.push_back(&reduction(a));
    e.open("", declare_coordinates(e, "term", list));
  }

  bool carries(const Stage& s) const {
    return s.combine == Stage::Combine::sum && s.accumulator == DType::f32 &&
           static_cast<double>(typical_extent(terms(s.axes)) / sharers_) > kLongSum;
  }

  void stages(Emitter& e) {
    for (int first = 0, next = 0; first < static_cast<int>(kernel_.stages.size()); first = next) {
      next = end_of_shared_loops(e, kernel_, first);
      const auto each = [&](const auto& visit) {
        for (int i = first; i < next; ++i) visit(i, kernel_.stages[static_cast<std::size_t>(i)], fmt::format("s{}", i));
      };
      each([&](int, const Stage& s, const std::string& name) {
        e.line(fmt::format("{} {} = {};", c_type(s.accumulator), name, initial_text(s.combine, s.accumulator)));
        if (carries(s)) e.line(fmt::format("float {}_rest = 0.0f;", name));
      });
      open_share(e, kernel_.stages[static_cast<std::size_t>(first)].axes);
      each([&](int, const Stage& s, const std::string& name) { accumulate_term(e, kernel_, s, name, false, carries(s)); });
      e.close();
      e.close();
      each([&](int i, const Stage& s, const std::string& name) {
        const int stride = along_ ? results_ : 1;  // of the parts of a result
        const auto combined = [&](const std::string& a, const std::string& b) {
          return combine_text(s.combine, s.accumulator, a, b);
        };
        e.line(fmt::format("parts[item] = {};", name));
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        if (sharers_ > kSharers) {
          e.line(fmt::format("for (int step = {}; step >= {}; step /= 2) {{", sharers_ / 2, kSharers));
          e.line(fmt::format(
              "  if (sharer < step) parts[item] = {};",
              combined("parts[item]", stride == 1 ? "parts[item + step]" : fmt::format("parts[item + step * {}]", stride))));
          e.line("  barrier(CLK_LOCAL_MEM_FENCE);");
          e.line("}");
        }
        e.line(fmt::format("{} = parts[first_part];", name));
        e.line(fmt::format(
            "for (int part = 1; part < {}; ++part) {} = {};", std::min(sharers_, kSharers), name,
            combined(name, stride == 1 ? "parts[first_part + part]" : fmt::format("parts[first_part + part * {}]", stride))));
        e.line("barrier(CLK_LOCAL_MEM_FENCE);");
        e.stage_done(i, name, false);
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
    e.line(fmt::format("const {0} element = min(wanted, ({0})({1}) - 1);", index, e.index(all_)));
    std::vector<const Axis*> list;
    for (const Axis& a : kernel_.axes) list.push_back(&a);
    e.open("", declare_coordinates(e, "element", list));
    stages(e);
    e.open("if (wanted == element)", {});
    for (const Store& store : kernel_.stores) {
      if (store.row_axes.empty()) {
        e.open("if (sharer == 0)", {});
        e.store(store);
      } else {
        e.open("", {});
        open_share(e, store.row_axes);
        e.store(store);
        e.close();
        e.close();
      }
      e.close();
    }
    e.close();
    e.close();
  }

  Kernel kernel_;
  const Target& target_;
  Expr all_ = 1;
  int results_ = 1, sharers_ = 1;
  bool along_ = false;  // loads run along the results
};

}  // namespace

std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const Target& target) {
  if (target.device_class != DeviceClass::gpu || target.loop_iterations != Target::kNoLimit || kernel.contraction)
    return std::nullopt;
  GroupReduction code(kernel, target);
  if (!code.applies()) return std::nullopt;
  return code.run();
}

}  // namespace oclc
