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
      auto* loop = list[i].as<LoopStep>();
      if (!loop) continue;
      if (!pays(list[i])) {
        steps(loop->body);
        continue;
      }
      std::size_t first = i, last = i + 1;
      while (first > 0 && joins(list[first - 1])) --first;
      while (last < list.size() && joins(list[last])) ++last;
      LoopKernelStep made;
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first),
                 end = list.begin() + static_cast<std::ptrdiff_t>(last);
      made.body.assign(std::make_move_iterator(begin), std::make_move_iterator(end));
      *begin = Step{std::move(made)};
      list.erase(begin + 1, end);
      i = first;
    }
  }

 private:
  // Time of one trip, or nothing if the step cannot be part of a loop kernel.
  std::optional<Seconds> time(const Step& step) const {
    if (const auto* loop = step.as<LoopStep>()) return time(loop->body);
    if (!step.is_kernel()) return std::nullopt;
    const Kernel& kernel = schedule_.kernel(step);
    if (kernel.code) return std::nullopt;
    const auto known = [](const Axis& a) { return a.extent.is_constant(); };
    if (!std::all_of(kernel.axes.begin(), kernel.axes.end(), known) ||
        !std::all_of(kernel.reduction.begin(), kernel.reduction.end(), known))
      return std::nullopt;
    const double flops = typical(kernel.flops), bytes = typical(kernel.bytes), rate = target_.flops * cost::kLoopShare;
    return Seconds{std::max({target_.launch_seconds, flops / rate, bytes / target_.bytes_per_second}),
                   flops / rate * target_.compute_units + bytes / cost::kUnitCacheRate + loop_step_seconds(target_)};
  }

  std::optional<Seconds> time(std::span<const Step> list) const {
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

  bool joins(const Step& step) const { return step.is_kernel() && pays(step); }

  Schedule& schedule_;
  const Target& target_;
};

void each_kernel(const Schedule& schedule, std::span<const Step> list, const Step* except,
                 const std::function<void(int buffer)>& visit) {
  for (const Step& step : list) {
    if (&step == except) continue;
    if (step.is_kernel()) {
      for (const Operand& o : schedule.kernel(step).operands) visit(o.buffer);
    } else if (const auto* product = step.as<GemmStep>()) {
      const Gemm& g = schedule.gemms[static_cast<std::size_t>(product->gemm)];
      for (const int buffer : {g.a, g.b, g.c}) visit(buffer);
    } else if (const auto* sizes = step.as<ReadingStep>()) {
      visit(schedule.readings[static_cast<std::size_t>(sizes->reading)].buffer);
    } else if (const auto* host = step.as<HostStep>()) {
      const HostCall& call = schedule.hosts[static_cast<std::size_t>(host->host)];
      for (const auto* list : {&call.inputs, &call.outputs})
        for (const HostOperand& o : *list) visit(o.buffer);
    } else {
      each_kernel(schedule, step.body(), except, visit);
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
  each_kernel(schedule, step.body(), nullptr, [&](int buffer) { inside[static_cast<std::size_t>(buffer)] = true; });
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
