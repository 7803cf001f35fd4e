#include "compiler/schedule/fuse_in_work_group.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "compiler/ir/typical.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/kernels/merged_kernel.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Most pointers of one launch.
constexpr std::size_t kMostPointersOfChain = 32;
// Local memory that one float4 for each work-item takes.
constexpr std::int64_t kBytesOfItem = 16;

const std::string kSlice = "chain_slice";

class Chains {
 public:
  Chains(Schedule& schedule, const Target& target, bool megakernel)
      : schedule_(schedule), target_(target), megakernel_(megakernel) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_kernel()) continue;
      if (const std::size_t taken = megakernel_ ? stretch_length(schedule_, std::span(list).subspan(i), target_) : 0;
          taken > 1) {
        i += taken - 1;
        continue;
      }
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i);
      std::int64_t groups = slices_of(at(list[i]));
      std::size_t length = groups > 1 ? stretch(begin, list.end(), groups) : 0;
      if (length < 2) length = stretch(begin, list.end(), groups = 1);
      if (length < 2) continue;
      WorkGroupStep chain{.trip = Expr(groups), .counter = kSlice, .body = {}};
      chain.body.assign(begin, begin + static_cast<std::ptrdiff_t>(length));
      if (groups > 1) {
        for (const Step& step : chain.body) take_slice(at(step), groups);
      }
      list.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(length));
      list[i] = Step{std::move(chain)};
    }
  }

 private:
  using Place = std::vector<Step>::const_iterator;

  Kernel& at(const Step& step) const { return schedule_.kernel(step); }
  const Buffer& buffer_of(const Kernel& kernel, int operand) const {
    return schedule_.buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(operand)].buffer)];
  }

  // The outermost axis of more than one value.
  static std::optional<std::size_t> outermost(const Kernel& kernel) {
    for (std::size_t i = 0; i < kernel.axes.size(); ++i) {
      if (!(kernel.axes[i].extent == Expr(1))) return i;
    }
    return std::nullopt;
  }

  static std::int64_t slices_of(const Kernel& kernel) {
    const auto axis = outermost(kernel);
    return axis && kernel.axes[*axis].extent.is_constant() ? kernel.axes[*axis].extent.value() : 1;
  }

  static const Axis& slice_axis(const Kernel& kernel) { return kernel.axes[*outermost(kernel)]; }

  // Sums that a group's work-items share, and pointwise work, of known size: a group would take too long for many keys.
  static bool fits(const Kernel& kernel) {
    if (kernel.contraction || !kernel.model_symbols().empty() ||
        (kernel.anchor != Anchor::pointwise && kernel.anchor != Anchor::reduce && kernel.anchor != Anchor::row))
      return false;
    return std::all_of(kernel.stages.begin(), kernel.stages.end(),
                       [](const Stage& s) { return s.arg_index < 0 && s.accumulator == DType::f32; });
  }

  // Steps from `first` on that `groups` groups run one after another in less time than launches, 0 if none are.
  std::size_t stretch(Place first, Place end, std::int64_t groups) const {
    double launches = 0, inside = target_.launch_seconds, best_gain = 0;
    std::size_t best = 0;
    std::set<int> pointers;
    for (Place step = first; step != end && step->is_kernel() && !step->is_beside(); ++step) {
      const Kernel& kernel = at(*step);
      if (!fits(kernel) || !joins(first, step, groups)) break;
      for (const Operand& operand : kernel.operands) pointers.insert(operand.buffer);
      if (pointers.size() > kMostPointersOfChain) break;
      const double bytes = typical(kernel.bytes);
      launches += std::max(target_.launch_seconds + cost::kSmallKernelSeconds, bytes / target_.bytes_per_second);
      inside += seconds(kernel, groups);
      if (step == first || launches - inside <= best_gain) continue;
      best_gain = launches - inside;
      best = static_cast<std::size_t>(step - first) + 1;
    }
    return best;
  }

  // What a kernel takes in a chain.
  double seconds(const Kernel& kernel, std::int64_t groups) const {
    const double units = std::max(1, target_.compute_units);
    double bytes = 0;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const Buffer& buffer = buffer_of(kernel, static_cast<int>(i));
      const double whole =
          std::min(typical(buffer.elements) * static_cast<double>(size_bytes(buffer.dtype)), typical(kernel.bytes));
      bytes += whole / static_cast<double>(groups > 1 && slices(kernel, static_cast<int>(i)) ? groups : 1);
    }
    const double waves = std::ceil(static_cast<double>(groups) / units);
    const double few = std::min(bytes, cost::kLoneGroupBytes), share = target_.bytes_per_second / units;
    return waves * (few / (cost::kLoneUnitSpeed * share) + (bytes - few) / (cost::kLoneGroupShare * share) +
                    typical(kernel.flops) / static_cast<double>(groups) / (cost::kGroupLoopShare * target_.flops / units)) +
           cost::kSmallKernelSeconds;
  }

  // Whether each value of the outermost axis uses elements of the operand of its own.
  static bool slices(const Kernel& kernel, int operand) {
    const std::string& axis = slice_axis(kernel).name;
    const auto uses = [&](const auto& access) { return access.operand != operand || access.index.uses(axis); };
    return std::all_of(kernel.nodes.begin(), kernel.nodes.end(),
                       [&](const ScalarNode& n) { return n.kind != ScalarNode::Kind::load || uses(n); }) &&
           std::all_of(kernel.stores.begin(), kernel.stores.end(), uses);
  }

  // Whether the kernel of `step` needs one of those from `first` on, and reads of them only what its own group wrote. One group
  // wrote everything.
  bool joins(Place first, Place step, std::int64_t groups) const {
    const Kernel& kernel = at(*step);
    const std::set<int> reads = buffers_of(kernel, false);
    if (step != first && std::none_of(first, step, [&](const Step& before) {
          const std::set<int> written = buffers_of(at(before), true);
          return std::any_of(written.begin(), written.end(), [&](int buffer) { return reads.count(buffer) != 0; });
        }))
      return false;
    if (groups == 1) return true;
    if (slices_of(kernel) != groups) return false;
    for (const Operand& operand : kernel.operands) {
      const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.kind == BufferKind::state || buffer.replaces >= 0) return false;
    }
    return std::all_of(first, step, [&](const Step& before) { return keeps_apart(at(before), kernel); });
  }

  static bool keeps_apart(const Kernel& before, const Kernel& kernel) {
    for (const Store& store : kernel.stores) {
      const int buffer = kernel.operands[static_cast<std::size_t>(store.operand)].buffer;
      if (std::any_of(before.operands.begin(), before.operands.end(), [&](const Operand& o) { return o.buffer == buffer; }))
        return false;
    }
    for (const Store& store : before.stores) {
      const int buffer = before.operands[static_cast<std::size_t>(store.operand)].buffer;
      for (const ScalarNode& node : kernel.nodes) {
        if (node.kind == ScalarNode::Kind::load && kernel.operands[static_cast<std::size_t>(node.operand)].buffer == buffer &&
            !same_slices(before, store, kernel, node))
          return false;
      }
    }
    return true;
  }

  // Whether equal values of the outermost axes write and read the same elements, and others do not meet them.
  static bool same_slices(const Kernel& before, const Store& store, const Kernel& kernel, const ScalarNode& load) {
    const Axis &its = slice_axis(before), &mine = slice_axis(kernel);
    const auto written = store.index.coefficient(its.name), read = load.index.coefficient(mine.name);
    if (!written || !read || !(*written == *read)) return false;
    const auto rest = [](const Expr& index, const Axis& axis) { return index.substitute({{axis.name, Expr(0)}}); };
    return written->is_constant() && written->value() > 0 &&
           lies_within(rest(store.index, its), store.guard, written->value()) &&
           lies_within(rest(load.index, mine), load.guard, written->value());
  }

  static void take_slice(Kernel& kernel, std::int64_t groups) {
    Axis& axis = kernel.axes[*outermost(kernel)];
    const Substitution by{{axis.name, Expr::symbol(kSlice, 0, groups - 1)}};
    for (ScalarNode& node : kernel.nodes) {
      node.index = node.index.substitute(by);
      for (Expr& e : node.guard) e = e.substitute(by);
    }
    for (Store& store : kernel.stores) {
      store.index = store.index.substitute(by);
      for (Expr& e : store.guard) e = e.substitute(by);
    }
    axis.extent = 1;
    axis.var = 0;
  }

  Schedule& schedule_;
  const Target& target_;
  const bool megakernel_;
};

}  // namespace

int chain_items(const Target& target) {
  return target.local_bytes > target.largest_group * kBytesOfItem ? target.largest_group : target.work_group;
}

void fuse_in_work_group(Schedule& schedule, const ScheduleContext& context) {
  Chains all(schedule, context.target, context.runs("megakernel"));
  for (EntrySchedule& entry : schedule.entries) all.steps(entry.steps);
}

}  // namespace oclc
