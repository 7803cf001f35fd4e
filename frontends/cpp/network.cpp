#include "frontends/cpp/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/support/error.h"
#include "compiler/support/nearest.h"

namespace oclc::nn {
namespace {

Tensor wrap(const Tensor& like, Value* value) { return {&like.network(), value}; }

Builder& builder(const Tensor& x) { return x.network().builder(); }

Tensor number(const Tensor& like, double value) { return like.network().scalar(like.dtype(), value); }

// The operands of `op`; the first names the network.
std::vector<Value*> values(std::string_view op, const std::vector<Tensor>& tensors) {
  if (tensors.empty())
    throw CompileError({.stage = "network", .op = std::string(op), .wanted = "at least one tensor", .found = "none"});
  for (const Tensor& t : tensors) {
    if (t) continue;
    throw CompileError({.stage = "network", .op = std::string(op), .wanted = "a tensor", .found = "an empty one"});
  }
  std::vector<Value*> list;
  for (const Tensor& t : tensors) list.push_back(tensors[0].network().operand(op, t).value());
  return list;
}

// "wanted a name for each <what>, found ..."
[[noreturn]] void taken(const std::string& node, const char* what, const std::string& name) {
  throw CompileError({.stage = "network",
                      .node = node,
                      .wanted = fmt::format("a name for each {}", what),
                      .found = fmt::format("'{}' twice", name)});
}

}  // namespace

Network& Tensor::network() const {
  if (!network_) throw CompileError({.stage = "network", .wanted = "a tensor", .found = "an empty one"});
  return *network_;
}

DType Tensor::dtype() const {
  network();
  return value_->type.dtype;
}

const Shape& Tensor::shape() const {
  network();
  return value_->type.shape;
}

const Expr& Tensor::dim(std::int64_t axis) const {
  network();
  try {
    return shape()[static_cast<std::size_t>(normalise_axis(axis, rank()))];
  } catch (const CompileError& error) {
    auto parts = error.parts();
    parts.stage = "network";
    parts.node = network_->path();
    throw CompileError(parts);
  }
}

std::int64_t Tensor::size(std::int64_t axis) const {
  const Expr& e = dim(axis);
  if (!e.is_constant()) {
    throw CompileError({.stage = "network",
                        .node = network_->path(),
                        .wanted = fmt::format("a known size of axis {}", axis),
                        .found = value_->type.text()});
  }
  return e.value();
}

Tensor Tensor::reshape(Shape shape) const { return wrap(*this, builder(*this).reshape(value_, std::move(shape))); }
Tensor Tensor::transpose(Ints perm) const { return wrap(*this, builder(*this).transpose(value_, std::move(perm))); }
Tensor Tensor::slice(std::int64_t axis, const Expr& start, const Expr& size) const {
  return wrap(*this, builder(*this).slice_axis(value_, axis, start, size));
}
Tensor Tensor::cast(DType dtype) const { return wrap(*this, builder(*this).cast(value_, dtype)); }
Tensor Tensor::mean(const Ints& axes, bool keepdims) const {
  return wrap(*this, builder(*this).reduce("reduce_mean", value_, axes, keepdims));
}
Tensor Tensor::sum(const Ints& axes, bool keepdims) const {
  return wrap(*this, builder(*this).reduce("reduce_sum", value_, axes, keepdims));
}

Tensor Tensor::max(const Ints& axes, bool keepdims) const {
  return wrap(*this, builder(*this).reduce("reduce_max", value_, axes, keepdims));
}
Tensor Tensor::min(const Ints& axes, bool keepdims) const {
  return wrap(*this, builder(*this).reduce("reduce_min", value_, axes, keepdims));
}

Network::Network(std::string name, Parameters parameters, Use use)
    : module_(std::make_shared<Module>()),
      parameters_(std::move(parameters)),
      use_(use),
      builder_(*module_->entries.emplace_back(std::make_unique<Graph>())) {
  module_->name = std::move(name);
}

Expr Network::symbol(const std::string& name, std::int64_t lo, std::int64_t hi) {
  for (const Expr& known : module_->symbols) {
    if (known.symbol_name() == name) return known;
  }
  module_->symbols.push_back(Expr::symbol(name, lo, hi));
  return module_->symbols.back();
}

const Tensor& Network::operand(std::string_view op, const Tensor& tensor) const {
  if (tensor && &tensor.network() == this) return tensor;
  throw CompileError({.stage = "network",
                      .node = path(),
                      .op = std::string(op),
                      .wanted = "a tensor of this network",
                      .found = tensor ? "one of another" : "an empty one"});
}

Tensor Network::input(std::string name, DType dtype, Shape shape) {
  for (const auto& known : builder_.graph().inputs()) {
    if (known->name == name) taken(path(), "input", name);
  }
  return {this, builder_.graph().add_input(std::move(name), {dtype, std::move(shape)})};
}

void Network::output(std::string name, const Tensor& tensor) {
  for (const auto& [known, value] : builder_.graph().outputs()) {
    if (known == name) taken(path(), "output", name);
  }
  Value* value = operand("output", tensor).value();
  builder_.graph().add_output(std::move(name), value);
}

Tensor Network::parameter(std::string_view name, const Ints& shape) {
  const std::string full = path(name);
  const auto known = made_.find(full);
  if (known != made_.end()) {
    if (known->second->type.shape != Shape(shape.begin(), shape.end())) {
      throw CompileError({.stage = "network",
                          .node = full,
                          .op = "parameter",
                          .wanted = "one shape for all uses of " + known->second->type.text(),
                          .found = fmt::format("[{}]", fmt::join(shape, ", "))});
    }
    return {this, known->second};
  }
  HostTensor initial = parameters_(full, shape);
  Value* value = nullptr;
  if (use_ == Use::training) {
    for (const auto& input : builder_.graph().inputs()) {
      if (input->name == full) taken(full, "input or parameter", full);
    }
    value = builder_.graph().add_input(full, initial.type());
    module_->states.push_back({full, initial.type(), std::move(initial), {}});
  } else {
    value = builder_.constant(std::move(initial), full);
  }
  made_.emplace(full, value);
  return {this, value};
}

std::vector<Tensor> Network::call_all(std::string_view name, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  const custom::CustomOp* op = ops_.find(name);
  if (!op)
    throw CompileError({.stage = "network",
                        .node = path(),
                        .op = "call",
                        .wanted = fmt::format("an operator that was added ({})", fmt::join(ops_.names(), ", ")),
                        .found = fmt::format("'{}'", name),
                        .advice = did_you_mean(name, ops_.names())});
  std::vector<Value*> values;
  for (const Tensor& tensor : inputs) values.push_back(tensor ? operand(name, tensor).value() : nullptr);
  std::vector<Tensor> results;
  for (Value* value : custom::build(builder_, *op, values, attributes)) results.emplace_back(this, value);
  return results;
}

Tensor Network::constant(HostTensor tensor) { return {this, builder_.constant(std::move(tensor))}; }

Tensor Network::scalar(DType dtype, double value) { return {this, builder_.scalar(dtype, value)}; }

std::string Network::path(std::string_view name) const {
  if (name.empty() || path_.empty()) return path_ + std::string(name);
  return path_ + "." + std::string(name);
}

Network::Scope::Scope(Network& network, std::string_view name) : network_(network), outer_(network.path_.size()) {
  network_.path_ = network_.path(name);
  network_.builder_.set_source(network_.path_);
}

Network::Scope::~Scope() {
  network_.path_.resize(outer_);
  network_.builder_.set_source(network_.path_);
}

std::shared_ptr<Module> Network::finish() {
  Graph& graph = builder_.graph();
  if (graph.outputs().empty())
    throw CompileError(
        {.stage = "network", .wanted = fmt::format("network {} with at least one output", module_->name), .found = "none"});
  graph.erase_dead();
  const std::string problem = verify(graph);
  OCLC_CHECK(problem.empty(), problem);
  return std::move(module_);
}

Tensor apply(std::string_view op, const std::vector<Tensor>& operands) {
  std::vector<Value*> list = values(op, operands);
  const OpDef* def = find_op(op);
  if (def && def->scalar) return wrap(operands[0], builder(operands[0]).call(op, std::move(list)));
  std::vector<std::string> names;
  for (const OpDef& row : elementwise_ops()) names.emplace_back(row.name);
  throw CompileError({.stage = "network",
                      .node = operands[0].network().path(),
                      .op = "apply",
                      .wanted = fmt::format("an elementwise core operator ({})", fmt::join(names, ", ")),
                      .found = fmt::format("'{}'", op),
                      .advice = did_you_mean(op, names)});
}

Tensor operator+(const Tensor& a, const Tensor& b) { return apply("add", {a, b}); }
Tensor operator-(const Tensor& a, const Tensor& b) { return apply("sub", {a, b}); }
Tensor operator*(const Tensor& a, const Tensor& b) { return apply("mul", {a, b}); }
Tensor operator/(const Tensor& a, const Tensor& b) { return apply("div", {a, b}); }
Tensor operator+(const Tensor& a, double b) { return a + number(a, b); }
Tensor operator-(const Tensor& a, double b) { return a - number(a, b); }
Tensor operator*(const Tensor& a, double b) { return a * number(a, b); }
Tensor operator/(const Tensor& a, double b) { return a / number(a, b); }
Tensor operator-(const Tensor& a) { return apply("neg", {a}); }

Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  const std::vector<Value*> list = values("matmul", {a, b});
  return wrap(a, builder(a).matmul(list[0], list[1], trans_a, trans_b));
}

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  std::vector<Value*> list = values("concat", tensors);
  return wrap(tensors[0], builder(tensors[0]).concat(std::move(list), axis));
}

Tensor softmax(const Tensor& x, std::int64_t axis) { return wrap(x, builder(x).softmax(x.value(), axis)); }

}  // namespace oclc::nn
