#include "compiler/schedule/prefetch_weights.h"

#include "compiler/schedule/row_product.h"

namespace oclc {
namespace {

class Prefetch {
 public:
  Prefetch(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (auto* loop = list[i].as<LoopStep>()) steps(loop->body);
      if (is_single(list, i) && shares_terms(schedule_.kernel(list[i]))) look_ahead(list, i);
    }
  }

 private:
  static bool is_single(const std::vector<Step>& list, std::size_t i) {
    return list[i].is_kernel() && !list[i].is_beside() && (i + 1 == list.size() || !list[i + 1].is_beside());
  }

  static bool shares_terms(const Kernel& kernel) { return kernel.contraction && kernel.contraction->shares > 1; }

  // The last launch before the product prefetches the last piece.
  void look_ahead(std::vector<Step>& list, std::size_t i) {
    for (std::int64_t away = 1; away <= kPrefetchingLaunches; ++away) {
      const std::size_t later = i + static_cast<std::size_t>(away);
      if (later >= list.size() || !is_single(list, later)) return;
      const auto product = row_product(schedule_.kernel(list[later]), schedule_.buffers, target_);
      if (!product) continue;
      const std::int64_t first = (kPrefetchingLaunches - away) * kPrefetchedBytes;
      if (packed_bytes(*product) < first + kPrefetchedBytes) return;
      list[i].as<KernelStep>()->prefetch = {list[later].kernel(), first};
      return;
    }
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

void prefetch_weights(Schedule& schedule, const ScheduleContext& context) {
  Prefetch pass(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) pass.steps(entry.steps);
}

}  // namespace oclc
