#include "frontends/onnx/lower.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>

#include "compiler/ops/read_dims.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/gradient.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/lowering.h"
#include "frontends/onnx/op_uses.h"
#include "frontends/onnx/order.h"
#include "frontends/onnx/table.h"
#include "frontends/op/custom_op.h"

namespace oclc::onnx {

using oclc_onnx::AttributeProto;
using oclc_onnx::FunctionProto;
using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;
using oclc_onnx::TensorProto;

namespace {

constexpr std::size_t kLongestLabel = 4095;
constexpr std::int64_t kCopiedElements = 1024;

}  // namespace

Lowering::Lowering(const CheckedModel& model, TensorStore& tensors, const ImportOptions& options,
                   std::vector<StateVariable>* states, Suggestions& suggested, Assumptions& assumptions)
    : model_(model),
      tensors_(tensors),
      warn_(options.warn),
      input_value_(options.input_value),
      ask_for_trips_(options.ask_for_trips),
      ops_(options.ops),
      states_(states),
      suggested_(suggested),
      out_(std::make_unique<Graph>()),
      main_builder_(*out_) {
  main_builder_.assume(&assumptions);
}

std::unique_ptr<Graph> Lowering::run(GraphProto& graph, const Inputs& inputs) {
  require_supported(op_uses(model_, graph, model_.opsets, true, false, ops_.get()));
  has_open_sizes_ = !inputs.names().empty();
  Call main;
  main.opsets = &model_.opsets;
  call_ = &main;
  Scope scope(nullptr, main_builder_);
  add_constants(graph, scope);
  for (const Inputs::Input& input : inputs.list()) {
    scope.values[input.name] =
        input.value ? builder_->constant(*input.value, input.name) : out_->add_input(input.name, input.type);
  }
  for (const Inputs::Sequence& sequence : inputs.sequences()) {
    Bundle bundle{sequence.none, {}};
    for (std::size_t i = 0; i < sequence.count; ++i)
      bundle.items.push_back(scope.values.at(inputs.list().at(sequence.first + i).name));
    scope.values[sequence.name] = make_bundle(std::move(bundle));
  }
  nodes(*graph.mutable_node(), model_.schedules.at(&graph), scope);
  for (const auto& output : graph.output()) {
    Value* value = lookup(output.name(), scope);
    if (!bundle(value)) {
      value = of_declared_rank(output, value);
      for (const std::string& text : contradictions(output, value->type)) warn(text);
    }
    add_output(output.name(), value);
  }
  if (out_->outputs().empty()) fail("a graph that gives tensors", "empty sequences alone", {}, ExitCode::unsupported);
  nest_read_dims(*out_);
  out_->erase_dead();  // constants and shapes that only mattered while reading
  if (states_) make_states();
  return std::move(out_);
}

// A result that is declared with fewer axes than it has, since a Squeeze without axes keeps some that are open: these are taken
// for 1.
Value* Lowering::of_declared_rank(const oclc_onnx::ValueInfoProto& declared, Value* value) {
  const auto& type = declared.type().tensor_type();
  const Shape& shape = value->type.shape;
  const auto rank = static_cast<std::size_t>(type.shape().dim_size());
  if (!type.has_shape() || rank >= shape.size()) return value;
  Assumptions& assumptions = *builder_->assumptions();
  Shape single, left;
  for (const Expr& size : shape) {
    const bool kept = assumptions.keeps(size);
    single.push_back(kept ? Expr(1) : size);
    if (!kept) left.push_back(size);
  }
  if (left.size() != rank) return value;
  for (const Expr& size : shape)
    if (assumptions.keeps(size)) assumptions.squeeze(size);
  value = builder_->slice(value, Shape(shape.size(), Expr(0)), single, Ints(shape.size(), 1));
  return builder_->reshape(value, left);
}

void Lowering::add_output(const std::string& name, Value* value) {
  const Bundle* whole = bundle(value);
  if (!whole) return out_->add_output(name, value);
  for (std::size_t i = 0; i < whole->items.size(); ++i) add_output(fmt::format("{}.{}", name, i), whole->items[i]);
}

const AttributeProto* Lowering::attribute(const NodeProto& node, std::string_view name) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return resolve(attribute);
  }
  return nullptr;
}

const HostTensor& Lowering::tensor(const TensorProto& tensor) {
  // The store moves data out of the messages, which the importer owns.
  return tensors_.get(const_cast<TensorProto&>(tensor));
}

void Lowering::warn(const std::string& text) {
  if (warn_) warn_(text);
}

void Lowering::suggest_bound(const std::string& symbol, std::int64_t bound, const std::string& why) {
  const auto [at, fresh] = suggested_.emplace(symbol, std::pair{bound, why});
  if (!fresh && bound < at->second.first) at->second = {bound, why};
}

const Bundle* Lowering::bundle(const Value* value) const {
  const auto at = bundles_.find(value);
  return at == bundles_.end() ? nullptr : &at->second;
}

Value* Lowering::make_bundle(Bundle bundle) {
  Value* handle = handles_.emplace_back(std::make_unique<Value>()).get();
  bundles_.emplace(handle, std::move(bundle));
  return handle;
}

std::optional<HostTensor> Lowering::input_value(const Value* value) const {
  const auto at = static_cast<std::size_t>(value->index);
  const bool own = at < out_->inputs().size() && out_->inputs()[at].get() == value;
  if (!own || !input_value_) return std::nullopt;
  auto tensor = input_value_(value->name);
  if (tensor && !(tensor->type() == value->type))
    fail(fmt::format("a value of type {} for input '{}'", value->type.text(), printable(value->name)), tensor->type().text(),
         {}, ExitCode::usage);
  return tensor;
}

const AttributeProto* Lowering::resolve(const AttributeProto& attribute) const {
  if (attribute.ref_attr_name().empty()) return &attribute;
  const auto at = call_->attributes.find(attribute.ref_attr_name());
  return at == call_->attributes.end() ? nullptr : at->second;
}

void Lowering::add_constants(GraphProto& graph, Scope& scope) {
  for (TensorProto& tensor : *graph.mutable_initializer()) scope.constants[tensor.name()] = &tensor;
}

std::pair<bool, Value*> Lowering::find(std::string_view name, Scope& scope) {
  if (const auto value = scope.values.find(name); value != scope.values.end()) return {true, value->second};
  if (const auto constant = scope.constants.find(name); constant != scope.constants.end()) {
    scope.builder->set_source({});  // a constant belongs to all of its users
    Value* value = scope.builder->constant(tensors_.get(*constant->second), std::string(name));
    if (!scope.outer && !scope.body && scope.builder == &main_builder_) initializers_.insert(value);
    return {true, scope.values[name] = value};
  }
  if (!scope.outer) return {false, nullptr};
  auto [found, value] = find(name, *scope.outer);
  if (scope.body && value) scope.values[name] = value = capture(value, scope);
  return {found, value};
}

Value* Lowering::capture(Value* outside, Scope& scope) {
  if (const Bundle* whole = bundle(outside)) {
    Bundle inside{whole->none, {}};
    for (Value* item : std::vector<Value*>(whole->items)) inside.items.push_back(capture(item, scope));
    return make_bundle(std::move(inside));
  }
  LoopBody& body = *scope.body;
  for (const auto& [out, in] : body.captured) {
    if (out == outside) return in;
  }
  const std::string source = scope.builder->source();
  scope.builder->set_source({});
  Value* inside = nullptr;
  const HostTensor* tensor = constant_of(outside);
  if (tensor && tensor->elements() <= kCopiedElements && !(states_ && initializers_.count(outside))) {
    inside = scope.builder->constant(*tensor, outside->name);
  } else if (!tensor && outside->content && outside->type.is_static()) {
    Ints shape;
    for (const Expr& d : outside->type.shape) shape.push_back(d.value());
    inside = scope.builder->exprs(*outside->content, std::move(shape), outside->type.dtype);
  } else {
    inside = body.graph->add_input(fmt::format("captured{}", body.captured.size()), outside->type);
    body.captured.emplace_back(outside, inside);
  }
  scope.builder->set_source(source);
  return inside;
}

// Initializers that training changes become inputs that are state variables; what the reading took for known stays a
// constant.
void Lowering::make_states() {
  for (const Node* node : out_->nodes()) {
    Value* constant = node->outputs.empty() ? nullptr : node->output();
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
void Lowering::nodes(Nodes& list, const Schedule& schedule, Scope& scope) {
  for (const int i : schedule) node(*list.Mutable(i), i, scope);
}
template void Lowering::nodes(google::protobuf::RepeatedPtrField<NodeProto>&, const Schedule&, Scope&);

void Lowering::node(NodeProto& node, int index, Scope& scope) {
  std::string label = call_->prefix + node_label(node, index);
  if (label.size() > kLongestLabel) label.resize(kLongestLabel);
  std::vector<Value*> inputs;
  for (const std::string& name : node.input()) inputs.push_back(name.empty() ? nullptr : lookup(name, scope));
  if (const Function* function = model_.callee(node)) return call(node, *function, inputs, label, scope);
  const auto version = call_->opsets->find(domain_name(node.domain()));
  const std::int64_t opset = version == call_->opsets->end() ? 0 : version->second;
  if (const Control read = control_of(node)) return control(read, node, std::move(inputs), label, opset, scope);
  if (is_gradient(node)) return differentiate(node, inputs, label, opset, scope);
  const OpRow* row = find_row(op_label(node), opset);
  const custom::CustomOp* own = !row && ops_ ? ops_->find(op_label(node)) : nullptr;
  if (own) return custom_op(*own, node, std::move(inputs), label, opset, scope);
  OCLC_CHECK(row != nullptr, "operator was found to be supported");
  builder_->set_source(label);
  OpContext context(*this, *builder_, *row, node, std::move(inputs), label, opset);
  if (opset < 6) context.ignore({"consumed_inputs"});
  if (!row->bundles) context.require_tensors();
  if (!takes_strings(op_label(node))) context.require_numbers();
  bind(node, read(context, *row), context, scope);
  context.refuse_unread();
}

// The row's reader, with errors of the core operators told in terms of the model's node.
Outputs Lowering::read(OpContext& context, const OpRow& row) {
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

void Lowering::bind(const NodeProto& node, const Outputs& outputs, const OpContext& context, Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const auto at = static_cast<std::size_t>(i);
    if (at >= outputs.size() || !outputs[at])
      context.unsupported(fmt::format("no use of output {}", i), fmt::format("'{}'", printable(node.output(i))));
    if (outputs[at]->name.empty()) outputs[at]->name = node.output(i);
    scope.values[node.output(i)] = outputs[at];
  }
}

void Lowering::call(NodeProto& node, const Function& function, const std::vector<Value*>& inputs, const std::string& label,
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
  Scope inner(nullptr, *builder_);
  for (int i = 0; i < proto.input_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    inner.values[proto.input(i)] = at < inputs.size() ? inputs[at] : nullptr;
  }
  Call next;
  next.opsets = &function.opsets;
  next.prefix = label + "/";
  for (const AttributeProto& attribute : proto.attribute_proto()) next.attributes[attribute.name()] = &attribute;
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
void Lowering::differentiate(NodeProto& node, const std::vector<Value*>& inputs, const std::string& label, std::int64_t opset,
                             Scope& scope) {
  static constexpr OpRow kRow{"ai.onnx.preview.training.Gradient", 1, 1, kAnyNumber};
  OpContext context(*this, *builder_, kRow, node, inputs, label, opset);
  builder_->set_source(label);
  const auto named = [&](const std::string& name) {
    Value* value = lookup(name, scope);
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
    found = gradients_at(*builder_, y, variables, inputs, xs.size());
  } catch (const CompileError& error) {
    context.fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
  }
  bind(node, found, context, scope);
}

std::unique_ptr<Graph> lower_model(GraphProto& graph, const CheckedModel& model, const Inputs& inputs, TensorStore& tensors,
                                   const ImportOptions& options, std::vector<StateVariable>* states, Suggestions& suggested,
                                   Assumptions& assumptions) {
  return Lowering(model, tensors, options, states, suggested, assumptions).run(graph, inputs);
}

}  // namespace oclc::onnx
