#include "frontends/onnx/functions.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <unordered_map>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/import.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

class CallCounter {
 public:
  CallCounter(CheckedModel& model, const ImportLimits& limits) : model_(model), limits_(limits) {}

  template <class Nodes>
  std::int64_t count(Nodes& nodes) {
    std::int64_t total = 0;
    for (NodeProto& node : nodes) {
      total += 1;
      for (GraphProto* graph : subgraphs(node)) total += count(*graph->mutable_node());
      const auto at = model_.functions.empty() ? model_.functions.end() : model_.functions.find(function_key(node));
      if (at != model_.functions.end()) total += count_function(at->second);
      if (total > limits_.nodes) {
        fail(fmt::format("at most {} nodes after functions are expanded", limits_.nodes), "more",
             "the limit is there against damaged and hostile files");
      }
    }
    return total;
  }

 private:
  std::int64_t count_function(Function& function) {
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      if (stack_[i] != &function) continue;
      std::string circle;
      for (std::size_t j = i; j < stack_.size(); ++j) circle += fmt::format("'{}' -> ", printable(stack_[j]->proto->name()));
      fail("functions that do not call themselves", fmt::format("{}'{}'", circle, printable(function.proto->name())));
    }
    if (const auto at = counted_.find(&function); at != counted_.end()) return at->second;
    if (stack_.size() >= kDeepestCalls)
      fail(fmt::format("functions that call each other at most {} deep", kDeepestCalls), "deeper calls");
    stack_.push_back(&function);
    function.nodes = count(*function.proto->mutable_node());
    stack_.pop_back();
    return counted_[&function] = function.nodes;
  }

  CheckedModel& model_;
  const ImportLimits& limits_;
  std::vector<const Function*> stack_;
  std::unordered_map<const Function*, std::int64_t> counted_;
};

}  // namespace

void count_calls(CheckedModel& model, GraphProto& graph, const ImportLimits& limits) {
  CallCounter counter(model, limits);
  counter.count(*graph.mutable_node());
  // Functions that nobody calls are checked for circles too.
  for (auto& [name, function] : model.functions) counter.count(*function.proto->mutable_node());
}

}  // namespace oclc::onnx
