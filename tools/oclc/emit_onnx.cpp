#include "tools/oclc/emit_onnx.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "frontends/onnx/model/tensors.h"
#include "oclc/oclc.h"

namespace oclc::tool {
namespace {

constexpr std::int64_t kLargestInitializer = 1024;

struct SetAttribute {
  oclc_onnx::AttributeProto& to;
  void operator()(std::int64_t v) const { to.set_type(oclc_onnx::AttributeProto::INT), to.set_i(v); }
  void operator()(double v) const { to.set_type(oclc_onnx::AttributeProto::FLOAT), to.set_f(static_cast<float>(v)); }
  void operator()(const std::string& v) const { to.set_type(oclc_onnx::AttributeProto::STRING), to.set_s(v); }
  void operator()(const std::vector<std::int64_t>& list) const {
    to.set_type(oclc_onnx::AttributeProto::INTS);
    for (const std::int64_t v : list) to.add_ints(v);
  }
  void operator()(const std::vector<double>& list) const {
    to.set_type(oclc_onnx::AttributeProto::FLOATS);
    for (const double v : list) to.add_floats(static_cast<float>(v));
  }
  void operator()(const std::vector<std::string>& list) const {
    to.set_type(oclc_onnx::AttributeProto::STRINGS);
    for (const std::string& v : list) to.add_strings(v);
  }
  void operator()(const std::vector<Expr>& list) const {
    to.set_type(oclc_onnx::AttributeProto::STRINGS);
    for (const Expr& v : list) to.add_strings(v.text());
  }
  void operator()(DType v) const { (*this)(std::string(name_of(v))); }
  void operator()(const HostTensor& v) const { (*this)(v.type().text()); }
};

class Writer {
 public:
  explicit Writer(oclc_onnx::GraphProto& to) : to_(to) {}

  void write(const Graph& graph) {
    to_.set_name(graph.name);
    for (const auto& input : graph.inputs()) describe(*to_.add_input(), name(input.get(), input->name), input->type);
    for (const Node* node : graph.nodes()) {
      if (const HostTensor* tensor = constant_of(node->output()))
        constant(node->output(), *tensor);
      else
        this->node(*node);
    }
    // An ONNX output is named by the value it is; a value may be several outputs here.
    for (const auto& [output, value] : graph.outputs()) {
      oclc_onnx::NodeProto& same = *to_.add_node();
      same.set_op_type("Identity");
      same.add_input(name(value));
      same.add_output("output:" + output);
      describe(*to_.add_output(), "output:" + output, value->type);
    }
  }

 private:
  const std::string& name(const Value* value, const std::string& given = {}) {
    const auto known = names_.find(value);
    if (known != names_.end()) return known->second;
    return names_[value] = given.empty() ? fmt::format("%{}", value->id) : given;
  }

  static void describe(oclc_onnx::ValueInfoProto& to, const std::string& name, const TensorType& type) {
    to.set_name(name);
    auto& tensor = *to.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::onnx_type(type.dtype));
    auto& shape = *tensor.mutable_shape();
    for (const Expr& dim : type.shape) {
      auto& to_dim = *shape.add_dim();
      if (dim.is_constant())
        to_dim.set_dim_value(dim.value());
      else
        to_dim.set_dim_param(dim.text());
    }
  }

  void constant(const Value* value, const HostTensor& tensor) {
    if (tensor.elements() > kLargestInitializer) {
      describe(*to_.add_input(), name(value), value->type);
      return;
    }
    oclc_onnx::TensorProto& to = *to_.add_initializer();
    to.set_name(name(value));
    to.set_data_type(onnx::onnx_type(tensor.dtype()));
    for (const std::int64_t dim : tensor.shape()) to.add_dims(dim);
    if (tensor.dtype() == DType::string) {
      for (std::int64_t i = 0; i < tensor.elements(); ++i) to.add_string_data(tensor.text_at(i));
      return;
    }
    to.set_raw_data(onnx::raw_data(tensor));
  }

  void node(const Node& node) {
    oclc_onnx::NodeProto& to = *to_.add_node();
    to.set_domain("oclc");
    to.set_op_type(std::string(node.op->name));
    to.set_name(node.source);
    for (const Value* input : node.inputs) to.add_input(input ? name(input) : std::string());
    for (const auto& output : node.outputs) {
      to.add_output(name(output.get()));
      describe(*to_.add_value_info(), name(output.get()), output->type);
    }
    for (const auto& [key, value] : node.attributes) {
      oclc_onnx::AttributeProto& attribute = *to.add_attribute();
      attribute.set_name(key);
      std::visit(SetAttribute{attribute}, value);
    }
    for (const auto& body : node.bodies) {
      oclc_onnx::AttributeProto& attribute = *to.add_attribute();
      attribute.set_name("body");
      attribute.set_type(oclc_onnx::AttributeProto::GRAPH);
      Writer(*attribute.mutable_g()).write(*body);
    }
  }

  oclc_onnx::GraphProto& to_;
  std::unordered_map<const Value*, std::string> names_;
};

}  // namespace

std::string graph_as_onnx(const Graph& graph) {
  oclc_onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("oclc");
  model.set_producer_version(oclc_version());
  model.add_opset_import()->set_version(17);
  oclc_onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("oclc");
  own.set_version(1);
  Writer(*model.mutable_graph()).write(graph);
  return model.SerializeAsString();
}

}  // namespace oclc::tool
