#include "frontends/onnx/order.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "frontends/onnx/fail.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

void collect(GraphProto& graph, std::vector<std::string_view>& names) {
  std::unordered_set<std::string_view> local;
  for (const auto& input : graph.input()) local.insert(input.name());
  for (const auto& initializer : graph.initializer()) local.insert(initializer.name());
  for (const NodeProto& node : graph.node()) local.insert(node.output().begin(), node.output().end());
  std::vector<std::string_view> used;
  for (NodeProto& node : *graph.mutable_node()) {
    used.insert(used.end(), node.input().begin(), node.input().end());
    for (GraphProto* inner : subgraphs(node)) collect(*inner, used);
  }
  for (const auto& output : graph.output()) used.push_back(output.name());
  for (const std::string_view name : used) {
    if (!name.empty() && !local.count(name)) names.push_back(name);
  }
}

[[noreturn]] void fail_cycle(const std::vector<NodeProto*>& nodes, const std::vector<int>& cycle) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
    const auto at = static_cast<std::size_t>(cycle[i]);
    text += fmt::format("{}'{}'", i ? " -> " : "", printable(node_label(*nodes[at], cycle[i])));
  }
  if (cycle.size() > kShown) text += fmt::format(" -> {} more", cycle.size() - kShown);
  const auto first = static_cast<std::size_t>(cycle[0]);
  text += fmt::format(" -> '{}'", printable(node_label(*nodes[first], cycle[0])));
  fail("a graph without cycles", text);
}

}  // namespace

bool is_control(const NodeProto& node) {
  const std::string op = op_label(node);
  return op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap" || op == "ai.onnx.preview.FlexAttention";
}

bool is_gradient(const NodeProto& node) { return op_label(node) == "ai.onnx.preview.training.Gradient"; }

std::vector<std::string_view> captured_names(NodeProto& node) {
  std::vector<std::string_view> names;
  for (GraphProto* graph : subgraphs(node)) collect(*graph, names);
  if (is_gradient(node)) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "y") names.push_back(attribute.s());
      if (attribute.name() == "xs" || attribute.name() == "zs")
        names.insert(names.end(), attribute.strings().begin(), attribute.strings().end());
    }
  }
  return names;
}

Ordered order_nodes(const std::vector<NodeProto*>& nodes, const std::vector<std::string_view>& wanted) {
  std::unordered_map<std::string_view, int> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i]->output()) {
      if (!output.empty()) producer.emplace(output, static_cast<int>(i));
    }
  }
  std::vector<std::vector<int>> needs(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto need = [&](std::string_view name) {
      const auto at = producer.find(name);
      if (!name.empty() && at != producer.end()) needs[i].push_back(at->second);
    };
    for (const std::string& input : nodes[i]->input()) need(input);
    for (const std::string_view name : captured_names(*nodes[i])) need(name);
  }
  Ordered out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const int need : needs[i]) out.was_sorted = out.was_sorted && static_cast<std::size_t>(need) < i;
  }
  // Depth first from every node, in the file's order: 0 is unseen, 1 on the stack, 2 placed.
  std::vector<char> state(nodes.size(), 0);
  std::vector<int> order;
  order.reserve(nodes.size());
  std::vector<std::pair<int, std::size_t>> stack;  // node, next of its needs
  for (std::size_t root = 0; root < nodes.size(); ++root) {
    if (state[root] == 0) {
      state[root] = 1;
      stack.emplace_back(static_cast<int>(root), 0);
    }
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const auto at = static_cast<std::size_t>(node);
      if (next == needs[at].size()) {
        state[at] = 2;
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const int need = needs[at][next++];
      char& seen = state[static_cast<std::size_t>(need)];
      if (seen == 1) {
        // The cycle in the direction the data flows: from the needed node up the stack.
        std::vector<int> cycle;
        for (std::size_t i = stack.size(); i-- > 0;) {
          cycle.push_back(stack[i].first);
          if (stack[i].first == need) break;
        }
        std::rotate(cycle.begin(), std::prev(cycle.end()), cycle.end());
        fail_cycle(nodes, cycle);
      }
      if (seen == 0) {
        seen = 1;
        stack.emplace_back(need, 0);
      }
    }
  }
  std::vector<char> live(nodes.size(), 0);
  for (const std::string_view name : wanted) {
    const auto at = producer.find(name);
    if (at != producer.end()) live[static_cast<std::size_t>(at->second)] = 1;
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto at = static_cast<std::size_t>(order[i]);
    if (!live[at]) continue;
    for (const int need : needs[at]) live[static_cast<std::size_t>(need)] = 1;
  }
  for (const int node : order) {
    if (live[static_cast<std::size_t>(node)]) out.schedule.push_back(node);
  }
  return out;
}

}  // namespace oclc::onnx
