// The order in which a graph's nodes are read.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/model/model.h"

namespace oclc::onnx {

struct Ordered {
  Schedule schedule;
  bool was_sorted = true;
};

// `nodes` in their file's order and the names of the results wanted. Names nobody produces count as given. CompileError naming
// its nodes if there is a cycle. Linear in the number of uses; no recursion over nodes.
Ordered order_nodes(const std::vector<oclc_onnx::NodeProto*>& nodes, const std::vector<std::string_view>& wanted);

// If, Loop, Scan, SequenceMap or FlexAttention.
bool is_control(const oclc_onnx::NodeProto& node);
// The operator Gradient of ONNX's training domain.
bool is_gradient(const oclc_onnx::NodeProto& node);

// Names from outside that the sub-graphs of `node` use, and those that a Gradient speaks of.
std::vector<std::string_view> captured_names(oclc_onnx::NodeProto& node);

}  // namespace oclc::onnx
