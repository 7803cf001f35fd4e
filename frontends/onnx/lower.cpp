#include "frontends/onnx/lower.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <unordered_map>
#include <unordered_set>

#include "compiler/ops/read_dims.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/fold.h"
#include "frontends/onnx/gradient.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/op_uses.h"
#include "frontends/onnx/order.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::AttributeProto;
using oclc_onnx::FunctionProto;
using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;
using oclc_onnx::TensorProto;

constexpr std::size_t kLongestLabel = 4095;

// Values by the names that nodes use. A sub-graph sees the names around it; a function sees only its own.
struct Scope {
  Scope* outer = nullptr;
  std::unordered_map<std::string_view, Value*> values;
  std::unordered_map<std::string_view, TensorProto*> constants;  // that became no value yet
};

// A function that is being expanded, or the main graph.
struct Call {
  const Opsets* opsets = nullptr;
  std::map<std::string, const AttributeProto*, std::less<>> attributes;
  std::string prefix;  // of the names of nodes
};

class Lowering : public OpHost {
 public:
  Lowering(const CheckedModel& model, TensorStore& tensors, const ImportOptions& options, std::vector<StateVariable>* states,
           std::map<std::string, std::pair<std::int64_t, std::string>>& suggested)
      : model_(model),
        tensors_(tensors),
        warn_(options.warn),
        input_value_(options.input_value),
        states_(states),
        suggested_(suggested),
        out_(std::make_unique<Graph>()),
        builder_(*out_) {}

  std::unique_ptr<Graph> run(GraphProto& graph, const Inputs& inputs) {
    require_supported(op_uses(model_, graph, model_.opsets, true, false));
    Call main;
    main.opsets = &model_.opsets;
    call_ = &main;
    Scope scope;
    add_constants(graph, scope);
    for (const Inputs::Input& input : inputs.list()) {
      scope.values[input.name] =
          input.value ? builder_.constant(*input.value, input.name) : out_->add_input(input.name, input.type);
    }
    nodes(*graph.mutable_node(), model_.schedules.at(&graph), scope);
    for (const auto& output : graph.output()) {
      Value* value = lookup(output.name(), scope);
      for (const std::string& text : contradictions(output, value->type)) warn(text);
      out_->add_output(output.name(), value);
    }
    out_->erase_dead();  // constants and shapes that only mattered while reading
    nest_read_dims(*out_);
    if (states_) make_states();
    return std::move(out_);
  }

  const AttributeProto* attribute(const NodeProto& node, std::string_view name) override {
    for (const AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return resolve(attribute);
    }
    return nullptr;
  }

  const HostTensor& tensor(const TensorProto& tensor) override {
    // The store moves data out of the messages, which the importer owns.
    return tensors_.get(const_cast<TensorProto&>(tensor));
  }

  std::optional<HostTensor> known(const Value* value) override { return known_.find(value); }

  void warn(const std::string& text) override {
    if (warn_) warn_(text);
  }

  bool training() const override { return states_ != nullptr; }

  void suggest_bound(const std::string& symbol, std::int64_t bound, const std::string& why) override {
    const auto [at, fresh] = suggested_.emplace(symbol, std::pair{bound, why});
    if (!fresh && bound < at->second.first) at->second = {bound, why};
  }

 private:
  std::optional<HostTensor> input_value(const Value* value) const {
    const auto at = static_cast<std::size_t>(value->index);
    const bool own = at < out_->inputs().size() && out_->inputs()[at].get() == value;
    if (!own || !input_value_) return std::nullopt;
    auto tensor = input_value_(value->name);
    if (tensor && !(tensor->type() == value->type))
      fail(fmt::format("a value of type {} for input '{}'", value->type.text(), printable(value->name)), tensor->type().text(),
           {}, ExitCode::usage);
    return tensor;
  }

  const AttributeProto* resolve(const AttributeProto& attribute) const {
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto at = call_->attributes.find(attribute.ref_attr_name());
    return at == call_->attributes.end() ? nullptr : at->second;
  }

  static void add_constants(GraphProto& graph, Scope& scope) {
    for (TensorProto& tensor : *graph.mutable_initializer()) scope.constants[tensor.name()] = &tensor;
  }

  Value* lookup(std::string_view name, Scope& scope) {
    if (Value* value = find(name, scope)) return value;
    // Validation has seen to it that every name is defined.
    check_failed("name is defined", "lower.cpp", 0, printable(name));
  }

  // Null if nothing has that name.
  Value* find(std::string_view name, Scope& scope) {
    for (Scope* at = &scope; at; at = at->outer) {
      if (const auto value = at->values.find(name); value != at->values.end()) return value->second;
      if (const auto constant = at->constants.find(name); constant != at->constants.end()) {
        builder_.set_source({});  // a constant belongs to all of its users
        Value* value = builder_.constant(tensors_.get(*constant->second), std::string(name));
        if (!at->outer) initializers_.insert(value);
        return at->values[name] = value;
      }
    }
    return nullptr;
  }

  // Initializers that training changes become inputs that are state variables; what the reading took for known stays a
  // constant.
  void make_states() {
    for (const Node* node : out_->nodes()) {
      Value* constant = node->output();
      if (!initializers_.count(constant)) continue;
      const HostTensor& tensor = *constant_of(constant);
      if (!is_float(tensor.dtype()) || constant->type.rank() == 0) continue;
      Value* state = out_->add_input(constant->name, constant->type);
      states_->push_back({constant->name, constant->type, tensor, {}});
      out_->replace_all_uses(constant, state);
    }
    out_->erase_dead();
  }

  template <class Nodes>
  void nodes(Nodes& list, const Schedule& schedule, Scope& scope) {
    for (const int i : schedule) node(*list.Mutable(i), i, scope);
  }

  void node(NodeProto& node, int index, Scope& scope) {
    std::string label = call_->prefix + node_label(node, index);
    if (label.size() > kLongestLabel) label.resize(kLongestLabel);
    std::vector<Value*> inputs;
    for (const std::string& name : node.input()) inputs.push_back(name.empty() ? nullptr : lookup(name, scope));
    if (const Function* function = model_.callee(node)) return call(node, *function, inputs, label, scope);
    const auto version = call_->opsets->find(domain_name(node.domain()));
    const std::int64_t opset = version == call_->opsets->end() ? 0 : version->second;
    if (node.op_type() == "If" && domain_name(node.domain()).empty()) return branch(node, inputs, label, opset, scope);
    if (is_gradient(node)) return differentiate(node, inputs, label, opset, scope);
    const OpRow* row = find_row(op_label(node), opset);
    OCLC_CHECK(row != nullptr, "operator was found to be supported");
    builder_.set_source(label);
    OpContext context(*this, builder_, *row, node, std::move(inputs), label, opset);
    if (opset < 6) context.ignore({"consumed_inputs"});
    bind(node, read(context, *row), context, scope);
    for (const std::string& name : context.unread()) context.warn(fmt::format("attribute '{}' is ignored", printable(name)));
  }

  // The row's reader, with errors of the core operators told in terms of the model's node.
  static Outputs read(OpContext& context, const OpRow& row) {
    while (context.inputs() > static_cast<std::size_t>(row.min_inputs) && !context.optional_input(context.inputs() - 1))
      context.drop_last_input();
    const auto count = static_cast<std::int64_t>(context.inputs());
    if (count < row.min_inputs || count > row.max_inputs) {
      const bool one = row.min_inputs == row.max_inputs;
      context.fail(one ? fmt::format("{} {}", row.min_inputs, row.min_inputs == 1 ? "input" : "inputs")
                   : row.max_inputs == kAnyNumber
                       ? fmt::format("at least {} {}", row.min_inputs, row.min_inputs == 1 ? "input" : "inputs")
                       : fmt::format("{} to {} inputs", row.min_inputs, row.max_inputs),
                   std::to_string(count));
    }
    try {
      return row.read(context);
    } catch (const CompileError& error) {
      if (error.parts().stage == "import") throw;
      context.fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
    }
  }

  static void bind(const NodeProto& node, const Outputs& outputs, const OpContext& context, Scope& scope) {
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      const auto at = static_cast<std::size_t>(i);
      if (at >= outputs.size() || !outputs[at])
        context.unsupported(fmt::format("no use of output {}", i), fmt::format("'{}'", printable(node.output(i))));
      if (outputs[at]->name.empty()) outputs[at]->name = node.output(i);
      scope.values[node.output(i)] = outputs[at];
    }
  }

  void call(NodeProto& node, const Function& function, const std::vector<Value*>& inputs, const std::string& label,
            Scope& scope) {
    FunctionProto& proto = *function.proto;
    const auto refuse = [&](std::string wanted, std::string found) {
      throw CompileError({.stage = "import",
                          .node = printable(label),
                          .op = printable(op_label(node)),
                          .wanted = std::move(wanted),
                          .found = std::move(found)});
    };
    if (static_cast<int>(inputs.size()) > proto.input_size())
      refuse(fmt::format("at most {} inputs", proto.input_size()), std::to_string(inputs.size()));
    if (node.output_size() > proto.output_size())
      refuse(fmt::format("at most {} outputs", proto.output_size()), std::to_string(node.output_size()));
    Scope inner;
    for (int i = 0; i < proto.input_size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      inner.values[proto.input(i)] = at < inputs.size() ? inputs[at] : nullptr;
    }
    Call next;
    next.opsets = &function.opsets;
    next.prefix = label + "/";
    for (const auto& attribute : function.defaults) next.attributes[attribute->name()] = attribute.get();
    for (const AttributeProto& attribute : node.attribute()) {
      if (const AttributeProto* given = resolve(attribute)) next.attributes[attribute.name()] = given;
    }
    const Call* outer = std::exchange(call_, &next);
    nodes(*proto.mutable_node(), function.schedule, inner);
    call_ = outer;
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      scope.values[node.output(i)] = lookup(proto.output(i), inner);
    }
  }

  // The attributes name the function that is differentiated, the inputs the point where.
  void differentiate(NodeProto& node, const std::vector<Value*>& inputs, const std::string& label, std::int64_t opset,
                     Scope& scope) {
    static constexpr OpRow kRow{"ai.onnx.preview.training.Gradient", 1, 1, kAnyNumber};
    OpContext context(*this, builder_, kRow, node, inputs, label, opset);
    builder_.set_source(label);
    const auto named = [&](const std::string& name) {
      Value* value = find(name, scope);
      if (!value) context.fail("names of tensors", fmt::format("'{}', which nothing defines", printable(name)));
      return value;
    };
    const std::vector<std::string> xs = context.texts("xs"), zs = context.texts("zs", std::vector<std::string>());
    std::vector<Value*> variables;
    for (const auto& names : {xs, zs}) {
      for (const std::string& name : names) variables.push_back(named(name));
    }
    if (xs.empty() || variables.size() != inputs.size())
      context.fail(fmt::format("one input for each of {} xs and {} zs", xs.size(), zs.size()), std::to_string(inputs.size()));
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!(variables[i]->type == context.input(i)->type))
        context.fail(fmt::format("{} as input {}", variables[i]->type.text(), i), context.input(i)->type.text());
      if (i < xs.size() && !is_float(variables[i]->type.dtype))
        context.fail("xs of floating-point numbers", variables[i]->type.text());
    }
    Value* y = named(context.text("y"));
    if (!is_float(y->type.dtype)) context.fail("a floating-point y", y->type.text());
    Outputs found;
    try {
      found = gradients_at(builder_, y, variables, inputs, xs.size());
    } catch (const CompileError& error) {
      context.fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
    }
    bind(node, found, context, scope);
  }

  // The branch that is taken replaces the node.
  void branch(NodeProto& node, const std::vector<Value*>& inputs, const std::string& label, std::int64_t opset, Scope& scope) {
    static constexpr OpRow kRow{"If", 1, 1, 1};
    OpContext context(*this, builder_, kRow, node, inputs, label, opset);
    const Value* condition = context.input(0);
    if (condition->type.dtype != DType::boolean || !(condition->type.elements() == Expr(1)))
      context.fail("one bool as condition", condition->type.text());
    const auto known = known_.find(condition);
    if (!known) {
      context.unsupported("a condition known when compiling", "one computed from the model's data",
                          "export the model with the branch resolved");
    }
    GraphProto* branches[2] = {};
    for (const bool taken : {false, true}) {
      const char* name = taken ? "then_branch" : "else_branch";
      const AttributeProto* attribute = this->attribute(node, name);
      if (!attribute || !attribute->has_g())
        context.fail(fmt::format("a graph as attribute '{}'", name), attribute ? "none" : "no such attribute");
      branches[taken] = const_cast<GraphProto*>(&attribute->g());
      if (branches[taken]->output_size() != node.output_size()) {
        context.fail(fmt::format("{} outputs of {}", node.output_size(), name), std::to_string(branches[taken]->output_size()));
      }
      if (branches[taken]->input_size() > 0)
        context.fail(fmt::format("no inputs of {}", name), std::to_string(branches[taken]->input_size()));
    }
    for (int i = 0; i < node.output_size(); ++i) {
      const auto type = [&](bool taken) { return branches[taken]->output(i).type().tensor_type().elem_type(); };
      if (type(true) != 0 && type(false) != 0 && type(true) != type(false)) {
        context.fail(fmt::format("one type of output {} in both branches", i),
                     fmt::format("{} and {}", element_type_name(type(true)), element_type_name(type(false))));
      }
    }
    GraphProto& taken = *branches[known->int_at(0) != 0];
    require_supported(op_uses(model_, taken, *call_->opsets, true, false));
    Scope inner;
    inner.outer = &scope;
    add_constants(taken, inner);
    nodes(*taken.mutable_node(), model_.schedules.at(&taken), inner);
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty()) scope.values[node.output(i)] = lookup(taken.output(i).name(), inner);
    }
  }

  const CheckedModel& model_;
  TensorStore& tensors_;
  const std::function<void(const std::string&)>& warn_;
  const std::function<std::optional<HostTensor>(const std::string&)>& input_value_;
  std::vector<StateVariable>* states_;
  std::map<std::string, std::pair<std::int64_t, std::string>>& suggested_;
  std::unique_ptr<Graph> out_;
  Builder builder_;
  const Call* call_ = nullptr;
  std::unordered_set<const Value*> initializers_;  // of the main graph, as far as they were looked up
  KnownValues known_{[this](const Value* input) { return input_value(input); }};
};

}  // namespace

std::unique_ptr<Graph> lower_model(GraphProto& graph, const CheckedModel& model, const Inputs& inputs, TensorStore& tensors,
                                   const ImportOptions& options, std::vector<StateVariable>* states,
                                   std::map<std::string, std::pair<std::int64_t, std::string>>& suggested) {
  return Lowering(model, tensors, options, states, suggested).run(graph, inputs);
}

}  // namespace oclc::onnx
