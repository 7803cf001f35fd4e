// The checks of a model's structure: everything that later steps take for granted.
#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <unordered_set>

#include "frontends/onnx/attributes.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/functions.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/model/external.h"
#include "frontends/onnx/model/model.h"
#include "frontends/onnx/model/tensors.h"
#include "frontends/onnx/order.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::AttributeProto;
using oclc_onnx::FunctionProto;
using oclc_onnx::GraphProto;
using oclc_onnx::ModelProto;
using oclc_onnx::NodeProto;
using oclc_onnx::TypeProto;
using oclc_onnx::ValueInfoProto;

using Names = std::unordered_set<std::string_view>;

// Names a graph may use: its own, then those of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  Names names;

  bool has(std::string_view name) const {
    for (const Scope* at = this; at; at = at->outer) {
      if (at->names.count(name)) return true;
    }
    return false;
  }
};

// A map may be an input of the model: it is two vectors then.
void check_value_type(const ValueInfoProto& value, std::string_view role, bool type_needed, bool takes_map = false) {
  const std::string where = fmt::format("{} '{}'", role, printable(value.name()));
  const auto refuse = [&](std::string_view kind, std::string advice = {}) {
    fail(where + " as a tensor of numbers", std::string(kind), std::move(advice), ExitCode::unsupported);
  };
  const TypeProto* type = &value.type();
  if (takes_map && type->has_map_type()) {
    element_type(type->map_type().key_type(), where + " (its keys)");
    type = &type->map_type().value_type();
  }
  if (type->has_optional_type()) type = &type->optional_type().elem_type();
  if (type->has_sequence_type()) type = &type->sequence_type().elem_type();
  switch (type->value_case()) {
    case TypeProto::kTensorType:
      break;
    case TypeProto::kSequenceType:
      refuse("a sequence of sequences");
      break;
    case TypeProto::kMapType:
      refuse("a map");
      break;
    case TypeProto::kOptionalType:
      refuse("an optional in a sequence or an optional");
      break;
    case TypeProto::kOpaqueType:
      refuse("a value of an opaque type");
      break;
    case TypeProto::kSparseTensorType:
      refuse("a sparse tensor");
      break;
    case TypeProto::VALUE_NOT_SET:
      if (type_needed) fail(where + " with a type", "none");
      return;
  }
  const auto& tensor = type->tensor_type();
  if (tensor.elem_type() == 0 && !type_needed) return;
  element_type(tensor.elem_type(), where);
}

class Validator {
 public:
  Validator(ModelProto& model, const ImportOptions& options, ExternalFiles& files)
      : model_(model), options_(options), files_(files) {}

  CheckedModel run() {
    if (!model_.has_graph()) fail("an ONNX model with a graph", "none");
    check_ir_version();
    out_.opsets = opsets(model_.opset_import(), "the model");
    for (FunctionProto& function : *model_.mutable_functions()) check_function(function);
    GraphProto& graph = *model_.mutable_graph();
    if (graph.output_size() == 0) fail("a graph with outputs", "none");
    if (graph.node_size() == 0) fail("a graph with nodes", "none");
    check_graph(graph, nullptr, false);
    count_calls(out_, graph, options_.limits);
    return std::move(out_);
  }

 private:
  void warn(const std::string& text) const {
    if (options_.warn) options_.warn(text);
  }

  void check_ir_version() {
    out_.ir_version = model_.ir_version();
    if (out_.ir_version <= 0)
      fail("an ir_version of 1 or more", model_.has_ir_version() ? std::to_string(out_.ir_version) : "none",
           "the file may be damaged");
    if (out_.ir_version > kNewestIrVersion)
      warn(fmt::format("ir_version {} is newer than {}, the newest known", out_.ir_version, kNewestIrVersion));
  }

  template <class Imports>
  Opsets opsets(const Imports& imports, const std::string& whose) const {
    Opsets versions;
    for (const auto& import : imports) {
      const auto [at, fresh] = versions.emplace(domain_name(import.domain()), import.version());
      if (!fresh && at->second != import.version()) {
        fail(fmt::format("one opset version for domain '{}' in {}", printable(at->first), whose),
             fmt::format("{} and {}", at->second, import.version()));
      }
    }
    if (versions.empty()) fail(fmt::format("opset imports in {}", whose), "none");
    for (const auto& [domain, version] : versions) {
      constexpr std::int64_t kAbsurd = 10'000;
      if (version <= 0 || version > kAbsurd)
        fail(fmt::format("an opset version from 1 to {} for domain '{}'", kAbsurd, printable(domain)), std::to_string(version));
    }
    const auto own = versions.find("");
    if (own == versions.end()) return versions;
    if (own->second > kNewestOpset && !options_.allow_newer_opset) {
      fail(fmt::format("opset 1 to {}", kNewestOpset), fmt::format("opset {} > {}", own->second, kNewestOpset),
           "operators that did not change could be tried with --allow-newer-opset", ExitCode::unsupported);
    }
    return versions;
  }

  void check_function(FunctionProto& proto) {
    const std::string where = fmt::format("function '{}'", printable(proto.name()));
    if (proto.name().empty()) fail("functions with names", "one without");
    const auto [at, fresh] = out_.functions.try_emplace({domain_name(proto.domain()), proto.name(), proto.overload()});
    if (!fresh) fail(where + " once", "twice");
    Function& function = at->second;
    function.proto = &proto;
    function.opsets = opsets(proto.opset_import(), where);
    for (AttributeProto& attribute : *proto.mutable_attribute_proto()) check_attribute(attribute, where, true, nullptr);
    Scope scope;
    for (const std::string& input : proto.input()) {
      if (input.empty() || !scope.names.insert(input).second)
        fail(where + " with different names of inputs", fmt::format("'{}' twice", printable(input)));
    }
    std::vector<NodeProto*> nodes = pointers(*proto.mutable_node());
    define_outputs(nodes, scope, nullptr);
    check_nodes(nodes, scope, true);
    Names outputs;
    std::vector<std::string_view> wanted(proto.output().begin(), proto.output().end());
    for (const std::string_view output : wanted) {
      if (!outputs.insert(output).second) fail(where + " with different outputs", fmt::format("'{}' twice", printable(output)));
      if (!scope.has(output)) unknown_output(output, scope);
    }
    function.schedule = order(nodes, wanted, where);
  }

  void check_graph(GraphProto& graph, const Scope* outer, bool in_function) {
    Scope scope{outer, {}};
    Names inputs;
    for (const ValueInfoProto& input : graph.input()) {
      if (input.name().empty()) fail("graph inputs with names", "one without");
      if (!inputs.insert(input.name()).second)
        fail("different names of graph inputs", fmt::format("'{}' twice", printable(input.name())));
      check_value_type(input, "input", outer == nullptr, outer == nullptr);
    }
    for (auto& sparse : *graph.mutable_sparse_initializer()) {
      const std::string where = fmt::format("sparse initializer '{}'", printable(sparse.values().name()));
      for (const auto* tensor : {&sparse.values(), &sparse.indices()}) {
        if (tensor->data_location() == oclc_onnx::TensorProto::EXTERNAL) files_.declare(*tensor, where, std::nullopt);
      }
      fail(where + " as a dense tensor", "a sparse one", "store it densely", ExitCode::unsupported);
    }
    for (const auto& tensor : graph.initializer()) {
      if (tensor.name().empty()) fail("initializers with names", "one without");
      if (!scope.names.insert(tensor.name()).second)
        fail("different names of initializers", fmt::format("'{}' twice", printable(tensor.name())));
      check_tensor(tensor, fmt::format("initializer '{}'", printable(tensor.name())), options_.limits, files_);
    }
    scope.names.insert(inputs.begin(), inputs.end());
    std::vector<NodeProto*> nodes = pointers(*graph.mutable_node());
    define_outputs(nodes, scope, &inputs);
    check_nodes(nodes, scope, in_function);
    Names outputs;
    std::vector<std::string_view> wanted;
    for (const ValueInfoProto& output : graph.output()) {
      if (!outputs.insert(output.name()).second)
        fail("different names of graph outputs", fmt::format("'{}' twice", printable(output.name())));
      if (!scope.has(output.name())) unknown_output(output.name(), scope);
      if (!is_zip_map(nodes, output.name())) check_value_type(output, "output", false);
      wanted.push_back(output.name());
    }
    out_.schedules[&graph] = order(nodes, wanted, outer ? "a sub-graph" : "the graph");
  }

  // Its result is read as a tensor, whatever the file says of it.
  static bool is_zip_map(const std::vector<NodeProto*>& nodes, std::string_view output) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodeProto* node) {
      return node->output_size() == 1 && node->output(0) == output && op_label(*node) == "ai.onnx.ml.ZipMap";
    });
  }

  template <class List>
  static std::vector<NodeProto*> pointers(List& list) {
    std::vector<NodeProto*> all;
    for (NodeProto& node : list) all.push_back(&node);
    return all;
  }

  Schedule order(const std::vector<NodeProto*>& nodes, const std::vector<std::string_view>& wanted,
                 const std::string& where) const {
    Ordered ordered = order_nodes(nodes, wanted);
    if (!ordered.was_sorted) warn(fmt::format("the nodes of {} are not in topological order; they were sorted", where));
    return std::move(ordered.schedule);
  }

  [[noreturn]] static void fail_at(const NodeProto& node, std::size_t index, std::string wanted, std::string found,
                                   std::string advice = {}) {
    throw CompileError({.stage = "import",
                        .node = printable(node_label(node, static_cast<int>(index))),
                        .op = printable(op_label(node)),
                        .wanted = std::move(wanted),
                        .found = std::move(found),
                        .advice = std::move(advice)});
  }

  static void unknown_output(std::string_view name, const Scope& scope) {
    NearestName nearest(name);
    for (const std::string_view candidate : scope.names) nearest.offer(candidate);
    fail(fmt::format("a node that produces the output '{}'", printable(name)), "none", nearest.hint());
  }

  static void define_outputs(const std::vector<NodeProto*>& nodes, Scope& scope, const Names* inputs) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i]->op_type().empty()) fail_at(*nodes[i], i, "an operator type", "none");
      for (const std::string& output : nodes[i]->output()) {
        if (output.empty() || scope.names.insert(output).second) continue;
        const bool input = inputs && inputs->count(output);
        fail_at(*nodes[i], i, "outputs with names of their own",
                fmt::format("'{}', which {}", printable(output), input ? "is a graph input" : "exists already"));
      }
    }
  }

  void check_nodes(const std::vector<NodeProto*>& nodes, const Scope& scope, bool in_function) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      NodeProto& node = *nodes[i];
      for (const std::string& input : node.input()) {
        if (input.empty() || scope.has(input)) continue;
        NearestName nearest(input);
        for (const Scope* at = &scope; at; at = at->outer) {
          for (const std::string_view candidate : at->names) nearest.offer(candidate);
        }
        fail_at(node, i, fmt::format("an input '{}' that something defines", printable(input)), "none", nearest.hint());
      }
      Names attributes;
      const std::string where =
          fmt::format("node '{}' ({})", printable(node_label(node, static_cast<int>(i))), printable(op_label(node)));
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (!attributes.insert(attribute.name()).second)
          fail_at(node, i, "each attribute once", fmt::format("'{}' twice", printable(attribute.name())));
        check_attribute(attribute, where, in_function, &scope);
      }
    }
  }

  // `scope` is what sub-graphs see; none: sub-graphs are not allowed here.
  void check_attribute(AttributeProto& attribute, const std::string& where, bool in_function, const Scope* scope) {
    const std::string name = fmt::format("{}: attribute '{}'", where, printable(attribute.name()));
    if (attribute.name().empty()) fail(where + " with names of its attributes", "one without");
    check_attribute_form(attribute, name, in_function);
    const auto check_one = [&](oclc_onnx::TensorProto& tensor) { check_tensor(tensor, name, options_.limits, files_); };
    if (attribute.has_t()) check_one(*attribute.mutable_t());
    for (auto& tensor : *attribute.mutable_tensors()) check_one(tensor);
    if (attribute.has_sparse_tensor() || attribute.sparse_tensors_size() > 0)
      fail(name + " as a dense tensor", "a sparse one", {}, ExitCode::unsupported);
    if (attribute.has_g() || attribute.graphs_size() > 0) {
      if (!scope) fail(name + " without a sub-graph", "one");
      if (attribute.has_g()) check_graph(*attribute.mutable_g(), scope, in_function);
      for (GraphProto& graph : *attribute.mutable_graphs()) check_graph(graph, scope, in_function);
    }
  }

  ModelProto& model_;
  const ImportOptions& options_;
  ExternalFiles& files_;
  CheckedModel out_;
};

}  // namespace

const Function* CheckedModel::callee(const NodeProto& node) const {
  if (functions.empty()) return nullptr;
  const auto at = functions.find(function_key(node));
  return at == functions.end() ? nullptr : &at->second;
}

std::string domain_name(std::string_view domain) { return domain == "ai.onnx" ? std::string() : std::string(domain); }

FunctionKey function_key(const NodeProto& node) { return {domain_name(node.domain()), node.op_type(), node.overload()}; }

std::string node_label(const NodeProto& node, int index) {
  return node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name();
}

std::string op_label(const NodeProto& node) {
  const std::string domain = domain_name(node.domain());
  return domain.empty() ? node.op_type() : domain + "." + node.op_type();
}

std::vector<GraphProto*> subgraphs(NodeProto& node) {
  std::vector<GraphProto*> graphs;
  for (AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) graphs.push_back(attribute.mutable_g());
    for (GraphProto& graph : *attribute.mutable_graphs()) graphs.push_back(&graph);
  }
  return graphs;
}

CheckedModel check_model(ModelProto& model, const ImportOptions& options, ExternalFiles& files) {
  return Validator(model, options, files).run();
}

}  // namespace oclc::onnx
