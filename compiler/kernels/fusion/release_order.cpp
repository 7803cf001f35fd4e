#include "compiler/kernels/fusion/release_order.h"
#include "compiler/targets/costs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

namespace oclc {
namespace {

// Groups that may be brought forward together: packed operands and the contraction that reads them.
constexpr std::size_t kLargestParty = 6;
// Users of what a group uses whose own storage is looked at for more.
constexpr std::size_t kNearUsers = 32;
// Points in the order from which shared storage may be begun early.
constexpr std::size_t kTrials = 24;

// Bytes alive while each group of `order` runs.
std::vector<double> live_bytes(const GroupMemory& memory, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> first(memory.bytes.size(), order.size()), last(memory.bytes.size(), 0);
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const std::size_t storage : memory.uses[order[at]]) {
      first[storage] = std::min(first[storage], at);
      last[storage] = at;
    }
  }
  std::vector<double> change(order.size() + 1, 0);
  for (std::size_t storage = 0; storage < first.size(); ++storage) {
    if (first[storage] == order.size()) continue;
    change[first[storage]] += memory.bytes[storage];
    change[last[storage] + 1] -= memory.bytes[storage];
  }
  std::vector<double> live;
  double now = 0;
  for (std::size_t at = 0; at < order.size(); ++at) live.push_back(now += change[at]);
  return live;
}

class Search {
 public:
  Search(const GroupMemory& memory, const std::vector<std::size_t>& order) : memory_(memory), order_(order) {
    users_.resize(memory.bytes.size());
    walked_.assign(memory.bytes.size(), 0);
    seen_.assign(memory.needs.size(), 0);
    for (const std::size_t id : order) {
      for (const std::size_t storage : memory.uses[id]) users_[storage].push_back(id);
    }
  }

  // From position `begin` of the order on storage that several groups share is begun early, and parts of concatenations count
  // as nothing.
  std::vector<std::size_t> run(std::size_t begin) {
    done_.assign(memory_.needs.size(), false);
    is_made_.assign(memory_.bytes.size(), false);
    uses_left_.clear();
    for (const auto& users : users_) uses_left_.push_back(users.size());
    result_.clear();
    for (std::size_t at = 0; at < order_.size(); ++at) {
      may_share_ = at >= begin;
      if (done_[order_[at]]) continue;
      schedule(order_[at]);
      for (std::size_t next = result_.size() - 1; next < result_.size(); ++next) bring_forward(result_[next]);
    }
    return result_;
  }

 private:
  void schedule(std::size_t id) {
    done_[id] = true;
    for (const std::size_t storage : memory_.uses[id]) {
      is_made_[storage] = true;
      --uses_left_[storage];
    }
    result_.push_back(id);
  }

  // Schedules what the group makes worth it.
  void bring_forward(std::size_t id) {
    ++round_;
    std::vector<std::size_t> direct, candidates;
    for (const std::size_t storage : memory_.uses[id]) {
      for (const std::size_t user : users_[storage]) {
        if (direct.size() == kNearUsers) break;
        if (!done_[user]) direct.push_back(user);
      }
    }
    add_users(id, candidates);
    for (const std::size_t user : direct) add_users(user, candidates);
    std::sort(candidates.begin(), candidates.end());
    for (const std::size_t candidate : candidates) {
      std::vector<std::size_t> party;
      if (done_[candidate] || !is_small_party(candidate)) continue;
      gather(candidate, party);
      if (growth(party) >= 0) continue;
      for (const std::size_t member : party) schedule(member);
    }
  }

  // Those that are not done and not among the candidates of this round. Storage that many groups share is walked once a round.
  void add_users(std::size_t of, std::vector<std::size_t>& candidates) {
    for (const std::size_t storage : memory_.uses[of]) {
      if (std::exchange(walked_[storage], round_) == round_) continue;
      for (const std::size_t user : users_[storage]) {
        if (!done_[user] && std::exchange(seen_[user], round_) != round_) candidates.push_back(user);
      }
    }
  }

  // Whether the group and all that it needs and that is not done are no more than a party. The walk ends with the first too
  // many.
  bool is_small_party(std::size_t id) const {
    std::array<std::size_t, kLargestParty> party = {id};
    std::size_t size = 1;
    for (std::size_t at = 0; at < size; ++at) {
      for (const std::size_t need : memory_.needs[party[at]]) {
        if (done_[need] || std::find(party.begin(), party.begin() + size, need) != party.begin() + size) continue;
        if (size == kLargestParty) return false;
        party[size++] = need;
      }
    }
    return true;
  }

  // The group behind all that it needs and that is not done.
  void gather(std::size_t id, std::vector<std::size_t>& party) const {
    if (done_[id] || std::find(party.begin(), party.end(), id) != party.end()) return;
    for (const std::size_t need : memory_.needs[id]) gather(need, party);
    party.push_back(id);
  }

  // Bytes alive behind the party less those before it.
  double growth(const std::vector<std::size_t>& party) const {
    std::map<std::size_t, std::size_t> used;
    for (const std::size_t id : party) {
      for (const std::size_t storage : memory_.uses[id]) ++used[storage];
    }
    double sum = 0;
    for (const auto& [storage, count] : used) {
      if (!is_made_[storage] && memory_.is_shared[storage] && !may_share_) return 1;
      const bool ends = uses_left_[storage] == count;
      if (!is_made_[storage] && !ends && !memory_.is_shared[storage] && !(memory_.is_part[storage] && may_share_))
        sum += memory_.bytes[storage];
      if (is_made_[storage] && ends) sum -= memory_.bytes[storage];
    }
    return sum;
  }

  const GroupMemory& memory_;
  const std::vector<std::size_t>& order_;
  std::vector<std::vector<std::size_t>> users_;  // groups, by storage
  std::vector<bool> done_, is_made_;
  std::vector<std::size_t> uses_left_, result_;
  std::vector<std::size_t> walked_, seen_;  // the last round that came to the storage, the group
  std::size_t round_ = 0;
  bool may_share_ = false;
};

// Lifts groups over the highest point of the profile whose results wait there for readers far behind, when that releases less
// than it makes: the gradients of large weights whose operands are small.
class Delay {
 public:
  Delay(const GroupMemory& memory, std::vector<std::size_t> order)
      : memory_(memory), order_(std::move(order)), users_(memory.needs.size()) {
    for (std::size_t id = 0; id < users_.size(); ++id) {
      for (const std::size_t need : memory.needs[id]) users_[need].push_back(id);
    }
  }

  std::vector<std::size_t> run() {
    if (order_.empty()) return {};
    highest_ = peak_bytes(memory_, order_);
    double cost = cost_of(order_);
    for (std::size_t round = 0; round < kRounds && improve(cost); ++round) {
    }
    return std::move(order_);
  }

 private:
  static constexpr std::size_t kRounds = 96;      // moves
  static constexpr std::size_t kCandidates = 12;  // groups looked at for each

  double cost_of(const std::vector<std::size_t>& order) const {
    double cost = 0;
    for (const double live : live_bytes(memory_, order)) {
      if (live > highest_) return std::numeric_limits<double>::infinity();
      const double above = std::max(0.0, live / highest_ - cost::kHighMemoryShare);
      cost += above * above;
    }
    return cost;
  }

  bool improve(double& cost) {
    const std::vector<double> live = live_bytes(memory_, order_);
    const auto peak = static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin());
    position_.assign(order_.size(), 0);
    std::vector<std::size_t> makers(memory_.bytes.size());  // first users, by storage
    for (std::size_t at = order_.size(); at-- > 0;) {
      position_[order_[at]] = at;
      for (const std::size_t used : memory_.uses[order_[at]]) makers[used] = order_[at];
    }
    std::vector<std::pair<double, std::size_t>> candidates;  // bytes that the group makes, negative, and the group
    for (std::size_t at = 0; at <= peak; ++at) {
      const std::size_t id = order_[at];
      if (latest(id) <= peak) continue;
      double made = 0;
      for (const std::size_t storage : memory_.uses[id]) {
        if (makers[storage] == id && !memory_.is_shared[storage]) made += memory_.bytes[storage];
      }
      if (made > 0) candidates.emplace_back(-made, id);
    }
    std::sort(candidates.begin(), candidates.end());
    if (candidates.size() > kCandidates) candidates.resize(kCandidates);
    std::vector<std::size_t> best;
    for (const auto& [made, id] : candidates) {
      const std::size_t end = latest(id);
      for (const std::size_t share : {0, 1, 2, 4, 8}) {
        std::vector<std::size_t> moved = lifted(id, peak + (end - 1 - peak) * share / 8);
        const double now = cost_of(moved);
        if (now >= cost) continue;
        cost = now;
        best = std::move(moved);
      }
    }
    if (best.empty()) return false;
    order_ = std::move(best);
    return true;
  }

  // Position of the first group that needs this one.
  std::size_t latest(std::size_t id) const {
    std::size_t end = order_.size();
    for (const std::size_t user : users_[id]) end = std::min(end, position_[user]);
    return end;
  }

  // The order with the group behind position `to`, with those before it that only it needs.
  std::vector<std::size_t> lifted(std::size_t id, std::size_t to) const {
    std::vector<bool> party(order_.size(), false);
    party[id] = true;
    for (std::size_t at = position_[id]; at-- > 0;) {
      const std::size_t other = order_[at];
      party[other] = !users_[other].empty() &&
                     std::all_of(users_[other].begin(), users_[other].end(), [&](std::size_t user) { return party[user]; });
    }
    std::vector<std::size_t> result, late;
    for (std::size_t at = 0; at < order_.size(); ++at) {
      (party[order_[at]] ? late : result).push_back(order_[at]);
      if (at == to) result.insert(result.end(), late.begin(), late.end());
    }
    return result;
  }

  const GroupMemory& memory_;
  std::vector<std::size_t> order_, position_;
  std::vector<std::vector<std::size_t>> users_;  // groups that need a group
  double highest_ = 0;
};

}  // namespace

double peak_bytes(const GroupMemory& memory, const std::vector<std::size_t>& order) {
  const std::vector<double> live = live_bytes(memory, order);
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}
std::vector<std::size_t> release_early(const GroupMemory& memory, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> best = order;
  double lowest = peak_bytes(memory, order);
  Search search(memory, order);
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    std::vector<std::size_t> candidate = search.run(order.size() * trial / kTrials);
    const double peak = peak_bytes(memory, candidate);
    if (peak >= lowest) continue;
    lowest = peak;
    best = std::move(candidate);
  }
  return Delay(memory, std::move(best)).run();
}

}  // namespace oclc
