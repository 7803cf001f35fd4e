#include "compiler/ops/user_op.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "compiler/ops/builder.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

struct UserOps {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const UserOp>, std::less<>> by_name;
  std::map<std::string, std::string, std::less<>> code;
};

UserOps& user_ops() {
  static UserOps all;
  return all;
}

const UserOp& user_op_of(const Node& node) { return static_cast<const UserOp&>(*node.op); }

std::vector<TensorType> infer_user_op(const Node& node) { return user_op_of(node).types(node); }

std::vector<HostTensor> eval_user_op(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const UserOp& own = user_op_of(node);
  if (!own.reference)
    throw CompileError({.op = own.title,
                        .wanted = "a key 'reference' in the operator's head: the host computes what it says",
                        .found = "none",
                        .exit_code = ExitCode::unsupported});
  Graph graph;
  Builder builder(graph, node.source);
  std::vector<Value*> values;
  std::vector<HostTensor> given;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    values.push_back(node.inputs[i] ? graph.add_input(fmt::format("x{}", i), inputs[i].type()) : nullptr);
    if (node.inputs[i]) given.push_back(inputs[i]);
  }
  std::vector<Value*> results = own.reference(builder, node, values);
  for (std::size_t i = 0; i < results.size(); ++i) graph.add_output(fmt::format("y{}", i), results[i]);
  return evaluate(graph, given, symbols);
}

Cost cost_of_user_op(const Node& node) {
  const UserOp& own = user_op_of(node);
  return {own.flops ? own.flops(node) : Expr(0)};
}

std::vector<Value*> gradient_of_user_op(Builder& builder, const Node& node, std::span<Value* const> gradients) {
  const UserOp& own = user_op_of(node);
  if (!own.differentiated)
    throw CompileError({.op = own.title,
                        .wanted = "a key 'gradient' or 'gradient_op' in the head of " + own.title,
                        .exit_code = ExitCode::unsupported});
  return own.differentiated(builder, node, gradients);
}

}  // namespace

const UserOp& keep_op(std::unique_ptr<UserOp> op) {
  UserOps& all = user_ops();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_name.find(op->own_name);
  if (known != all.by_name.end()) return *known->second;
  op->name = op->own_name;
  op->formula = op->title;
  op->infer = infer_user_op;
  op->eval = op->reference ? eval_user_op : nullptr;
  op->cost = cost_of_user_op;
  op->gradient = gradient_of_user_op;
  if (op->body) {
    op->kind = OpKind::opaque;
    op->max_inputs = INT32_MAX;
  } else {
    op->kind = OpKind::elementwise;
    op->own_scalar.float_text = op->own_scalar.integer_text = op->own_text;
    op->scalar = &op->own_scalar;
  }
  const std::string name = op->own_name;
  return *all.by_name.emplace(name, std::move(op)).first->second;
}

const UserOp* find_user_op(std::string_view name) {
  UserOps& all = user_ops();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_name.find(name);
  return known == all.by_name.end() ? nullptr : known->second.get();
}

const UserOp* as_user_op(const OpDef& def) { return def.infer == infer_user_op ? static_cast<const UserOp*>(&def) : nullptr; }

const UserOperand& operand_of_input(const UserBody& body, std::size_t i) {
  OCLC_CHECK(!body.inputs.empty(), "an operator without inputs");
  return body.inputs[std::min(i, body.inputs.size() - 1)];
}

void keep_code(const std::string& prefix, std::string text) {
  UserOps& all = user_ops();
  const std::lock_guard lock(all.mutex);
  all.code.emplace(prefix, std::move(text));
}

std::string user_code_for(std::string_view source) {
  UserOps& all = user_ops();
  const std::lock_guard lock(all.mutex);
  std::string text;
  for (const auto& [prefix, code] : all.code) {
    if (source.find(prefix) == std::string_view::npos) continue;
    text += fmt::format("#ifndef OCLC_HAVE_{0}\n#define OCLC_HAVE_{0}\n{1}#endif\n", prefix, code);
  }
  return text;
}

}  // namespace oclc
