#include "compiler/schedule/parallel_loops.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/ir/typical.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Bytes of constants of a loop, in second-level caches: they are read in each trip, from the last cache.
constexpr std::int64_t kMostCaches = 4;

class Loops {
 public:
  Loops(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& list) {
    const auto cores = static_cast<std::size_t>(target_.compute_units);
    for (std::size_t last = 0; last < list.size(); ++last) {
      if (!is_candidate(list[last])) continue;
      std::vector<std::size_t> loops = {last};
      std::vector<Uses> passed = {uses_of(list[last])};
      for (std::size_t i = last; i-- > 0 && loops.size() < cores && is_movable(list[i]);) {
        const Uses mine = uses_of(list[i]);
        const bool moves = std::none_of(passed.begin(), passed.end(), [&](const Uses& u) { return u.conflicts(mine); });
        if (moves && is_candidate(list[i]) && is_like(list[i], list[last]))
          loops.push_back(i);  // goes with what it is beside, and needs nothing of
        else
          passed.push_back(mine);
      }
      if (loops.size() == cores) join(list, loops);
    }
  }

 private:
  struct Uses {
    std::set<int> read, written;  // storage

    static bool meet(const std::set<int>& a, const std::set<int>& b) {
      return std::any_of(a.begin(), a.end(), [&](int x) { return b.count(x) > 0; });
    }
    bool conflicts(const Uses& o) const { return meet(written, o.written) || meet(written, o.read) || meet(read, o.written); }
  };

  bool is_movable(const Step& step) const {
    return step.is_kernel() || (step.is<LoopStep>() && megakernel_loop(schedule_, step));
  }

  Uses uses_of(const Step& step) const {
    Uses uses;
    for (const Kernel* kernel : kernels_of(schedule_, step)) {
      for (const Operand& o : kernel->operands)
        (o.written ? uses.written : uses.read).insert(storage_of(schedule_.buffers, o.buffer));
    }
    return uses;
  }

  double flops_of(const Step& loop) const {
    double flops = 0;
    for (const Kernel* kernel : kernels_of(schedule_, loop))
      flops += static_cast<double>(typical_extent(kernel->flops.substitute({{loop.counter(), Expr(0)}})));
    return flops;
  }

  std::int64_t constant_bytes(const Step& loop) const {
    std::int64_t bytes = 0;
    for (const int buffer : uses_of(loop).read) {
      const Buffer& b = schedule_.buffers[static_cast<std::size_t>(buffer)];
      if (b.kind == BufferKind::constant) bytes += static_cast<std::int64_t>(b.constant.bytes());
    }
    return bytes;
  }

  bool is_candidate(const Step& step) const {
    const auto* loop = step.as<LoopStep>();
    if (!loop || loop->slots > 0 || !megakernel_loop(schedule_, step)) return false;
    const std::int64_t bytes = constant_bytes(step);
    return bytes <= kMostCaches * target_.l2_bytes &&
           flops_of(step) >= cost::kLastCacheFlopsPerByte * static_cast<double>(bytes);
  }

  bool is_like(const Step& a, const Step& b) const {
    return a.as<LoopStep>()->trip == b.as<LoopStep>()->trip &&
           std::abs(flops_of(a) - flops_of(b)) <= cost::kUnevenLoops * flops_of(b);
  }

  // `loops` are places in the list, the last one first.
  void join(std::vector<Step>& list, const std::vector<std::size_t>& loops) {
    ParallelLoopsStep all{.trip = list[loops.front()].as<LoopStep>()->trip, .body = {}};
    for (auto at = loops.rbegin(); at != loops.rend(); ++at) all.body.push_back(list[*at]);
    Step together{std::move(all)};
    if (stretch_length(schedule_, std::span(&together, 1), target_) != 1) return;
    list[loops.front()] = std::move(together);
    for (std::size_t k = 1; k < loops.size(); ++k) list.erase(list.begin() + static_cast<std::ptrdiff_t>(loops[k]));
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

void parallel_loops(Schedule& schedule, const ScheduleContext& context) {
  for (EntrySchedule& entry : schedule.entries) Loops(schedule, context.target).run(entry.steps);
}

}  // namespace oclc
