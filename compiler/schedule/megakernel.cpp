#include "compiler/schedule/megakernel.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/merged_kernel.h"
#include "compiler/kernels/ragged_objects.h"
#include "compiler/schedule/small_gemm.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// The counters' buffer and the two numbers that choose the parts come on top.
constexpr std::size_t kPointerBytes = 8, kOwnBytes = 24;
constexpr int kFewestGroups = 16;

// Places of trips: what one line of counters holds, for plans that meet more cores than they were made for, and the part of
// their trips for which cores may be idle.
constexpr std::int64_t kMostPlaces = 14, kFewestPlaces = 4, kUnevenTrips = 8;

// On a GPU: groups of a compute unit, and the most parts of a launch.
constexpr int kGroupsOfUnit = 2;
constexpr std::size_t kMostMegakernelParts = 64;

// The packed copy of a constant has no more elements than this for each of its own: transforms of 3x3 filters, whole panels.
constexpr std::int64_t kPackedGrowth = 8;

// What the arguments of one launch are for.
struct Arguments {
  const Schedule& schedule;
  std::set<int> buffers;
  std::set<std::string> symbols;
  std::size_t tables = 0;  // of ragged groups
  std::size_t packed = 0;  // large copies of weights that code generation makes

  // `inside` are buffers that the kernel hands on to others of its step.
  void add(const Kernel& kernel, const std::set<int>& inside) {
    for (const Operand& o : kernel.operands) {
      if (inside.count(o.buffer) != 0) continue;
      const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(o.buffer)];
      if (kernel.contraction && buffer.kind == BufferKind::constant &&
          static_cast<std::int64_t>(buffer.constant.bytes()) > kMostJoinedBytes / kPackedGrowth)
        ++packed;
      if (!joins_constants(schedule, o.buffer)) buffers.insert(o.buffer);
    }
    for (const std::string& s : kernel.model_symbols()) symbols.insert(s);
  }
  // Of a ragged group, its memory objects and the table.
  void add(const RaggedStep& group) {
    const std::vector<const Kernel*> members = kernels_of(schedule, group.body);
    for (const Kernel* member : members) {
      for (const Axis& axis : member->axes) {
        for (const std::string& s : axis.extent.symbols()) symbols.insert(s);
      }
    }
    const RaggedObjects objects = RaggedObjects::of_group(schedule, members);
    for (const RaggedObject& object : objects.list()) buffers.insert(object.buffer);
    ++tables;
  }
  // One buffer more: the joined constants.
  std::size_t bytes() const {
    return kOwnBytes + (buffers.size() + packed + 1) * kBufferBytes + (symbols.size() + tables) * kSymbolBytes;
  }
  // Where the scratch of an entry point is one pointer.
  std::size_t merged_bytes() const {
    const auto shared = std::count_if(buffers.begin(), buffers.end(), [&](int number) {
      const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(number)];
      return buffer.kind == BufferKind::arena && buffer.elements.is_constant();
    });
    return bytes() - static_cast<std::size_t>(shared) * kPointerBytes + kPointerBytes;
  }
};

// A kernel for a stretch on a GPU: without a template, of at least one tile, and faster than a launch. The few groups of a
// stretch ask for less of memory at once than a launch does, but for sums.
bool is_short(const Schedule& schedule, const Kernel& kernel, const Target& target) {
  if (kernel.contraction) return small_gemm_tiles(kernel, target).has_value();
  const bool simple = kernel.anchor == Anchor::pointwise || kernel.anchor == Anchor::reduce || kernel.anchor == Anchor::row;
  const double seconds = target.launch_seconds * (kernel.anchor == Anchor::pointwise ? cost::kMegakernelPointwiseShare : 1);
  // Sizes that are bound before a run are rarely 0; those that it finds may well be.
  Substitution bound;
  for (const Expr& e : schedule.symbols)
    bound[*e.symbol_name()] = Expr::symbol(*e.symbol_name(), 1, std::max<std::int64_t>(e.upper(), 1));
  const auto has_tiles = [&](const Axis& a) { return a.extent.substitute(bound).lower() >= 1; };
  return simple && std::all_of(kernel.axes.begin(), kernel.axes.end(), has_tiles) &&
         typical(kernel.bytes) < target.bytes_per_second * seconds && typical(kernel.flops) < target.flops * seconds;
}

void stand_alone(Step& step) {
  if (auto* launched = step.as<KernelStep>()) launched->beside = false;
}

// A user's body whose groups are as it says.
bool has_own_groups(const Schedule& schedule, const Step& step) {
  const std::optional<Code>& code = schedule.kernel(step).code;
  return code && !code->body->group.empty();
}

void gather(const Schedule& schedule, std::vector<Step>& list, const Target& target, bool merges_arguments) {
  std::vector<Step> all;
  for (std::size_t i = 0; i < list.size();) {
    const std::span<const Step> rest = std::span(list).subspan(i);
    const std::size_t together = steps_of_launch(rest),
                      stretch = together > 1 ? 0 : stretch_length(schedule, rest, target, merges_arguments);
    const std::size_t taken = std::max<std::size_t>({together, stretch, 1});
    const auto begin = std::make_move_iterator(list.begin() + static_cast<std::ptrdiff_t>(i));
    if (stretch > 1 || (stretch == 1 && list[i].is_loop())) {
      MegakernelStep launch;
      launch.body.assign(begin, begin + static_cast<std::ptrdiff_t>(taken));
      for (Step& step : launch.body) stand_alone(step);
      all.push_back({std::move(launch)});
      // The kernel that the next step was to be beside is gathered.
      if (i + taken < list.size()) stand_alone(list[i + taken]);
    } else {
      if (auto* loop = list[i].as<LoopStep>()) gather(schedule, loop->body, target, merges_arguments);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(taken));
    }
    i += taken;
  }
  list = std::move(all);
}

}  // namespace

std::int64_t megakernel_groups(const Target& target) {
  return target.megakernel() == Megakernel::groups ? kGroupsOfUnit * target.compute_units
                                                   : std::max(kFewestGroups, target.compute_units);
}

std::int64_t places_of_trips(std::int64_t trips, const Target& target) {
  const std::int64_t cores = target.compute_units, rounds = ceil_div(trips, cores);
  if (cores < 2 || cores > kMostPlaces || rounds * cores > trips + trips / kUnevenTrips) return 0;
  return std::min(trips, std::max(cores, kFewestPlaces));
}

Target one_core(Target target) {
  target.flops /= target.compute_units;
  target.bytes_per_second /= target.compute_units;
  target.compute_units = 1;
  return target;
}

bool joins_constants(const Schedule& schedule, int buffer) {
  const Buffer& b = schedule.buffers[static_cast<std::size_t>(buffer)];
  if (b.kind != BufferKind::constant || b.dtype == DType::string) return false;
  const auto bytes = static_cast<std::int64_t>(b.constant.bytes());
  if (bytes == 0 || bytes > kMostJoinedBytes) return false;
  if (bytes <= kMostCopiedBytes) return true;
  int readers = 0;
  for (const Kernel& kernel : schedule.kernels) {
    for (const Operand& o : kernel.operands) readers += o.buffer == buffer ? 1 : 0;
  }
  return readers == 1;
}

bool megakernel_loop(const Schedule& schedule, const Step& step) {
  if (const auto* loops = step.as<ParallelLoopsStep>())
    return std::all_of(loops->body.begin(), loops->body.end(), [&](const Step& one) { return megakernel_loop(schedule, one); });
  const auto* loop = step.as<LoopStep>();
  if (!loop || !loop->condition.empty() || loop->body.empty()) return false;
  return std::all_of(loop->body.begin(), loop->body.end(), [&](const Step& inner) {
    if (!inner.is_kernel() || has_own_groups(schedule, inner)) return false;
    const std::vector<Axis>& axes = schedule.kernel(inner).axes;
    return std::none_of(axes.begin(), axes.end(), [&](const Axis& a) {
      const auto symbols = a.extent.symbols();
      return std::find(symbols.begin(), symbols.end(), loop->counter) != symbols.end();
    });
  });
}

std::vector<const Kernel*> kernels_of(const Schedule& schedule, std::span<const Step> steps) {
  std::vector<const Kernel*> out;
  for (const Step& step : steps) {
    if (step.is_kernel()) out.push_back(&schedule.kernel(step));
    const auto inner = kernels_of(schedule, step.body());
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

std::size_t stretch_length(const Schedule& schedule, std::span<const Step> list, const Target& target, bool merges_arguments) {
  const bool groups = target.megakernel() == Megakernel::groups, able = target.megakernel() == Megakernel::cores;
  Arguments arguments{schedule, {}, {}, 0};
  const auto enough = [&](std::size_t n) { return groups && n < kFewestMegakernelParts ? std::min<std::size_t>(n, 1) : n; };
  std::int64_t kernels = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_kernel() && has_own_groups(schedule, list[i])) return i > 0 ? enough(i) : 1;
    const bool loop = able && megakernel_loop(schedule, list[i]), attention = able && list[i].is<AttentionStep>();
    const auto* group = able ? list[i].as<RaggedStep>() : nullptr;
    if (!list[i].is_kernel() && !loop && !attention && !group) return enough(i);
    std::set<int> inside;
    for (const Step& inner : list[i].body()) {
      if (attention && &inner != &list[i].body().back()) inside.merge(buffers_of(schedule.kernel(inner), true));
    }
    const bool fits = !groups || is_short(schedule, *kernels_of(schedule, list[i]).front(), target);
    if (i > 0 && !fits) return enough(i);
    if (group) {
      arguments.add(*group);
      ++kernels;
    } else {
      for (const Kernel* kernel : kernels_of(schedule, list[i])) {
        arguments.add(*kernel, inside);
        ++kernels;
      }
    }
    if (i > 0 && (kernels > target.kernels_a_launch || (groups && i == kMostMegakernelParts))) return enough(i);
    for (const std::string& s : list[i].trip().symbols()) arguments.symbols.insert(s);
    const std::size_t bytes = i == 0 && merges_arguments ? arguments.merged_bytes() : arguments.bytes();
    if ((i > 0 && !able && !groups) || ((i > 0 || loop) && bytes > kMostArgumentBytes)) return enough(i);
    if (!fits) return 1;
  }
  return enough(list.size());
}

void megakernel(Schedule& schedule, const ScheduleContext& context) {
  for (EntrySchedule& entry : schedule.entries) gather(schedule, entry.steps, context.target, context.runs("merge_arguments"));
}

}  // namespace oclc
