// What validation finds out about a model; the rest of the importer relies on it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace oclc_onnx {
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace oclc_onnx

namespace oclc {
struct ImportOptions;
}

namespace oclc::onnx {

class ExternalFiles;

// Versions by domain; ONNX's own domain is "".
using Opsets = std::map<std::string, std::int64_t, std::less<>>;

// The nodes that some output needs, in an order that defines values before they are used.
using Schedule = std::vector<int>;

struct Function {
  oclc_onnx::FunctionProto* proto = nullptr;
  Opsets opsets;
  Schedule schedule;
  std::int64_t nodes = 0;  // after its own calls are expanded
};

// Domain, name and overload: what a node calls a function by.
using FunctionKey = std::array<std::string, 3>;

struct CheckedModel {
  std::int64_t ir_version = 0;
  Opsets opsets;
  std::map<FunctionKey, Function> functions;
  std::unordered_map<const oclc_onnx::GraphProto*, Schedule> schedules;

  // The function that a node calls, or null.
  const Function* callee(const oclc_onnx::NodeProto& node) const;
};

inline constexpr int kDeepestCalls = 64;

// "ai.onnx" and "" are one domain.
std::string domain_name(std::string_view domain);
FunctionKey function_key(const oclc_onnx::NodeProto& node);
// The node's name, or "<op>_<index>".
std::string node_label(const oclc_onnx::NodeProto& node, int index);
// "Conv", "com.microsoft.Gelu"
std::string op_label(const oclc_onnx::NodeProto& node);

// Throws a CompileError unless everything in the model is consistent; registers external data with `files`.
CheckedModel check_model(oclc_onnx::ModelProto& model, const ImportOptions& options, ExternalFiles& files);

// Sub-graphs held by a node's attributes.
std::vector<oclc_onnx::GraphProto*> subgraphs(oclc_onnx::NodeProto& node);

}  // namespace oclc::onnx
