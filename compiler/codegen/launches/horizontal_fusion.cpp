#include "compiler/codegen/launches/horizontal_fusion.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/codegen/contraction/choose.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/schedule/horizontal_fusion_limits.h"
#include "compiler/schedule/step_buffers.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Steps that a kernel is brought forward at most.
constexpr std::size_t kLongestWay = 64;

class Neighbours {
 public:
  Neighbours(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& steps) {
    facts_.clear();
    for (const Step& step : steps) facts_.push_back(facts_of(step));
    place_.resize(steps.size());
    std::iota(place_.begin(), place_.end(), std::size_t{0});
    collect_uses(steps);
    most_ = peak() * cost::kJoinedGrowth;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (facts_[i].group_size > 0) bring_forward(i);
    }
    std::vector<Step> ordered;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (place_[i] != i) continue;
      ordered.push_back(steps[i]);
      for (const std::size_t k : facts_[i].followers) {
        ordered.push_back(steps[k]);
        ordered.back().as<KernelStep>()->beside = true;
      }
    }
    steps = std::move(ordered);
  }

 private:
  struct Facts {
    bool is_kernel = false;
    bool reads_no_results = true;  // of other kernels
    std::vector<MemoryAccess> accesses;
    std::uint32_t group_size = 0;  // work-items; 0: has a launch of its own
    std::set<int> pointers;        // of the launch that it leads
    std::vector<std::size_t> followers;
  };

  Facts facts_of(const Step& step) const {
    Facts facts;
    if (!step.is_kernel()) return facts;
    const Kernel& kernel = schedule_.kernel(step);
    facts.is_kernel = true;
    facts.accesses = accesses_of(kernel, schedule_.buffers);
    for (const Operand& operand : kernel.operands) {
      facts.pointers.insert(operand.buffer);
      if (!operand.written && schedule_.buffers[static_cast<std::size_t>(operand.buffer)].kind == BufferKind::arena)
        facts.reads_no_results = false;
    }
    const double seconds = static_cast<double>(typical_extent(kernel.bytes)) / target_.bytes_per_second;
    if (!kernel.model_symbols().empty() || seconds > cost::kJoinedLaunches * target_.launch_seconds) return facts;
    Kernel chosen = kernel;
    if (chosen.contraction) {
      chosen.contraction->choice = choose(chosen, schedule_.buffers, target_);
      // Kernels with packed weights of their own are not fused; to know that, the weights need not be packed.
      const auto view = ContractionView::of(chosen);
      if (view && packs_halves(*view, *chosen.contraction->choice, target_)) return facts;
    }
    const GeneratedKernel g = generate(chosen, schedule_.buffers, target_);
    if (!g.tile_source.empty() && g.packed.empty() && g.local.size() == 1 && g.groups.size() == 1 && g.groups[0].is_constant())
      facts.group_size = g.local[0];
    return facts;
  }

  bool can_swap(const Facts& a, const Facts& b) const { return b.is_kernel && !do_conflict(a.accesses, b.accesses); }

  // The nearest launch, so that what it makes is still in a cache when it is read, and alive for a short while; the farthest
  // for copies of weights that another such kernel waits for, which can then be brought forward as well.
  void bring_forward(std::size_t i) {
    std::vector<std::size_t> leaders;
    std::size_t after = 0;  // the first place where it may be: steps stand at their own places or further ahead
    for (std::size_t k = i; k-- > after && i - k <= kLongestWay;) {
      if (!can_swap(facts_[i], facts_[k])) after = std::max(after, place_[k] + 1);
      if (k >= after && place_[k] == k && facts_[k].group_size == facts_[i].group_size) leaders.push_back(k);
    }
    leaders.erase(std::remove_if(leaders.begin(), leaders.end(), [&](std::size_t k) { return k < after; }), leaders.end());
    const std::size_t end = std::min(facts_.size(), i + 1 + kLongestWay);
    const bool is_awaited =
        facts_[i].reads_no_results &&
        std::any_of(facts_.begin() + static_cast<std::ptrdiff_t>(i) + 1, facts_.begin() + static_cast<std::ptrdiff_t>(end),
                    [&](const Facts& f) { return f.group_size > 0 && !can_swap(f, facts_[i]); });
    if (is_awaited) std::reverse(leaders.begin(), leaders.end());
    for (const std::size_t leader : leaders) {
      if (joins(i, leader)) return;
    }
  }

  bool joins(std::size_t i, std::size_t leader) {
    Facts& first = facts_[leader];
    if (first.followers.size() + 2 > kMostFusedKernels) return false;
    std::set<int> pointers = first.pointers;
    pointers.insert(facts_[i].pointers.begin(), facts_[i].pointers.end());
    if (pointers.size() > kMostFusedPointers) return false;
    place_[i] = leader;
    if (peak() > most_) {
      place_[i] = i;
      return false;
    }
    first.pointers = std::move(pointers);
    first.followers.push_back(i);
    return true;
  }

  void collect_uses(const std::vector<Step>& steps) {
    uses_.clear();
    std::vector<std::vector<std::size_t>> by_buffer(schedule_.buffers.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const int buffer : buffers_in(schedule_, steps[i])) by_buffer[static_cast<std::size_t>(buffer)].push_back(i);
    }
    for (std::size_t b = 0; b < by_buffer.size(); ++b) {
      const Buffer& buffer = schedule_.buffers[b];
      if (buffer.kind != BufferKind::arena || by_buffer[b].empty()) continue;
      uses_.push_back({static_cast<double>(typical_extent(buffer.elements)) * static_cast<double>(size_bytes(buffer.dtype)),
                       std::move(by_buffer[b])});
    }
  }

  // Most bytes alive at once.
  double peak() const {
    std::vector<double> change(place_.size() + 1, 0);
    for (const auto& [bytes, steps] : uses_) {
      std::size_t first = place_.size(), last = 0;
      for (const std::size_t step : steps) {
        first = std::min(first, place_[step]);
        last = std::max(last, place_[step]);
      }
      change[first] += bytes;
      change[last + 1] -= bytes;
    }
    double most = 0, now = 0;
    for (const double c : change) most = std::max(most, now += c);
    return most;
  }

  Schedule& schedule_;
  const Target& target_;
  std::vector<Facts> facts_;                                       // by step
  std::vector<std::size_t> place_;                                 // the step whose launch it is in
  std::vector<std::pair<double, std::vector<std::size_t>>> uses_;  // bytes and steps of each arena buffer
  double most_ = 0;
};

}  // namespace

void horizontal_fusion(Schedule& schedule, const ScheduleContext& context) {
  Neighbours neighbours(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) neighbours.run(entry.steps);
}

}  // namespace oclc
