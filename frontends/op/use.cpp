// Uses of operators in OpenCL C: nodes of operators that the compiler keeps beside its own (user_op.h).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/user_op.h"
#include "compiler/support/fnv1a.h"
#include "frontends/op/code.h"
#include "frontends/op/expand.h"

namespace oclc::custom {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;
using OpPointer = std::shared_ptr<const CustomOp>;

constexpr std::int64_t kMostLocalElements = 1 << 16;

std::string literal(std::int64_t whole) { return whole < 0 ? fmt::format("({})", whole) : std::to_string(whole); }

std::string literal(double number) {
  if (std::isnan(number)) return "NAN";
  if (std::isinf(number)) return number < 0 ? "(-INFINITY)" : "INFINITY";
  std::string text = fmt::format("{:.9g}", number);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return number < 0 ? fmt::format("({}f)", text) : text + "f";
}

// Empty: texts and lists have none.
std::string literal(const Attribute& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return literal(*whole);
  const auto* number = std::get_if<double>(&value);
  return number ? literal(*number) : std::string();
}

// As a part of an identifier.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

// A graph of the node's operands alone, in which its operator is read again.
struct Scratch {
  Graph graph;
  Builder builder{graph};
  std::vector<Value*> inputs;

  explicit Scratch(const Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(node.inputs[i] ? graph.add_input(fmt::format("x{}", i), node.inputs[i]->type) : nullptr);
  }
};

std::vector<Value*> differentiate(const CustomOp& op, Builder& b, const Node& node, std::span<Value* const> gradients) {
  std::vector<Value*> of_outputs;
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const TensorType& type = node.output(i)->type;
    of_outputs.push_back(gradients[i] ? gradients[i] : b.expand(b.scalar(type.dtype, 0), type.shape));
  }
  std::vector<Value*> fixed, variable, given, result(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < std::max(op.in.size(), node.inputs.size()); ++i) {
    Value* value = i < node.inputs.size() ? node.inputs[i] : nullptr;
    if (op.in[std::min(i, op.in.size() - 1)].variable) {
      if (value) variable.push_back(value);
    } else {
      fixed.push_back(value);
    }
  }
  const auto add = [&](const std::vector<Value*>& list) { given.insert(given.end(), list.begin(), list.end()); };
  std::vector<Value*> outputs;
  for (std::size_t i = 0; i < op.out.size(); ++i) outputs.push_back(node.output(i));
  if (op.gradient_of) {
    add(of_outputs), add(fixed), add(variable), add(outputs);
    const std::vector<Value*> found = build(b, *op.gradient_of, given, node.attributes);
    for (std::size_t i = 0; i < found.size() && i < result.size(); ++i) result[i] = node.inputs[i] ? found[i] : nullptr;
  } else {
    add(fixed), add(outputs), add(of_outputs), add(variable);
    const std::vector<Value*> found = build(b, *op.gradient, given, node.attributes);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t k = op.differentiated[i];
      if (k < result.size() && node.inputs[k]) result[k] = found[i];
    }
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i]) result[i] = sum_to(b, result[i], node.inputs[i]->type.shape);
  }
  return result;
}

void set_formulas(UserOp& own, const OpPointer& op) {
  own.title = op->name;
  for (const auto& [name, types] : op->types)
    own.doubles = own.doubles || std::find(types.begin(), types.end(), DType::f64) != types.end();
  for (const Operand& o : op->in) own.doubles = own.doubles || dtype_of(o.type) == DType::f64;
  if (op->reference)
    own.reference = [op](Builder& b, const Node& node, const std::vector<Value*>& inputs) {
      return build(b, *op->reference, inputs, node.attributes);
    };
  if (op->gradient || op->gradient_of)
    own.differentiated = [op](Builder& b, const Node& node, std::span<Value* const> gradients) {
      return differentiate(*op, b, node, gradients);
    };
}

std::vector<TensorType> scalar_types(const CustomOp& op, const Node& node) {
  Shape shape;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) shape = broadcast(shape, type_of_input(node, i).shape);
  const std::string& type = op.out[0].type;
  if (const auto fixed = dtype_of(type)) return {{*fixed, std::move(shape)}};
  for (std::size_t i = 0; i < op.in.size() && i < node.inputs.size(); ++i) {
    if (op.in[i].type == type) return {{node.inputs[i]->type.dtype, std::move(shape)}};
  }
  return {{DType::f32, std::move(shape)}};
}

}  // namespace

Words Expansion::literals() const {
  Words words;
  for (const auto& [name, value] : attributes_) {
    if (const std::string text = literal(value); !text.empty()) words[name] = text;
  }
  return words;
}

std::vector<TensorType> Expansion::output_types() const {
  std::vector<TensorType> types;
  for (const Operand& output : op_.out) {
    Shape shape;
    for (const Formula& dim : output.dims) shape.push_back(size(dim));
    types.push_back({type_of(output), std::move(shape)});
  }
  return types;
}

std::vector<Expr> Expansion::space() const {
  std::vector<Expr> extents;
  for (const Formula& extent : op_.each) extents.push_back(size(extent));
  return extents;
}

std::vector<Value*> Expansion::scalar_node() {
  const OpPointer op = op_.shared_from_this();
  const ScalarText text = scalar_text(op_, *op_.code->function(op_.scalar), literals());
  if (!text.code.empty()) {
    keep_code(op_.code->prefix, op_.code->text);
    keep_code(op_.code->prefix + op_.scalar + "_each", text.code);
  }
  auto own = std::make_unique<UserOp>();
  set_formulas(*own, op);
  own->own_text = text.text;
  own->own_name = fmt::format("op_{}_{:08x}", plain(op_.name), fnv1a(op_.identity + text.text) & 0xffffffffu);
  own->min_inputs = own->max_inputs = static_cast<int>(op_.in.size());
  own->own_scalar.result_is_bool = dtype_of(op_.out[0].type) == DType::boolean;
  own->own_scalar.flops = static_cast<double>(scalar_flops());
  own->flops = [flops = scalar_flops()](const Node& node) { return node.output()->type.elements() * Expr(flops); };
  own->types = [op](const Node& node) { return scalar_types(*op, node); };
  return {b_.graph().add(keep_op(std::move(own)), fitted_, attributes_, b_.source())->output()};
}

// Of one element: as the head says, or the formula of the reference does.
std::int64_t Expansion::scalar_flops() const {
  if (op_.flops) return std::max<std::int64_t>(1, size(*op_.flops).constant().value_or(1));
  if (!op_.reference) return 1;
  Graph graph;
  Builder builder(graph);
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < fitted_.size(); ++i)
    inputs.push_back(graph.add_input(fmt::format("x{}", i), {fitted_[i]->type.dtype, {}}));
  build(builder, *op_.reference, inputs, attributes_);
  return std::max<std::int64_t>(1, flops_of(graph).constant().value_or(1));
}

UserSpace Expansion::user_space() const {
  UserSpace space;
  space.extents = this->space();
  for (const auto& [name, dim] : dims_) space.dims.emplace_back(name, dim.first);
  for (const auto& [name, value] : attributes_) {
    const auto* numbers = std::get_if<std::vector<double>>(&value);
    const auto* whole = std::get_if<Ints>(&value);
    if (numbers || whole) {
      std::string list;
      for (std::size_t i = 0; i < (numbers ? numbers->size() : whole->size()); ++i)
        list += (i ? ", " : "") + (numbers ? literal((*numbers)[i]) : literal((*whole)[i]));
      space.constants.push_back(fmt::format("const {} {}[] = {{{}}};", numbers ? "float" : "int", name, list));
    } else if (const std::string text = literal(value); !text.empty()) {
      space.constants.push_back(
          fmt::format("const {} {} = {};", std::holds_alternative<double>(value) ? "float" : "int", name, text));
    }
  }
  for (const Local& local : op_.locals) {
    const auto elements = size(local.elements).constant();
    if (!elements || *elements < 1 || *elements > kMostLocalElements)
      fail(local.elements.place, fmt::format("1 to {} elements of '{}' in local memory", kMostLocalElements, local.name),
           size(local.elements).text());
    space.locals.push_back({local.type, local.name, *elements});
  }
  return space;
}

std::vector<Value*> Expansion::body_nodes(Build form) {
  const OpPointer op = op_.shared_from_this();
  auto own = std::make_unique<UserOp>();
  set_formulas(*own, op);
  own->own_name = fmt::format("op_{}_{:08x}{}", plain(op_.name), fnv1a(op_.identity) & 0xffffffffu,
                              form == Build::checked ? "_checked" : "");
  own->body.emplace(body_of(op_, form));
  own->inplace = op_.inplace;
  if (!op_.code->text.empty()) keep_code(op_.code->prefix, op_.code->text);
  own->types = [op, form](const Node& node) {
    Scratch scratch(node);
    const Expansion e(scratch.builder, *op, scratch.inputs, node.attributes);
    std::vector<TensorType> types = e.output_types();
    if (form == Build::checked) types.push_back({DType::i32, e.space()});
    return types;
  };
  own->space = [op](const Node& node) {
    Scratch scratch(node);
    return Expansion(scratch.builder, *op, scratch.inputs, node.attributes).user_space();
  };
  own->flops = [op](const Node& node) {
    Scratch scratch(node);
    const Expansion e(scratch.builder, *op, scratch.inputs, node.attributes);
    if (op->flops) return e.size(*op->flops);
    if (!op->reference) return Expr(0);
    build(scratch.builder, *op->reference, scratch.inputs, node.attributes);
    return flops_of(scratch.graph);
  };
  if (op_.bytes)
    own->bytes = [op](const Node& node) {
      Scratch scratch(node);
      return std::optional(Expansion(scratch.builder, *op, scratch.inputs, node.attributes).size(*op->bytes));
    };
  std::vector<Value*> inputs = fitted_;
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  const Node* node = b_.graph().add(keep_op(std::move(own)), std::move(inputs), attributes_, b_.source());
  std::vector<Value*> results;
  for (const auto& output : node->outputs) results.push_back(output.get());
  return results;
}

UserBody body_of(const CustomOp& op, Build form, std::vector<Call>* found) {
  UserBody body;
  for (const Operand& o : op.in) body.inputs.push_back({o.name, o.dims.size(), false, false, o.variable});
  for (const Operand& o : op.out) body.outputs.push_back({o.name, o.dims.size(), false, false, false});
  std::vector<Call> calls;
  body.text = body_text(op, body, calls);
  if (found) *found = std::move(calls);
  body.group = op.group;
  body.ragged = op.ragged;
  body.checked = form == Build::checked;
  if (body.checked) body.outputs.push_back({"oclc_outside", op.each.size(), true, false, false});
  return body;
}

std::string call_place(const CustomOp& op, int call) {
  std::vector<Call> calls;
  body_of(op, Build::plain, &calls);
  const auto at = static_cast<std::size_t>(call) - 1;
  if (at >= calls.size()) return fmt::format("{}: call {}", op.file, call);
  return fmt::format("{}:{}:{}: {}", op.file, calls[at].place.line, calls[at].place.column, calls[at].text);
}

std::vector<Value*> build(Builder& builder, const CustomOp& op, const std::vector<Value*>& inputs, const Attributes& attributes,
                          Build form) {
  Expansion expansion(builder, op, inputs, attributes);
  if (!op.scalar.empty()) return expansion.scalar_node();
  return op.kernel.empty() ? expansion.run() : expansion.body_nodes(form);
}

}  // namespace oclc::custom
