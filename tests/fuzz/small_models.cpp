#include "tests/fuzz/small_models.h"

#include <utility>

#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "tests/support/edge_numbers.h"

namespace oclc::fuzz {
namespace {

using oclc_onnx::AttributeProto;
using oclc_onnx::GraphProto;
using oclc_onnx::ModelProto;
using oclc_onnx::NodeProto;
using oclc_onnx::TensorProto;

const std::vector<Spec>& specs() {
  static const std::vector<Spec> all = all_specs();
  return all;
}

class Mutator {
  std::mt19937_64& random_;
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  template <class List>
  auto* pick(List& list) {
    return list.empty() ? nullptr : list.Mutable(static_cast<int>(below(static_cast<std::uint64_t>(list.size()))));
  }

 public:
  explicit Mutator(std::mt19937_64& random) : random_(random) {}

  void change(ModelProto& model) {
    GraphProto& graph = *model.mutable_graph();
    switch (below(14)) {
      case 0:
        return change_version(model);
      case 1:
      case 2:
        if (auto* value = pick(below(2) == 0 ? *graph.mutable_input() : *graph.mutable_output()))
          change_type(*value->mutable_type());
        return;
      case 3:
      case 4:
        if (auto* tensor = pick(*graph.mutable_initializer())) change_tensor(*tensor);
        return;
      case 5:
        return add_node(model);
      case 6:
        return name_value(graph);
      case 7:
        return wrap(model);
      default:
        if (auto* node = pick(*graph.mutable_node())) change_node(graph, *node);
    }
  }

 private:
  std::int64_t number() {
    return test::edge_number([this](std::uint64_t n) { return below(n); });
  }
  float real() {
    const float kEdges[] = {0, -0.0F, 1, -1, 0.5F, 1e-40F, 3e38F, 1.0F / 0.0F, -1.0F / 0.0F, 0.0F / 0.0F};
    return kEdges[below(std::size(kEdges))];
  }
  // The name of a value that the graph has, or none at all.
  std::string value_name(const GraphProto& graph) {
    std::vector<std::string> names = {"", "nobody"};
    for (const auto& input : graph.input()) names.push_back(input.name());
    for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
    for (const auto& node : graph.node()) names.insert(names.end(), node.output().begin(), node.output().end());
    return names[below(names.size())];
  }

  void change_version(ModelProto& model) {
    if (auto* opset = pick(*model.mutable_opset_import()))
      opset->set_version(below(3) == 0 ? number() : static_cast<std::int64_t>(below(29)));
  }

  void change_type(oclc_onnx::TypeProto& type) {
    auto* tensor = type.mutable_tensor_type();
    if (below(4) == 0) return tensor->set_elem_type(static_cast<int>(below(28)));
    auto* dims = tensor->mutable_shape()->mutable_dim();
    if (below(6) == 0) dims->Add();
    if (below(8) == 0 && !dims->empty()) dims->RemoveLast();
    if (auto* dim = pick(*dims)) {
      const std::string names[] = {"N", "M", "N + 1", "2*N", "N/2", "N - M", "-1", "?", "min(N, 7)", "9999999999999999999"};
      if (below(2) == 0)
        dim->set_dim_param(names[below(std::size(names))]);
      else
        dim->set_dim_value(number());
    }
  }

  void change_tensor(TensorProto& tensor) {
    switch (below(7)) {
      case 0:
        return tensor.set_data_type(static_cast<int>(below(28)));
      case 1:
        return tensor.add_dims(number());
      case 2:
        if (!tensor.dims().empty()) tensor.mutable_dims()->RemoveLast();
        return;
      case 3:
        if (auto* dim = pick(*tensor.mutable_dims())) *dim = number();
        return;
      case 4:
        if (auto* value = pick(*tensor.mutable_int64_data())) *value = number();
        return;
      case 5:
        if (auto* value = pick(*tensor.mutable_float_data())) *value = real();
        return;
      default:
        return change_bytes(*tensor.mutable_raw_data());
    }
  }

  // Numbers as they lie in a file: one of them, or the length.
  void change_bytes(std::string& bytes) {
    if (bytes.empty() || below(6) == 0) return bytes.resize(below(2) == 0 ? bytes.size() / 2 : bytes.size() + 1 + below(8));
    const std::int64_t value = number();
    const float float_value = real();
    const std::size_t size = below(2) == 0 ? 8 : 4, at = below(bytes.size()) / size * size;
    const char* from =
        size == 8 || below(2) == 0 ? reinterpret_cast<const char*>(&value) : reinterpret_cast<const char*>(&float_value);
    for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i) bytes[at + i] = from[i];
  }

  void change_attribute(NodeProto& node) {
    AttributeProto* attribute = pick(*node.mutable_attribute());
    if (!attribute || below(6) == 0) {
      const char* const names[] = {"axis",      "axes",         "pads",  "strides", "kernel_shape", "dilations",
                                   "group",     "to",           "mode",  "perm",    "keepdims",     "auto_pad",
                                   "ceil_mode", "output_shape", "alpha", "split",   "num_outputs",  "value"};
      attribute = node.add_attribute();
      attribute->set_name(names[below(std::size(names))]);
      attribute->set_type(below(2) == 0 ? AttributeProto::INT : AttributeProto::INTS);
    }
    switch (below(8)) {
      case 0:
        return attribute->set_i(number());
      case 1:
        return attribute->set_f(real());
      case 2:
        if (auto* value = pick(*attribute->mutable_ints())) *value = number();
        return;
      case 3:
        return attribute->add_ints(number());
      case 4:
        if (!attribute->ints().empty()) attribute->mutable_ints()->RemoveLast();
        return;
      case 5:
        return attribute->set_type(static_cast<AttributeProto::AttributeType>(below(15)));
      case 6: {
        const char* const words[] = {"",      "constant",   "reflect",   "edge",  "linear",  "cubic",         "SAME_UPPER",
                                     "VALID", "asymmetric", "ij,jk->ik", "ii->i", "...,a->", "bidirectional", "Tanh"};
        return attribute->set_s(words[below(std::size(words))]);
      }
      default:
        if (attribute->has_t()) return change_tensor(*attribute->mutable_t());
        if (attribute->has_g())
          if (auto* inner = pick(*attribute->mutable_g()->mutable_node())) change_node(*attribute->mutable_g(), *inner);
    }
  }

  void change_node(GraphProto& graph, NodeProto& node) {
    switch (below(9)) {
      case 0:
        return node.set_op_type(std::string(specs()[below(specs().size())].op));
      case 1:
        if (auto* name = pick(*node.mutable_input())) *name = value_name(graph);
        return;
      case 2:
        return node.add_input(value_name(graph));
      case 3:
        if (!node.input().empty()) node.mutable_input()->RemoveLast();
        return;
      case 4:
        if (node.input_size() > 1)
          node.mutable_input()->SwapElements(0, static_cast<int>(below(static_cast<std::uint64_t>(node.input_size()))));
        return;
      case 5:
        return node.add_output(value_name(graph) + "'");
      default:
        return change_attribute(node);
    }
  }

  // A node of another model, on values of this one.
  void add_node(ModelProto& model) {
    GraphProto& graph = *model.mutable_graph();
    const ModelProto other = small_model(random_() % 100'000 * 2 + 1);
    if (other.graph().node().empty()) return;
    NodeProto& node = *graph.add_node();
    node = other.graph().node(0);
    const std::string prefix = "n" + std::to_string(graph.node_size()) + "_";
    for (std::string& name : *node.mutable_input()) {
      if (below(3) == 0 || name.empty()) {
        name = value_name(graph);
        continue;
      }
      const auto copy_named = [&](const auto& from, auto* to) {
        for (const auto& value : from)
          if (value.name() == name) (*to->Add() = value).set_name(prefix + name);
      };
      copy_named(other.graph().initializer(), graph.mutable_initializer());
      copy_named(other.graph().input(), graph.mutable_input());
      name = prefix + name;
    }
    for (std::string& name : *node.mutable_output()) {
      if (name.empty()) continue;
      for (const auto& value : other.graph().output())
        if (value.name() == name && below(2) == 0) (*graph.add_output() = value).set_name(prefix + name);
      name = prefix + name;
    }
  }

  // Something inside becomes a result.
  void name_value(GraphProto& graph) {
    auto& value = *graph.add_output();
    value.set_name(value_name(graph));
    change_type(*value.mutable_type());
  }

  // A node becomes the body of a branch or of a loop.
  void wrap(ModelProto& model) {
    GraphProto& graph = *model.mutable_graph();
    if (graph.node().empty() || model.ByteSizeLong() > 16'384) return;
    const bool loop = below(2) == 0;
    NodeProto& node = *pick(*graph.mutable_node());
    GraphProto body;
    body.set_name("body");
    *body.add_node() = node;
    if (loop) {
      for (const char* name : {"trip", "more"}) {
        auto& input = *body.add_input();
        input.set_name(name);
        input.mutable_type()->mutable_tensor_type()->set_elem_type(name[0] == 't' ? TensorProto::INT64 : TensorProto::BOOL);
        input.mutable_type()->mutable_tensor_type()->mutable_shape();
      }
      body.add_output()->set_name("more");
    }
    for (const std::string& name : node.output()) body.add_output()->set_name(name);
    TensorProto& count = *graph.add_initializer();
    count.set_name("count" + std::to_string(graph.initializer_size()));
    count.set_data_type(loop ? TensorProto::INT64 : TensorProto::BOOL);
    if (loop)
      count.add_int64_data(static_cast<std::int64_t>(below(4)));
    else
      count.add_int32_data(static_cast<int>(below(2)));
    node.clear_input();
    node.clear_attribute();
    node.set_op_type(loop ? "Loop" : "If");
    node.add_input(count.name());
    if (loop) node.add_input("");
    for (const char* name : loop ? std::vector<const char*>{"body"} : std::vector<const char*>{"then_branch", "else_branch"}) {
      AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(AttributeProto::GRAPH);
      *attribute.mutable_g() = body;
    }
  }
};

}  // namespace

ModelProto small_model(std::uint64_t seed) {
  if (seed % 8 == 0) return random_graph_model(seed, specs()).model.model;
  const Spec& spec = specs()[seed / 8 % specs().size()];
  const std::int64_t opset = spec.since + static_cast<std::int64_t>(seed / 3) % (spec.until - spec.since + 1);
  return random_single(seed, opset, spec, "").model.model;
}

std::unique_ptr<plan::PlanT> compiled_graph(std::uint64_t seed) {
  const std::string bytes = random_graph_model(seed, specs()).model.model.SerializeAsString();
  try {
    CompileOptions options;
    options.target = find_target("cpu");
    const Compiled compiled = compile(import_onnx_bytes(std::as_bytes(std::span(bytes))), options);
    auto plan = std::make_unique<plan::PlanT>();
    plan::GetPlan(compiled.plan.metadata.data())->UnPackTo(plan.get());
    return plan;
  } catch (const CompileError&) {
    return nullptr;
  }
}

void mutate_model(ModelProto& model, std::mt19937_64& random) {
  Mutator mutator(random);
  for (std::uint64_t left = random() % 4 + 1; left > 0; --left) mutator.change(model);
}

}  // namespace oclc::fuzz
