#include "compiler/schedule/loop_kernel.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "compiler/ir/typical.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

struct Seconds {
  double launches = 0, loop_kernel = 0;
};

class Chooser {
 public:
  Chooser(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_loop()) continue;
      if (!pays(list[i])) {
        steps(list[i].body);
        continue;
      }
      std::size_t first = i, last = i + 1;
      while (first > 0 && joins(list[first - 1])) --first;
      while (last < list.size() && joins(list[last])) ++last;
      Step step;
      step.loop_kernel = true;
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first),
                 end = list.begin() + static_cast<std::ptrdiff_t>(last);
      step.body.assign(std::make_move_iterator(begin), std::make_move_iterator(end));
      *begin = std::move(step);
      list.erase(begin + 1, end);
      i = first;
    }
  }

 private:
  // Time of one trip, or nothing if the step cannot be part of a loop kernel.
  std::optional<Seconds> time(const Step& step) const {
    if (step.gemm >= 0 || step.reading >= 0 || step.host >= 0 || step.loop_kernel) return std::nullopt;
    if (step.kernel < 0) return time(step.body);
    const Kernel& kernel = schedule_.kernels[static_cast<std::size_t>(step.kernel)];
    if (kernel.code) return std::nullopt;
    const auto known = [](const Axis& a) { return a.extent.is_constant(); };
    if (!std::all_of(kernel.axes.begin(), kernel.axes.end(), known) ||
        !std::all_of(kernel.reduction.begin(), kernel.reduction.end(), known))
      return std::nullopt;
    const bool cpu = target_.items_are_cores();
    const double flops = typical(kernel.flops), bytes = typical(kernel.bytes), rate = target_.flops * cost::kLoopShare;
    return Seconds{std::max({target_.launch_seconds, flops / rate, bytes / target_.bytes_per_second}),
                   flops / rate * target_.compute_units + bytes / cost::kUnitCacheRate +
                       (cpu ? cost::kCoreStepSeconds : cost::kGroupStepSeconds)};
  }

  std::optional<Seconds> time(const std::vector<Step>& list) const {
    Seconds sum;
    for (const Step& step : list) {
      const auto one = time(step);
      if (!one) return std::nullopt;
      sum.launches += one->launches;
      sum.loop_kernel += one->loop_kernel;
    }
    return sum;
  }

  bool pays(const Step& step) const {
    const auto seconds = time(step);
    return seconds && seconds->loop_kernel < seconds->launches;
  }

  bool joins(const Step& step) const { return step.kernel >= 0 && pays(step); }

  Schedule& schedule_;
  const Target& target_;
};

void each_kernel(const Schedule& schedule, const std::vector<Step>& list, const Step* except,
                 const std::function<void(int buffer)>& visit) {
  for (const Step& step : list) {
    if (&step == except) continue;
    if (step.kernel >= 0) {
      for (const Operand& o : schedule.kernels[static_cast<std::size_t>(step.kernel)].operands) visit(o.buffer);
    } else if (step.gemm >= 0) {
      const Gemm& g = schedule.gemms[static_cast<std::size_t>(step.gemm)];
      for (const int buffer : {g.a, g.b, g.c}) visit(buffer);
    } else if (step.reading >= 0) {
      visit(schedule.readings[static_cast<std::size_t>(step.reading)].buffer);
    } else if (step.host >= 0) {
      const HostCall& call = schedule.hosts[static_cast<std::size_t>(step.host)];
      for (const auto* list : {&call.inputs, &call.outputs})
        for (const HostOperand& o : *list) visit(o.buffer);
    } else {
      each_kernel(schedule, step.body, except, visit);
    }
  }
}

}  // namespace

void loop_kernel(Schedule& schedule, const ScheduleContext& context) {
  Chooser chooser(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) chooser.steps(entry.steps);
}

std::vector<int> own_buffers(const Schedule& schedule, const Step& step) {
  std::vector<bool> inside(schedule.buffers.size(), false), outside(schedule.buffers.size(), false);
  each_kernel(schedule, step.body, nullptr, [&](int buffer) { inside[static_cast<std::size_t>(buffer)] = true; });
  for (const EntrySchedule& entry : schedule.entries)
    each_kernel(schedule, entry.steps, &step, [&](int buffer) { outside[static_cast<std::size_t>(buffer)] = true; });
  std::vector<int> own;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (inside[i] && !outside[i] && buffer.kind == BufferKind::arena && buffer.elements.is_constant())
      own.push_back(static_cast<int>(i));
  }
  return own;
}

}  // namespace oclc
