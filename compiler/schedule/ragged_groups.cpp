#include "compiler/schedule/ragged_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/typical.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/kernels/ragged_family.h"
#include "compiler/kernels/ragged_objects.h"
#include "compiler/schedule/horizontal_fusion_limits.h"
#include "compiler/schedule/step_buffers.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Expressions of a group's number of tiles stay this small.
constexpr std::size_t kMostSymbolicSize = 1024;

// The steps of an entry point, by launches: places in the list of steps.
using Order = std::vector<std::vector<std::size_t>>;

class RaggedGroups {
 public:
  RaggedGroups(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {
    for (const Expr& symbol : schedule.symbols) bound_.insert(*symbol.symbol_name());
  }

  void run(std::vector<Step>& steps) {
    steps_ = steps;
    find_families();
    if (families_.empty()) return;
    find_order_of_memory();
    Order first;
    for (std::size_t i = 0; i < steps.size(); ++i) first.push_back({i});
    const double most = peak(first) * cost::kJoinedGrowth + static_cast<double>(target_.all_l2_bytes());
    Order order = ordered();
    while (drops_scattered_families(order) || peak(order) > most) {
      if (peak(order) > most) {
        // The family whose members hand on most.
        std::max_element(families_.begin(), families_.end(), [](const Family& a, const Family& b) {
          return (a.members.empty() ? 0 : a.bytes) < (b.members.empty() ? 0 : b.bytes);
        })->members.clear();
      }
      drop_small_families();
      order = ordered();
    }
    steps = steps_of(order);
  }

 private:
  static constexpr int kNone = -1;
  struct Family {
    FamilyKey key;
    std::vector<std::size_t> members;
    double bytes = 0;  // of a member
    bool is_users = false;
  };

  const Kernel& kernel(std::size_t step) const { return schedule_.kernel(steps_[step]); }

  bool is_bound(const Expr& e) const {
    const std::vector<std::string> used = e.symbols();
    return std::all_of(used.begin(), used.end(), [&](const std::string& s) { return bound_.count(s) != 0; });
  }

  bool may_join(std::size_t i) const {
    const auto* launched = steps_[i].as<KernelStep>();
    if (!launched || launched->beside || launched->prefetch) return false;
    if (i + 1 < steps_.size() && steps_[i + 1].is_beside()) return false;
    const Kernel& k = kernel(i);
    if (k.code && !k.code->body->ragged) return false;
    const std::vector<std::string> used = k.model_symbols();
    if (!std::all_of(used.begin(), used.end(), [&](const std::string& s) { return bound_.count(s) != 0; })) return false;
    if (!std::all_of(k.operands.begin(), k.operands.end(), [&](const Operand& o) {
          return is_bound(schedule_.buffers[static_cast<std::size_t>(o.buffer)].elements);
        }))
      return false;
    const double seconds = typical(k.bytes) / target_.bytes_per_second;
    return seconds <= cost::kJoinedLaunches * target_.launch_seconds;
  }

  void find_families() {
    families_.clear();
    family_of_.assign(steps_.size(), kNone);
    std::map<std::string, std::vector<int>> by_structure;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!may_join(i)) continue;
      FamilyKey key = family_key(kernel(i));
      if (key.structure.empty()) continue;
      std::vector<int>& known = by_structure[key.structure];
      int number = kNone;
      for (const int candidate : known) {
        if (families_[static_cast<std::size_t>(candidate)].key.take(key)) {
          number = candidate;
          break;
        }
      }
      if (number == kNone) {
        number = static_cast<int>(families_.size());
        known.push_back(number);
        families_.push_back({std::move(key), {}, typical(kernel(i).bytes), kernel(i).code.has_value()});
      }
      families_[static_cast<std::size_t>(number)].members.push_back(i);
    }
    drop_small_families();
    if (std::all_of(families_.begin(), families_.end(), [](const Family& f) { return f.members.empty(); })) families_.clear();
  }

  // Launches, or parts of a megakernel, and the memory objects among their arguments.
  struct Launches {
    double count = 0, objects = 0;
  };

  // What the members are otherwise: horizontal_fusion puts kernels of known sizes together.
  Launches apart(std::span<const std::size_t> members) const {
    Launches all;
    if (!target_.has.horizontal_fusion) return {static_cast<double>(members.size()), 0};
    std::size_t kernels = 0;
    std::set<int> pointers, objects;
    for (const std::size_t i : members) {
      const Kernel& k = kernel(i);
      const bool is_known = k.model_symbols().empty();
      std::set<int> own;
      for (const Operand& o : k.operands) own.insert(o.buffer);
      pointers.insert(own.begin(), own.end());
      if (!is_known || kernels == 0 || kernels == kMostFusedKernels || pointers.size() > kMostFusedPointers) {
        ++all.count;
        all.objects += static_cast<double>(objects.size());
        kernels = 0;
        pointers = own;
        objects.clear();
      }
      for (const int buffer : own) objects.insert(object_of(buffer));
      kernels = is_known ? kernels + 1 : 0;
    }
    all.objects += static_cast<double>(objects.size());
    return all;
  }

  // What stands for the memory object of an argument: scratch and constants are one each where arguments are merged.
  int object_of(int buffer) const {
    const BufferKind kind = schedule_.buffers[static_cast<std::size_t>(buffer)].kind;
    if (!target_.has.one_memory_object || (kind != BufferKind::arena && kind != BufferKind::constant)) return buffer;
    return kind == BufferKind::arena ? -1 : -2;
  }

  Launches together(std::span<const std::size_t> members) const {
    std::vector<const Kernel*> kernels;
    for (const std::size_t i : members) kernels.push_back(&kernel(i));
    const std::size_t objects = RaggedObjects::of_group(schedule_, kernels).list().size();
    return {1, static_cast<double>(objects + 1)};  // and the table
  }

  // Whether one launch for these members of a family takes less than they do apart. Users' bodies are one from two on: who
  // writes a body and does not say otherwise has asked for it.
  bool pays(const Family& family, std::span<const std::size_t> members) const {
    if (members.size() < 2 || family.is_users) return members.size() >= 2;
    double seconds = 0;
    for (const std::size_t i : members) seconds += typical(kernel(i).bytes) / target_.bytes_per_second;
    const GroupCosts costs = group_costs(target_);
    if (static_cast<double>(members.size()) < costs.fewest_members) return false;
    const Launches many = apart(members), one = together(members);
    const double saved = (many.count - one.count) * costs.launch_seconds + (many.objects - one.objects) * costs.object_seconds;
    return saved > cost::kOpenSizesLoss * seconds + costs.search_seconds;
  }

  // Whether there were families of whose members no group that pays is ever ready together.
  bool drops_scattered_families(const Order& order) {
    std::vector<bool> has_group(families_.size(), false);
    for (const std::vector<std::size_t>& launch : order) {
      const int family = family_of_[launch.front()];
      if (family != kNone && launch.size() > 1) has_group[static_cast<std::size_t>(family)] = true;
    }
    bool drops = false;
    for (std::size_t f = 0; f < families_.size(); ++f) {
      if (families_[f].members.empty() || has_group[f]) continue;
      families_[f].members.clear();
      drops = true;
    }
    return drops;
  }

  void drop_small_families() {
    std::fill(family_of_.begin(), family_of_.end(), kNone);
    for (std::size_t f = 0; f < families_.size(); ++f) {
      std::vector<std::size_t>& members = families_[f].members;
      if (!pays(families_[f], members)) members.clear();
      for (const std::size_t i : members) family_of_[i] = static_cast<int>(f);
    }
  }

  void find_order_of_memory() {
    followers_.assign(steps_.size(), {});
    needs_.assign(steps_.size(), 0);
    std::map<int, std::vector<std::pair<std::size_t, MemoryAccess>>> earlier;  // by storage
    std::size_t last_barrier = kNobody;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!steps_[i].is_kernel() || steps_[i].is_beside()) {
        // What is no kernel of its own stays where it is.
        for (std::size_t k = last_barrier == kNobody ? 0 : last_barrier; k < i; ++k) add_need(k, i);
        last_barrier = i;
        earlier.clear();
        continue;
      }
      if (last_barrier != kNobody) add_need(last_barrier, i);
      for (const MemoryAccess& access : accesses_of(kernel(i), schedule_.buffers)) {
        auto& known = earlier[access.storage];
        for (const auto& [k, other] : known) {
          if (k != i && do_conflict(std::span(&other, 1), std::span(&access, 1))) add_need(k, i);
        }
        known.emplace_back(i, access);
      }
    }
  }

  void add_need(std::size_t before, std::size_t after) {
    followers_[before].push_back(after);
    ++needs_[after];
  }

  Order ordered() const {
    Order order;
    std::vector<int> needs = needs_;
    std::set<std::size_t> ready, ready_members;
    std::vector<std::size_t> left(families_.size());
    for (std::size_t f = 0; f < families_.size(); ++f) left[f] = families_[f].members.size();
    const auto make_ready = [&](std::size_t i) { (family_of_[i] == kNone ? ready : ready_members).insert(i); };
    const auto done = [&](std::size_t i) {
      for (const std::size_t next : followers_[i]) {
        if (--needs[next] == 0) make_ready(next);
      }
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (needs[i] == 0) make_ready(i);
    }
    while (!ready.empty() || !ready_members.empty()) {
      if (!ready.empty()) {
        const std::size_t i = *ready.begin();
        ready.erase(ready.begin());
        order.push_back({i});
        done(i);
        continue;
      }
      const std::vector<std::size_t> chosen = most_of_a_family(ready_members, left);
      for (const std::size_t i : chosen) ready_members.erase(i);
      left[static_cast<std::size_t>(family_of_[chosen.front()])] -= chosen.size();
      for (auto& group : split(chosen)) {
        if (pays(families_[static_cast<std::size_t>(family_of_[chosen.front()])], group)) {
          order.push_back(std::move(group));
          continue;
        }
        for (const std::size_t i : group) order.push_back({i});
      }
      for (const std::size_t i : chosen) done(i);
    }
    return order;
  }

  // Of the ready steps those of one family: one that is ready as a whole, if there is any, and of those the largest.
  std::vector<std::size_t> most_of_a_family(const std::set<std::size_t>& ready, const std::vector<std::size_t>& left) const {
    std::map<int, std::vector<std::size_t>> by_family;
    for (const std::size_t i : ready) by_family[family_of_[i]].push_back(i);
    const auto rank = [&](const auto& entry) {
      return std::pair(entry.second.size() == left[static_cast<std::size_t>(entry.first)], entry.second.size());
    };
    return std::max_element(by_family.begin(), by_family.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
        ->second;
  }

  // Groups that pass few enough memory objects.
  Order split(const std::vector<std::size_t>& members) const {
    Order groups;
    RaggedObjects objects(schedule_, true);
    std::size_t symbolic = 0;
    for (const std::size_t i : members) {
      const Kernel& k = kernel(i);
      std::size_t size = 0;
      for (const Axis& axis : k.axes) size += axis.extent.is_constant() ? 0 : axis.extent.size();
      if (groups.empty() || objects.count_with(k) > kMostRaggedObjects || symbolic + size > kMostSymbolicSize) {
        groups.emplace_back();
        objects = RaggedObjects(schedule_, true);
        symbolic = 0;
      }
      groups.back().push_back(i);
      objects.add(k);
      symbolic += size;
    }
    return groups;
  }

  // Most bytes of scratch that are alive at once.
  double peak(const Order& order) const {
    std::map<int, std::pair<std::size_t, std::size_t>> lives;
    for (std::size_t at = 0; at < order.size(); ++at) {
      for (const std::size_t step : order[at]) {
        for (const int buffer : buffers_in(schedule_, steps_[step])) {
          const auto life = lives.emplace(buffer, std::pair(at, at)).first;
          life->second.second = at;
        }
      }
    }
    std::vector<double> change(order.size() + 1, 0);
    for (const auto& [number, life] : lives) {
      const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(number)];
      if (buffer.kind != BufferKind::arena) continue;
      const double bytes = typical(buffer.elements) * static_cast<double>(size_bytes(buffer.dtype));
      change[life.first] += bytes;
      change[life.second + 1] -= bytes;
    }
    double most = 0, now = 0;
    for (const double c : change) most = std::max(most, now += c);
    return most;
  }

  std::vector<Step> steps_of(const Order& order) {
    std::vector<Step> all;
    for (const std::vector<std::size_t>& launch : order) {
      if (launch.size() == 1) {
        all.push_back(std::move(steps_[launch.front()]));
        continue;
      }
      RaggedStep group;
      for (const std::size_t i : launch) group.body.push_back(std::move(steps_[i]));
      all.push_back({std::move(group)});
    }
    return all;
  }

  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  Schedule& schedule_;
  const Target& target_;
  std::set<std::string> bound_;  // symbols that are known before a run
  std::vector<Step> steps_;
  std::vector<Family> families_;
  std::vector<int> family_of_;                       // by step
  std::vector<std::vector<std::size_t>> followers_;  // by step, those that wait for it
  std::vector<int> needs_;                           // by step, how many it waits for
};

}  // namespace

void ragged_groups(Schedule& schedule, const ScheduleContext& context) {
  RaggedGroups groups(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) groups.run(entry.steps);
}

std::string problem_of_group(const Schedule& schedule, const RaggedStep& group) {
  if (group.body.size() < 2) return fmt::format("is a group of {} kernels", group.body.size());
  FamilyKey family;
  std::vector<std::vector<MemoryAccess>> accesses;
  RaggedObjects objects(schedule, true);
  for (const Step& step : group.body) {
    const auto* launched = step.as<KernelStep>();
    if (!launched) return "holds steps that are no kernels";
    if (launched->beside || launched->prefetch) return "holds a kernel that is beside another, or prefetches";
    const Kernel& kernel = schedule.kernel(step);
    FamilyKey key = family_key(kernel);
    if (key.structure.empty()) return fmt::format("holds kernel {}, which is of no family", kernel.name);
    if (accesses.empty())
      family = std::move(key);
    else if (!family.take(key))
      return fmt::format("holds kernel {}, which is of another family than those before it", kernel.name);
    accesses.push_back(accesses_of(kernel, schedule.buffers));
    for (std::size_t i = 0; i + 1 < accesses.size(); ++i) {
      if (do_conflict(accesses[i], accesses.back())) return fmt::format("holds kernel {}, which needs another", kernel.name);
    }
    objects.add(kernel);
  }
  if (objects.list().size() <= kMostRaggedObjects) return "";
  return fmt::format("passes {} memory objects, at most {} fit", objects.list().size(), kMostRaggedObjects);
}

}  // namespace oclc
