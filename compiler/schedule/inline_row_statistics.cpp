#include "compiler/schedule/inline_row_statistics.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/merged_kernel.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Operands of sums joined; bytes of arguments that every device takes, of a pointer with its offset and of a symbol.
constexpr std::size_t kMostOperands = 16, kArgumentBytesOfKernel = 1024, kOperandBytes = 16, kDimensionBytes = 8;

double bytes_of(const Kernel& kernel) { return static_cast<double>(typical_extent(kernel.bytes)); }

class Joiner {
 public:
  Joiner(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target), uses_(schedule.uses()) {}

  void rows(std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].is_kernel()) continue;
      const Kernel& row = at(steps[i]);
      if (!is_row(row)) continue;
      const int buffer = row.operands[static_cast<std::size_t>(row.stores[0].operand)].buffer;
      if (!is_private(buffer)) continue;
      const auto reader = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, steps.end(), [&](const Step& step) {
        return !step.is_kernel() || buffers_of(at(step), false).count(buffer) != 0;
      });
      if (reader == steps.end() || !reader->is_kernel() || !can_pass(row, schedule_, &steps[i] + 1, &*reader)) continue;
      auto joined = joined_rows(row, at(*reader), buffer);
      if (!joined) continue;
      at(*reader) = std::move(*joined);
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  void copies(std::vector<Step>& steps) {
    std::vector<Step> last;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!is_light(steps[i]) || !is_fused_horizontally(at(steps[i])) || !read_elsewhere(steps, i)) continue;
      if (buffer_of(at(steps[i]), at(steps[i]).stores[0]).kind == BufferKind::output) last.push_back(steps[i]);
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    steps.insert(steps.end(), last.begin(), last.end());
  }

  void pointwise(std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!is_light(steps[i])) continue;
      std::size_t passed = i;  // it can pass the steps from there on
      for (std::size_t k = i; k-- > 0 && steps[k].is_kernel();) {
        if (!is_light(steps[k])) continue;
        if (!can_pass(at(steps[i]), schedule_, &steps[k], &steps[passed])) break;
        passed = k;
        if (!one_space(at(steps[k]), at(steps[i]))) continue;
        fuse_pointwise(at(steps[k]), at(steps[i]));
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i--));
        break;
      }
    }
  }

 private:
  Kernel& at(const Step& step) { return schedule_.kernel(step); }

  // Memory that one kernel writes and one other reads.
  bool is_private(int buffer) const {
    const Buffer& b = schedule_.buffers[static_cast<std::size_t>(buffer)];
    return b.kind == BufferKind::arena && b.dtype == DType::f32 && uses_.at(buffer) == 2;
  }

  static bool sums_floats(const Kernel& kernel) {
    return !kernel.contraction && kernel.reduction.size() == 1 && !kernel.stages.empty() &&
           std::all_of(kernel.stages.begin(), kernel.stages.end(), [](const Stage& stage) {
             return stage.axes.size() == 1 && stage.arg_index < 0 && stage.accumulator == DType::f32;
           });
  }

  static bool is_row(const Kernel& kernel) {
    return sums_floats(kernel) && kernel.stores.size() == 1 && kernel.stores[0].row_axes.size() == 1 &&
           kernel.stores[0].guard.empty() && kernel.stores[0].index.coefficient(kernel.reduction[0].name).has_value();
  }

  // What stands for the row's axes where the reduction reads the row at `index`.
  static std::optional<Substitution> matched(const Kernel& row, const Kernel& reduction, const Expr& index) {
    const Axis &mine = row.reduction[0], &its = reduction.reduction[0];
    if (!(mine.extent == its.extent)) return std::nullopt;
    Substitution by{{mine.name, its.var}};
    const Expr& stored = row.stores[0].index;
    for (const Axis& axis : row.axes) {
      if (axis.extent == Expr(1)) continue;
      const auto step = stored.coefficient(axis.name);
      const auto other = std::find_if(reduction.axes.begin(), reduction.axes.end(), [&](const Axis& candidate) {
        return step && candidate.extent == axis.extent && index.coefficient(candidate.name) == step;
      });
      if (other == reduction.axes.end()) return std::nullopt;
      by.emplace(axis.name, other->var);
    }
    if (!(stored.substitute(by) == index)) return std::nullopt;
    return by;
  }

  // Where a kernel reads what another wrote: what stands for that one's axes, the same in all loads.
  struct Reads {
    Substitution by;
    std::vector<NodeId> loads;
  };
  // `match` tells it from a load's index; nothing where it cannot, or loads differ.
  template <class Match>
  static std::optional<Reads> reads_of(const Kernel& kernel, int buffer, const Match& match) {
    std::optional<Substitution> by;
    std::vector<NodeId> loads;
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
      const ScalarNode& node = kernel.nodes[i];
      if (node.kind != ScalarNode::Kind::load || kernel.operands[static_cast<std::size_t>(node.operand)].buffer != buffer)
        continue;
      auto here = match(node.index);
      if (!here || !node.guard.empty() || (by && *by != *here)) return std::nullopt;
      by = std::move(here);
      loads.push_back(static_cast<NodeId>(i));
    }
    if (!by) return std::nullopt;
    return Reads{std::move(*by), std::move(loads)};
  }

  // Whether the groups of `reduction` compute the row over again in less than the time of a launch.
  bool pays(const Kernel& row, const Kernel& reduction) const {
    double rows = 1, results = 1;
    for (const Axis& axis : row.axes) rows *= static_cast<double>(typical_extent(axis.extent));
    for (const Axis& axis : reduction.axes) results *= static_cast<double>(typical_extent(axis.extent));
    const double groups = results / cost::kResultsOfGroup, units = std::max(1, target_.compute_units);
    const double again = groups * bytes_of(row) / rows / (target_.bytes_per_second * cost::kRowCacheSpeed);
    return groups <= units * cost::kGroupsAtOnce && again < target_.launch_seconds;
  }

  std::optional<Kernel> joined_rows(const Kernel& row, const Kernel& reduction, int buffer) const {
    if (!sums_floats(reduction) || has_dynamic_indices(reduction) || !pays(row, reduction) ||
        row.operands.size() + reduction.operands.size() > kMostOperands ||
        std::any_of(reduction.stores.begin(), reduction.stores.end(), [](const Store& s) { return !s.row_axes.empty(); }))
      return std::nullopt;
    const auto reads = reads_of(reduction, buffer, [&](const Expr& index) { return matched(row, reduction, index); });
    if (!reads) return std::nullopt;
    Kernel joined = taken_in(row, reads->by, reduction, reads->loads);
    joined.formula = row.formula + ", then " + reduction.formula;
    joined.flops = row.flops + reduction.flops;
    joined.bytes = row.bytes + reduction.bytes - schedule_.buffers[static_cast<std::size_t>(buffer)].elements * Expr(8);
    return joined;
  }

  // `reduction` with what `from` stores, computed in place, for `loads`.
  static Kernel taken_in(const Kernel& from, const Substitution& by, const Kernel& reduction,
                         const std::vector<NodeId>& loads) {
    Kernel joined = from;
    for (ScalarNode& node : joined.nodes) {
      node.index = node.index.substitute(by);
      for (Expr& e : node.guard) e = e.substitute(by);
    }
    const NodeId value = from.stores[0].value;
    joined.stores.clear();
    joined.name = reduction.name;
    joined.anchor = reduction.anchor;
    joined.axes = reduction.axes;
    joined.reduction = reduction.reduction;
    const Appended added = append_kernel(joined, reduction, {});
    for (std::size_t i = static_cast<std::size_t>(added.first_node); i < joined.nodes.size(); ++i) {
      for (NodeId& arg : joined.nodes[i].args) {
        if (std::find(loads.begin(), loads.end(), arg - added.first_node) != loads.end()) arg = value;
      }
    }
    const auto replaced = [&](NodeId& id) {
      if (std::find(loads.begin(), loads.end(), id - added.first_node) != loads.end()) id = value;
    };
    std::vector<NodeId> needed;
    for (std::size_t i = 0; i < joined.stages.size(); ++i) {
      if (static_cast<int>(i) >= added.first_stage) replaced(joined.stages[i].body);
      needed.push_back(joined.stages[i].body);
    }
    for (Store& store : joined.stores) {
      replaced(store.value);
      needed.push_back(store.value);
    }
    keep_needed(joined, std::move(needed));
    number_operands(joined);
    return joined;
  }

  const Buffer& buffer_of(const Kernel& kernel, const Store& store) const {
    return schedule_.buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(store.operand)].buffer)];
  }

  // Moves floats that lie side by side to where they lie side by side, from one of several places.
  static bool is_fused_horizontally(const Kernel& kernel) {
    if (!kernel.is_copy || kernel.stores.size() != 1 || has_dynamic_indices(kernel)) return false;
    const auto along = [&](const auto& access) {
      return access.index.coefficient(kernel.axes.back().name) == Expr(1) &&
             kernel.operands[static_cast<std::size_t>(access.operand)].dtype == DType::f32;
    };
    const Store& store = kernel.stores[0];
    return store.guard.empty() && along(store) &&
           std::all_of(kernel.nodes.begin(), kernel.nodes.end(),
                       [&](const ScalarNode& n) { return n.kind != ScalarNode::Kind::load || along(n); });
  }

  // The copy with what its guards say of its indices: where only the last value of an axis is left, that value.
  static Kernel pinned(Kernel copy) {
    for (ScalarNode& node : copy.nodes) {
      for (const Axis& axis : copy.axes) {
        const Expr last = axis.extent - Expr(1), only_last = axis.var - last;
        if (node.kind == ScalarNode::Kind::load &&
            std::any_of(node.guard.begin(), node.guard.end(), [&](const Expr& e) { return e == only_last; }))
          node.index = node.index.substitute({{axis.name, last}});
      }
    }
    return copy;
  }

  // Makes all readers of what step `i` copies read elsewhere; false, and nothing is changed, if one cannot or the copy cannot
  // be the last of all.
  bool read_elsewhere(const std::vector<Step>& steps, std::size_t i) {
    const Kernel copy = pinned(at(steps[i]));
    const int buffer = copy.operands[static_cast<std::size_t>(copy.stores[0].operand)].buffer;
    const BufferKind kind = buffer_of(copy, copy.stores[0]).kind;
    if (kind != BufferKind::output && kind != BufferKind::arena) return false;
    std::vector<std::pair<int, Kernel>> before;
    bool all = true;
    int uses = 1;
    for (std::size_t k = i + 1; k < steps.size() && all; ++k) {
      all = steps[k].is_kernel();
      if (!all || buffers_of(at(steps[k]), false).count(buffer) == 0) continue;
      ++uses;
      auto made = reading_through(copy, at(steps[k]), buffer);
      all = made.has_value();
      if (!all) break;
      before.emplace_back(steps[k].kernel(), std::move(at(steps[k])));
      at(steps[k]) = std::move(*made);
    }
    if (all && !before.empty() && uses == uses_.at(buffer) &&
        can_pass(copy, schedule_, &steps[i] + 1, steps.data() + steps.size()))
      return true;
    for (auto& [number, kernel] : before) schedule_.kernels[static_cast<std::size_t>(number)] = std::move(kernel);
    return false;
  }

  static std::optional<Kernel> reading_through(const Kernel& copy, const Kernel& reader, int buffer) {
    if (!sums_floats(reader) || !has_linear_values(reader) || copy.operands.size() + reader.operands.size() > kMostOperands)
      return std::nullopt;
    double points = 1, elements = 1;
    for (const auto* list : {&reader.axes, &reader.reduction}) {
      for (const Axis& axis : *list) points *= static_cast<double>(typical_extent(axis.extent));
    }
    for (const Axis& axis : copy.axes) elements *= static_cast<double>(typical_extent(axis.extent));
    if (points > cost::kFewReads * elements) return std::nullopt;
    const auto reads = reads_of(reader, buffer, [&](const Expr& index) { return corresponding(copy, reader, index); });
    if (!reads) return std::nullopt;
    Kernel joined = taken_in(copy, reads->by, reader, reads->loads);
    joined.is_copy = false;
    joined.formula = reader.formula;
    joined.flops = reader.flops;
    joined.bytes = reader.bytes;
    return joined;
  }

  // What stands for the copy's axes where the reader reads at `index`.
  static std::optional<Substitution> corresponding(const Kernel& copy, const Kernel& reader, const Expr& index) {
    Substitution by;
    const Expr& stored = copy.stores[0].index;
    for (const Axis& axis : copy.axes) {
      if (axis.extent == Expr(1)) continue;
      const auto step = stored.coefficient(axis.name);
      for (const auto* list : {&reader.axes, &reader.reduction}) {
        for (const Axis& other : *list) {
          if (step && other.extent == axis.extent && index.coefficient(other.name) == step) by.emplace(axis.name, other.var);
        }
      }
      if (by.count(axis.name) == 0) return std::nullopt;
    }
    if (!(stored.substitute(by) == index)) return std::nullopt;
    return by;
  }

  bool is_light(const Step& step) {
    if (!step.is_kernel()) return false;
    const Kernel& kernel = at(step);
    return kernel.anchor == Anchor::pointwise && kernel.stages.empty() && kernel.reduction.empty() && !kernel.axes.empty() &&
           bytes_of(kernel) < target_.launch_seconds * target_.bytes_per_second;
  }

  static bool one_space(const Kernel& a, const Kernel& b) {
    return (a.operands.size() + b.operands.size()) * kOperandBytes + a.model_symbols().size() * kDimensionBytes <=
               kArgumentBytesOfKernel &&
           a.model_symbols() == b.model_symbols() && !has_dynamic_indices(b) && a.is_copy == b.is_copy &&
           std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                      [](const Axis& x, const Axis& y) { return x.extent == y.extent; });
  }

  static void fuse_pointwise(Kernel& kernel, const Kernel& from) {
    Substitution by;
    for (std::size_t i = 0; i < kernel.axes.size(); ++i) {
      if (from.axes[i].name != kernel.axes[i].name) by.emplace(from.axes[i].name, kernel.axes[i].var);
    }
    append_kernel(kernel, from, by);
    number_operands(kernel);
    kernel.formula += ", " + from.formula;
    kernel.flops += from.flops;
    kernel.bytes += from.bytes;
  }

  Schedule& schedule_;
  const Target& target_;
  const std::map<int, int> uses_;
};

}  // namespace

void inline_row_statistics(Schedule& schedule, const ScheduleContext& context) {
  for (EntrySchedule& entry : schedule.entries) Joiner(schedule, context.target).rows(entry.steps);
  drop_unused_kernels(schedule);
}

void forward_copies(Schedule& schedule, const ScheduleContext& context) {
  for (EntrySchedule& entry : schedule.entries) Joiner(schedule, context.target).copies(entry.steps);
  drop_unused_kernels(schedule);
}

void fuse_pointwise(Schedule& schedule, const ScheduleContext& context) {
  for (EntrySchedule& entry : schedule.entries) Joiner(schedule, context.target).pointwise(entry.steps);
  drop_unused_kernels(schedule);
}

}  // namespace oclc
