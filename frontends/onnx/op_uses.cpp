#include "frontends/onnx/op_uses.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <numeric>
#include <set>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/order.h"
#include "frontends/onnx/table.h"
#include "frontends/op/custom_op.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

constexpr std::size_t kNamesShown = 3;

class Collector {
 public:
  Collector(const CheckedModel& model, bool only_needed, bool branches, const CustomOps* own)
      : model_(model), only_needed_(only_needed), branches_(branches), own_(own) {}

  void graph(GraphProto& graph, const Opsets& opsets) {
    const Schedule& needed = model_.schedules.at(&graph);
    nodes(*graph.mutable_node(), needed, opsets);
  }

  std::vector<OpUse> result() {
    std::vector<OpUse> out;
    for (auto& [key, use] : uses_) out.push_back(std::move(use));
    return out;
  }

 private:
  template <class Nodes>
  void nodes(Nodes& list, const Schedule& needed, const Opsets& opsets) {
    Schedule all(needed);
    if (!only_needed_) {
      all.resize(static_cast<std::size_t>(list.size()));
      std::iota(all.begin(), all.end(), 0);
    }
    for (const int i : all) node(*list.Mutable(i), i, opsets);
  }

  void node(NodeProto& node, int index, const Opsets& opsets) {
    if (const Function* callee = model_.callee(node)) {
      if (seen_.insert(callee).second) nodes(*callee->proto->mutable_node(), callee->schedule, callee->opsets);
      return;
    }
    const std::string domain = domain_name(node.domain());
    const auto version = opsets.find(domain);
    OpUse& use = uses_[{domain, node.op_type()}];
    use.domain = domain;
    use.op = node.op_type();
    use.opset = version == opsets.end() ? 0 : version->second;
    const std::string op = op_label(node);
    use.supported = is_control(node) || is_gradient(node) || find_row(op, use.opset) != nullptr || (own_ && own_->find(op));
    ++use.count;
    if (use.first_nodes.size() < kNamesShown) use.first_nodes.push_back(node_label(node, index));
    if (!branches_) return;
    for (GraphProto* inner : subgraphs(node)) graph(*inner, opsets);
  }

  const CheckedModel& model_;
  bool only_needed_, branches_;
  const CustomOps* own_;
  std::map<std::pair<std::string, std::string>, OpUse> uses_;
  std::set<const Function*> seen_;
};

}  // namespace

std::vector<OpUse> op_uses(const CheckedModel& model, GraphProto& graph, const Opsets& opsets, bool only_needed, bool branches,
                           const CustomOps* own) {
  Collector collector(model, only_needed, branches, own);
  collector.graph(graph, opsets);
  return collector.result();
}

void require_supported(const std::vector<OpUse>& uses) {
  std::string text, advice = "`oclc --list-ops` lists all operators of a model";
  for (const OpUse& use : uses) {
    if (use.supported) continue;
    if (use.domain == "com.microsoft.nchwc" && advice.find("EXTENDED") == std::string::npos)
      advice +=
          "; ONNX Runtime laid the model out for the machine that it was saved on: save it at ORT_ENABLE_EXTENDED or below";
    const bool others = !use.domain.empty() && !use.domain.starts_with("com.microsoft") && !use.domain.starts_with("ai.onnx");
    if (others && advice.find("--op") == std::string::npos)
      advice += "; `--op FILE` gives what an operator outside of ONNX computes (`oclc new-op` writes such a file)";
    std::string names;
    for (const std::string& name : use.first_nodes) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", printable(name));
    if (use.count > static_cast<std::int64_t>(use.first_nodes.size())) names += ", ...";
    const std::string op = use.domain.empty() ? use.op : use.domain + "." + use.op;
    text += fmt::format("{}{} (opset {}): {} {}: {}", text.empty() ? "" : "; ", printable(op), use.opset, use.count,
                        use.count == 1 ? "node" : "nodes", names);
  }
  if (!text.empty()) fail(std::string(kSupportedOnly), text, advice, ExitCode::unsupported);
}

}  // namespace oclc::onnx
