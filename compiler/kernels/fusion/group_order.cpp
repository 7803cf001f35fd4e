#include "compiler/kernels/fusion/group_order.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>

#include "compiler/ir/typical.h"
#include "compiler/kernels/fusion/release_order.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

class Order {
 public:
  Order(const Graph& graph, const std::vector<Group>& groups, const std::unordered_map<const Node*, int>& group_of,
        const std::unordered_map<const Value*, const Node*>& placed_in)
      : graph_(graph), groups_(groups), group_of_(group_of), placed_in_(placed_in) {
    std::size_t next = 0;
    for (const Node* node : graph.nodes()) position_[node] = next++;
  }

  std::vector<std::size_t> run() {
    for (std::size_t id = 0; id < groups_.size(); ++id) needs_.push_back(needs(id));
    let_readers_of_state_go_first();
    std::vector<int> state(groups_.size(), 0);
    std::vector<std::size_t> order;
    for (std::size_t root = 0; root < groups_.size(); ++root) visit(root, state, order);
    return release_early(memory(), order);
  }

 private:
  std::optional<int> group_of(const Node* node) const {
    const auto at = group_of_.find(node);
    return at == group_of_.end() ? std::nullopt : std::optional(at->second);
  }

  std::vector<std::size_t> needs(std::size_t id) const {
    std::vector<std::size_t> found;
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> stack(groups_[id].nodes.begin(), groups_[id].nodes.end());
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (const Value* input : node->inputs) {
        if (!input || !input->producer || !seen.insert(input->producer).second) continue;
        const auto group = group_of(input->producer);
        if (!group)
          stack.push_back(input->producer);
        else if (static_cast<std::size_t>(*group) != id)
          found.push_back(static_cast<std::size_t>(*group));
      }
    }
    std::sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
      return position_.at(groups_[a].nodes.front()) < position_.at(groups_[b].nodes.front());
    });
    return found;
  }

  // Graph inputs that the group reads, through inlined nodes too.
  std::unordered_set<std::string> inputs_of(std::size_t id) const {
    std::unordered_set<std::string> names;
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> stack(groups_[id].nodes.begin(), groups_[id].nodes.end());
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (const Value* input : node->inputs) {
        if (!input) continue;
        if (!input->producer)
          names.insert(input->name);
        else if (!group_of(input->producer) && seen.insert(input->producer).second)
          stack.push_back(input->producer);
      }
    }
    return names;
  }

  // Graph outputs that the group writes, whole or a part of.
  std::vector<std::string> outputs_of(std::size_t id) const {
    std::vector<std::string> names;
    for (const Value* value : groups_[id].outputs) {
      for (auto at = placed_in_.find(value); at != placed_in_.end(); at = placed_in_.find(value)) value = at->second->output();
      for (const auto& [name, output] : graph_.outputs()) {
        if (output == value) names.push_back(name);
      }
    }
    return names;
  }

  // Storage is what a group stores; of placed concatenations the parts that follow each other in memory, else the whole.
  GroupMemory memory() const {
    GroupMemory result;
    result.needs = needs_;
    result.uses.resize(groups_.size());
    std::unordered_map<const Value*, std::size_t> storage_of;
    const auto storage = [&](const Value* value, bool is_output) {
      const auto [known, is_new] = storage_of.emplace(value, result.bytes.size());
      if (is_new) {
        result.bytes.push_back(is_output ? 0 : typical_bytes(value->type));
        result.is_shared.push_back(false);
        result.is_part.push_back(false);
      }
      return known->second;
    };
    const auto use = [&](std::size_t id, std::size_t used) {
      auto& uses = result.uses[id];
      if (std::find(uses.begin(), uses.end(), used) == uses.end()) uses.push_back(used);
    };
    for (std::size_t id = 0; id < groups_.size(); ++id) {
      for (const Value* output : groups_[id].outputs) {
        const Value* root = output;
        bool in_ranges = true;
        for (auto at = placed_in_.find(root); at != placed_in_.end(); at = placed_in_.find(root)) {
          in_ranges = in_ranges && joins_ranges(*at->second);
          root = at->second->output();
        }
        const std::size_t written = storage(in_ranges ? output : root, graph_.is_output(root));
        use(id, written);
        if (root == output) continue;
        (in_ranges ? result.is_part : result.is_shared)[written] = true;
      }
    }
    for (std::size_t id = 0; id < groups_.size(); ++id) {
      std::unordered_set<const Node*> seen;
      std::vector<const Node*> stack(groups_[id].nodes.begin(), groups_[id].nodes.end());
      const auto read = [&](const Value* value) {
        while (!storage_of.count(value)) value = placed_in_.at(value)->output();
        use(id, storage_of.at(value));
      };
      while (!stack.empty()) {
        const Node* node = stack.back();
        stack.pop_back();
        for (const Value* input : node->inputs) {
          if (!input || !input->producer) continue;
          const auto group = group_of(input->producer);
          if (!group && seen.insert(input->producer).second) stack.push_back(input->producer);
          if (group && static_cast<std::size_t>(*group) != id) read(input);
        }
      }
    }
    return result;
  }

  // True if each operand of the concatenation is a range of its memory.
  static bool joins_ranges(const Node& concat) {
    const Value& whole = *concat.output();
    return whole.layout.is_row_major() &&
           product(std::span(whole.type.shape).first(static_cast<std::size_t>(concat.get<std::int64_t>("axis")))) == Expr(1);
  }

  bool reaches(std::size_t from, std::size_t to) const {
    std::vector<bool> seen(groups_.size(), false);
    std::vector<std::size_t> stack{from};
    while (!stack.empty()) {
      const std::size_t id = stack.back();
      stack.pop_back();
      if (id == to) return true;
      if (seen[id]) continue;
      seen[id] = true;
      stack.insert(stack.end(), needs_[id].begin(), needs_[id].end());
    }
    return false;
  }

  // An output with the name of an input is the new value of the same storage: whoever writes it waits for those that read the
  // old one, where that is possible.
  void let_readers_of_state_go_first() {
    std::unordered_set<std::string> state;
    for (const auto& input : graph_.inputs()) {
      if (std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const auto& o) { return o.first == input->name; }))
        state.insert(input->name);
    }
    if (state.empty()) return;
    std::vector<std::unordered_set<std::string>> read;
    for (std::size_t id = 0; id < groups_.size(); ++id) read.push_back(inputs_of(id));
    for (std::size_t writer = 0; writer < groups_.size(); ++writer) {
      for (const std::string& name : outputs_of(writer)) {
        if (!state.count(name)) continue;
        for (std::size_t reader = 0; reader < groups_.size(); ++reader) {
          if (reader != writer && read[reader].count(name) && !reaches(reader, writer)) needs_[writer].push_back(reader);
        }
      }
    }
  }

  void visit(std::size_t root, std::vector<int>& state, std::vector<std::size_t>& order) const {
    struct Frame {
      std::size_t id;
      std::size_t next = 0;
    };
    if (state[root] != 0) return;
    std::vector<Frame> stack;
    stack.push_back({root});
    state[root] = 1;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == needs_[frame.id].size()) {
        state[frame.id] = 2;
        order.push_back(frame.id);
        stack.pop_back();
        continue;
      }
      const std::size_t next = needs_[frame.id][frame.next++];
      OCLC_CHECK(state[next] != 1, "groups need each other");
      if (state[next] != 0) continue;
      state[next] = 1;
      stack.push_back({next});
    }
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const std::unordered_map<const Node*, int>& group_of_;
  const std::unordered_map<const Value*, const Node*>& placed_in_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::vector<std::vector<std::size_t>> needs_;  // by group: those that go before it
};

}  // namespace

std::vector<std::size_t> order_groups(const Graph& graph, const std::vector<Group>& groups,
                                      const std::unordered_map<const Node*, int>& group_of,
                                      const std::unordered_map<const Value*, const Node*>& placed_in) {
  return Order(graph, groups, group_of, placed_in).run();
}

}  // namespace oclc
