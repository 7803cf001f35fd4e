#include "compiler/passes/gradients/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

constexpr std::int64_t kEndless = std::int64_t{1} << 60;

std::int64_t bytes_of(const Value& value) { return static_cast<std::int64_t>(typical_bytes(value.type)); }

// As if it were of floats: a mask goes with what it is made of, which otherwise stays for it.
std::int64_t float_bytes_of(const Value& value) {
  return bytes_of(value) / static_cast<std::int64_t>(size_bytes(value.type.dtype)) * 4;
}

// Values this small are kept, whatever they cost.
constexpr std::int64_t kSmallBytes = std::int64_t{1} << 16;
// Smallest values that are computed again unasked: below, a copy that some reader wants stored costs a launch for little.
constexpr std::int64_t kFreeBytes = std::int64_t{1} << 19;
// Most tensors that one value is computed from alone, without sharing with other values.
constexpr std::size_t kMostLeaves = 8;
// Flops an element of one operator that disappear behind the load of its operand.
constexpr int kFreeFlops = 2;

// One tensor is read instead of another: elementwise on one operand, the others being small (a channel's mean and scale).
bool is_free(const Node& node) {
  if (node.op->kind != OpKind::elementwise || !node.op->scalar || node.op->scalar->flops > kFreeFlops) return false;
  if (node.outputs.size() != 1 || !node.bodies.empty()) return false;
  const std::int64_t bytes = bytes_of(*node.output());
  return bytes >= kSmallBytes && std::count_if(node.inputs.begin(), node.inputs.end(),
                                               [&](const Value* input) { return input && bytes_of(*input) * 8 > bytes; }) == 1;
}

bool is_cheap(const Node& node) {
  const OpKind kind = node.op->kind;
  return node.outputs.size() == 1 && node.bodies.empty() &&
         (kind == OpKind::elementwise || kind == OpKind::movement || kind == OpKind::generator);
}

// Dinic's maximum flow.
class Flow {
 public:
  explicit Flow(std::size_t points) : edges_of_(points), level_(points), next_(points) {}

  void add(std::size_t from, std::size_t to, std::int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  void run(std::size_t source, std::size_t sink) {
    while (reach(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      while (push(source, sink)) {
      }
    }
  }

  // Points from which flow could still reach `sink`.
  std::vector<bool> side_of(std::size_t sink) const {
    std::vector<bool> seen(edges_of_.size(), false);
    std::vector<std::size_t> stack{sink};
    seen[sink] = true;
    while (!stack.empty()) {
      const std::size_t at = stack.back();
      stack.pop_back();
      for (const std::size_t e : edges_of_[at]) {
        const std::size_t from = edges_[e].to;  // the twin edge leads from there to here
        if (seen[from] || edges_[e ^ 1].left == 0) continue;
        seen[from] = true;
        stack.push_back(from);
      }
    }
    return seen;
  }

 private:
  struct Edge {
    std::size_t to;
    std::int64_t left;
  };

  bool reach(std::size_t source, std::size_t sink) {
    std::fill(level_.begin(), level_.end(), -1);
    level_[source] = 0;
    std::vector<std::size_t> queue{source};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const std::size_t e : edges_of_[queue[i]]) {
        if (edges_[e].left == 0 || level_[edges_[e].to] >= 0) continue;
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
    }
    return level_[sink] >= 0;
  }

  // One path of the level graph, without recursion: paths are as long as networks are deep.
  bool push(std::size_t source, std::size_t sink) {
    std::vector<std::size_t> path;
    for (std::size_t at = source; at != sink;) {
      if (next_[at] == edges_of_[at].size()) {
        if (at == source) return false;
        at = edges_[path.back() ^ 1].to;
        path.pop_back();
        ++next_[at];
        continue;
      }
      const std::size_t e = edges_of_[at][next_[at]];
      if (edges_[e].left > 0 && level_[edges_[e].to] == level_[at] + 1) {
        path.push_back(e);
        at = edges_[e].to;
      } else {
        ++next_[at];
      }
    }
    std::int64_t amount = kEndless;
    for (const std::size_t e : path) amount = std::min(amount, edges_[e].left);
    for (const std::size_t e : path) {
      edges_[e].left -= amount;
      edges_[e ^ 1].left += amount;
    }
    return true;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

class Recomputer {
 public:
  // Nodes for which `again` holds may be repeated.
  Recomputer(Graph& graph, std::int64_t smallest_bytes, bool (*again)(const Node&))
      : graph_(graph), smallest_bytes_(smallest_bytes), again_(again) {}

  bool run() {
    find_forward();
    find_crossing();
    if (crossing_.empty()) return false;
    cut();
    bool changed = false;
    for (Value* value : crossing_) {
      Value* again = copy(value);
      if (again == value) continue;
      changed = true;
      const std::vector<Node*> users = value->users;
      for (Node* user : users) {
        if (forward_.count(user) || user->has("recompute")) continue;
        for (std::size_t i = 0; i < user->inputs.size(); ++i) {
          if (user->inputs[i] == value) graph_.set_input(user, i, again);
        }
      }
    }
    if (!changed) return false;
    graph_.sort();
    graph_.erase_dead();
    return true;
  }

 private:
  void find_forward() {
    std::vector<const Node*> stack;
    const auto visit = [&](const Value* value) {
      if (value && value->producer && forward_.insert(value->producer).second) stack.push_back(value->producer);
    };
    for (const auto& [name, value] : graph_.outputs()) {
      const bool is_state = std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                                        [&, &name = name](const auto& input) { return input->name == name; });
      if (!is_state) visit(value);
    }
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (const Value* input : node->inputs) visit(input);
    }
    add_masks();
  }

  // Masks and positions that are made of forward values alone belong to the forward pass, with the movement before them: they
  // are small, and what they are made of need not be kept for them.
  void add_masks() {
    std::unordered_set<const Node*> moved;
    const std::vector<Node*> nodes = graph_.nodes();
    for (const Node* node : nodes) {
      if (forward_.count(node) || node->outputs.size() != 1 || !node->bodies.empty()) continue;
      const OpKind kind = node->op->kind;
      const bool is_mask = kind == OpKind::elementwise && !is_float(node->output()->type.dtype);
      if (!is_mask && kind != OpKind::movement) continue;
      if (!std::all_of(node->inputs.begin(), node->inputs.end(), [&](const Value* input) {
            return !input || !input->producer || input->producer->op->kind == OpKind::generator ||
                   forward_.count(input->producer) || moved.count(input->producer);
          }))
        continue;
      if (is_mask)
        forward_.insert(node);
      else
        moved.insert(node);
    }
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const auto& users = nodes[i]->outputs.size() == 1 ? nodes[i]->output()->users : std::vector<Node*>();
      if (moved.count(nodes[i]) && !users.empty() &&
          std::all_of(users.begin(), users.end(), [&](const Node* user) { return forward_.count(user) != 0; }))
        forward_.insert(nodes[i]);
    }
  }

  void find_crossing() {
    for (Node* node : graph_.nodes()) {
      if (!forward_.count(node) || node->op->kind == OpKind::generator) continue;
      for (const auto& output : node->outputs) {
        if (float_bytes_of(*output) >= smallest_bytes_ &&
            std::any_of(output->users.begin(), output->users.end(), [&](const Node* user) { return !forward_.count(user); }))
          crossing_.push_back(output.get());
      }
    }
  }

  // Each value is an edge of its bytes.
  void cut() {
    std::unordered_map<const Value*, std::size_t> number;
    std::vector<Value*> values;
    for (Node* node : graph_.nodes()) {
      if (!forward_.count(node) || node->op->kind == OpKind::generator) continue;
      for (const auto& output : node->outputs) {
        number[output.get()] = values.size();
        values.push_back(output.get());
      }
    }
    const auto into = [&](std::size_t i) { return 2 + 2 * i; };
    const auto out_of = [&](std::size_t i) { return 3 + 2 * i; };
    Flow flow(2 + 2 * values.size());
    constexpr std::size_t kSource = 0, kSink = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      flow.add(into(i), out_of(i), bytes_of(*values[i]));
      if (!again_(*values[i]->producer)) {
        flow.add(kSource, into(i), kEndless);
        continue;
      }
      for (const Value* input : values[i]->producer->inputs) {
        const auto from = number.find(input);
        if (from != number.end()) flow.add(out_of(from->second), into(i), kEndless);
      }
    }
    for (const Value* value : crossing_) flow.add(out_of(number.at(value)), kSink, kEndless);
    flow.run(kSource, kSink);
    const std::vector<bool> side = flow.side_of(kSink);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (side[out_of(i)] && !side[into(i)]) kept_.insert(values[i]);
    }
  }

  // The value computed again from kept ones; itself if it is kept or cannot be. Copies are shared, but for what lies behind a
  // sum of large tensors: along a residual network, whose every block reads the one before, one shared copy would keep all of a
  // stage in memory at once.
  Value* copy(Value* value) {
    if (position_.empty()) {
      for (const Node* node : graph_.nodes()) position_.emplace(node, position_.size());
    }
    std::unordered_map<const Value*, Value*> alone;
    std::vector<Node*> behind;
    const std::vector<Node*> own = chain_of({value}, true, &behind);
    if (!behind.empty()) {
      std::vector<Value*> sources;
      for (const Node* node : behind) {
        for (Value* input : node->inputs) {
          if (input) sources.push_back(input);
        }
      }
      const std::vector<Node*> rest = chain_of(sources, false, nullptr);
      repeat(rest, goes_alone(rest) ? alone : copies_);
    }
    repeat(own, copies_, &alone);
    const auto known = copies_.find(value);
    return known == copies_.end() ? value : known->second;
  }

  // Nodes to repeat for `values`, in order; with `behind`, without what lies behind those of several large operands, which are
  // collected there. Without recursion, since chains may be long.
  std::vector<Node*> chain_of(std::vector<Value*> stack, bool shared, std::vector<Node*>* behind) const {
    std::vector<Node*> chain;
    std::unordered_set<const Node*> seen;
    while (!stack.empty()) {
      Value* at = stack.back();
      stack.pop_back();
      Node* node = at->producer;
      if (!node || (shared && copies_.count(at)) || kept_.count(at) || !again_(*node) || node->op->kind == OpKind::generator ||
          !forward_.count(node) || !seen.insert(node).second)
        continue;
      chain.push_back(node);
      if (behind && has_large_operands(*node)) {
        behind->push_back(node);
        continue;
      }
      for (Value* input : node->inputs) {
        if (input) stack.push_back(input);
      }
    }
    std::sort(chain.begin(), chain.end(), [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    return chain;
  }

  // Several of the size of the result.
  static bool has_large_operands(const Node& node) {
    const std::int64_t bytes = bytes_of(*node.output());
    return node.op->kind == OpKind::elementwise && bytes >= kSmallBytes &&
           std::count_if(node.inputs.begin(), node.inputs.end(),
                         [&](const Value* input) { return input && bytes_of(*input) == bytes; }) > 1;
  }

  // Light enough to be repeated for one value alone.
  static bool goes_alone(const std::vector<Node*>& chain) {
    std::unordered_set<const Value*> made, leaves;
    for (const Node* node : chain) {
      if (node->op->scalar && node->op->scalar->flops > kFreeFlops && bytes_of(*node->output()) >= kSmallBytes) return false;
      made.insert(node->output());
    }
    for (const Node* node : chain) {
      for (const Value* input : node->inputs) {
        if (input && !made.count(input) && bytes_of(*input) >= kSmallBytes) leaves.insert(input);
      }
    }
    return leaves.size() > 1 && leaves.size() <= kMostLeaves;
  }

  // Copies of the nodes, noted in `made`; operands are taken from there, and first from `nearer`.
  void repeat(const std::vector<Node*>& chain, std::unordered_map<const Value*, Value*>& made,
              const std::unordered_map<const Value*, Value*>* nearer = nullptr) {
    for (Node* node : chain) {
      if (made.count(node->output())) continue;
      std::vector<Value*> inputs;
      for (Value* input : node->inputs) {
        const bool is_near = nearer && input && nearer->count(input);
        inputs.push_back(is_near ? nearer->at(input) : input && made.count(input) ? made.at(input) : input);
      }
      auto attributes = node->attributes;
      attributes["recompute"] = std::int64_t{1};
      Node* copied = graph_.add(*node->op, std::move(inputs), std::move(attributes), node->source);
      copied->output()->layout = node->output()->layout;
      copied->output()->content = node->output()->content;
      if (!node->output()->name.empty()) copied->output()->name = node->output()->name + "/again";
      made[node->output()] = copied->output();
    }
  }

  Graph& graph_;
  const std::int64_t smallest_bytes_;
  bool (*const again_)(const Node&);
  std::unordered_set<const Node*> forward_;
  std::vector<Value*> crossing_;  // read by the rest
  std::unordered_set<const Value*> kept_;
  std::unordered_map<const Value*, Value*> copies_;
  std::unordered_map<const Node*, std::size_t> position_;
};

}  // namespace

bool recompute(Graph& graph, std::int64_t smallest_bytes) {
  const bool changed = smallest_bytes != kRecomputeNone && Recomputer(graph, smallest_bytes, is_cheap).run();
  return Recomputer(graph, kFreeBytes, is_free).run() || changed;
}

}  // namespace oclc
