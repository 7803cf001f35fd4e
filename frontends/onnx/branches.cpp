// If. Where the condition is known the branch that is taken replaces the node. Else both are read: as loops that go round once
// or never, or, where only a branch itself knows its results' sizes, both as they are. A branch that cannot be read makes a
// plan that refuses to run where it is taken.
#include <algorithm>

#include "compiler/ops/shape_rules.h"
#include "frontends/onnx/loop_body.h"
#include "frontends/onnx/op_uses.h"

namespace oclc::onnx {

using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

namespace {

using Exprs = std::vector<Expr>;

Shape without_rows(const Value* rows) { return {rows->type.shape.begin() + 1, rows->type.shape.end()}; }

// The elements of x as a vector of `count`, the first of them.
Value* flat(Builder& b, Value* x, const Expr& count) {
  return b.slice_axis(b.reshape(x, {x->type.elements()}), 0, Expr(0), count);
}

// `shape[i]` where `taken` is 1, else `other[i]`.
Exprs chosen_sizes(OpContext& c, const Expr& taken, const Shape& shape, const Shape& other) {
  Exprs sizes, differing;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool same = shape[i] == other[i];
    sizes.push_back(same ? shape[i] : taken * shape[i] + (Expr(1) - taken) * other[i]);
    if (!same) differing.push_back(sizes.back());
  }
  if (differing.size() < 2) return sizes;
  // The product of several would have powers of `taken`.
  const auto count = static_cast<std::int64_t>(differing.size());
  const Exprs read = c.b.read_dims(c.b.exprs(differing, {count}), "size", Exprs(differing.size(), Expr(kOpenDim)));
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!(shape[i] == other[i])) sizes[i] = read[next++];
  return sizes;
}

// x where `taken` is 1, else y, whose elements beyond those that count are no part of it.
Value* chosen(OpContext& c, const Expr& taken, Value* x, Value* y, const Shape& shape, const Shape& other) {
  const Exprs sizes = chosen_sizes(c, taken, shape, other);
  Value* both = c.b.concat({flat(c.b, x, taken * product(shape)), flat(c.b, y, (Expr(1) - taken) * product(other))}, 0);
  if (!(product(sizes) == both->type.elements())) both = c.b.slice_axis(both, 0, Expr(0), product(sizes));
  return c.b.reshape(both, sizes);
}

void check_types(OpContext& c, std::size_t i, const TensorType& then, const TensorType& otherwise) {
  if (then.dtype != otherwise.dtype || then.rank() != otherwise.rank())
    c.unsupported(fmt::format("one type and rank of output {} in both branches", i),
                  fmt::format("{} and {}", then.text(), otherwise.text()), "give the condition's operand with --value NAME=..");
}

// Of a condition that two sizes are equal (torch's squeeze of an axis that may be 1), which decides the rank of what follows:
// they are taken for equal.
bool assumed_equal(const OpContext& c, const Value* condition) {
  const Node* node = condition->producer;
  while (node && node->op->name == "reshape") node = node->inputs[0]->producer;
  if (!node || node->op->name != "equal" || !c.b.assumes()) return false;
  for (const Value* size : node->inputs)
    if (!size->content || size->content->size() != 1) return false;
  return c.b.assumptions()->equal(node->inputs[0]->content->front(), node->inputs[1]->content->front(), c.label());
}

}  // namespace

Outputs Lowering::branch(OpContext& c, const NodeProto& node, Scope& scope) {
  const Value* condition = c.input(0);
  check_condition(c, condition);
  Branches branches;
  for (const bool taken : {false, true})
    branches.graphs[taken] = &body_of(c, node, taken ? "then_branch" : "else_branch", 0, node.output_size());
  for (int i = 0; i < node.output_size(); ++i) {
    const auto type = [&](bool taken) { return branches.graphs[taken]->output(i).type().tensor_type().elem_type(); };
    if (type(true) != 0 && type(false) != 0 && type(true) != type(false)) {
      c.fail(fmt::format("one type of output {} in both branches", i),
             fmt::format("{} and {}", element_type_name(type(true)), element_type_name(type(false))));
    }
  }
  const auto take = [&](const HostTensor& known) {
    Scope inner(&scope, *builder_);
    return expand(c, *branches.graphs[known.int_at(0) != 0], {}, inner, call_->prefix);
  };
  if (const auto known = constants_.find(condition)) return take(*known);
  try {
    return either_branch(c, condition, branches, scope);
  } catch (const CompileError&) {
    if (const auto known = known_.find(condition)) return take(*known);
    if (!assumed_equal(c, condition)) throw;
    Scope inner(&scope, *builder_);
    return expand(c, *branches.graphs[true], {}, inner, call_->prefix);
  }
}

// Reads the branches as bodies of loops. Those that only know their results' sizes when they run are no such bodies.
void Lowering::read_branches(OpContext& c, Branches& branches, Scope& scope) {
  for (const bool which : {false, true}) {
    try {
      auto body = std::make_unique<Body>(*this, c, scope);
      // What a branch asks for holds only where it is taken.
      branches.asked[which] = c.b.assumptions()->without_list();
      body->builder.assume(&*branches.asked[which]);
      const std::vector<Value*> outputs = expand(c, *branches.graphs[which], {}, body->scope, call_->prefix);
      for (const Value* output : outputs)
        if (bundle(output)) condition_not_known(c);
      branches.sized = branches.sized && !body->computes_sizes(outputs);
      if (branches.sized) body->give(c, outputs, {}, 0);
      body->end();
      branches.bodies[which] = std::move(body);
    } catch (const CompileError& error) {
      if (error.parts().wanted == kSupportedOnly) throw;  // of such a branch nothing can be said
      if (has_open_sizes_ && !c.b.assumes()) throw;       // it may fit where sizes are taken for equal
      branches.failures[which] = error.what();
      if (!branches.failures[!which].empty()) throw;
    }
  }
}

// `flag`, which is read after the plan has refused to run where `is_taken` is 1 and sizes differ that the branch asks to be
// equal.
Value* Lowering::after_check(OpContext& c, Value* flag, Value* is_taken, const Branches& branches, bool which) {
  const std::string_view name = which ? "then_branch" : "else_branch";
  if (!branches.sized || !branches.asked[which]) return flag;
  Exprs left, right;
  for (const auto* list : {&branches.asked[which]->list(), &branches.asked[which]->least()}) {
    for (const Assumption& a : *list) {
      left.push_back(a.left);
      right.push_back(a.right);
    }
  }
  if (left.empty()) return flag;
  for (const Assumption& a : branches.asked[which]->list()) {
    c.warn(fmt::format("node '{}': {} and {} are taken for equal where the {} is taken, and compared when the plan runs",
                       printable(a.node), a.left.text(), a.right.text(), name));
  }
  const auto count = static_cast<std::int64_t>(left.size());
  Value* equal = c.b.call("equal", {c.b.exprs(left, {count}), c.b.exprs(right, {count})});
  Value* all = c.b.reduce("reduce_min", c.b.cast(equal, DType::i64), {0}, true);
  Value* misfit = c.b.mul(is_taken, c.b.sub(c.b.scalar(DType::i64, 1), all));
  return c.b.add(flag, c.b.exprs(c.b.read_dims(misfit, fmt::format("sizes_that_do_not_fit_the_{}_", name), {Expr(0)}), {1}));
}

Outputs Lowering::either_branch(OpContext& c, const Value* condition, Branches& branches, Scope& scope) {
  read_branches(c, branches, scope);
  Value* flag = c.b.reshape(c.b.cast(const_cast<Value*>(condition), DType::i64), {Expr(1)});
  const auto run = [&](bool which, const Expr& trips) {
    if (branches.sized) return branches.bodies[which]->loop(c, trips, {});
    Scope inner(&scope, *builder_);
    return expand(c, *branches.graphs[which], {}, inner, call_->prefix);
  };
  for (const bool bad : {false, true}) {
    if (branches.failures[bad].empty()) continue;
    const std::string_view name = bad ? "then_branch" : "else_branch";
    c.warn(fmt::format("the plan refuses to run where the {} is taken: {}", name, branches.failures[bad]));
    if (!bad) flag = c.b.sub(c.b.scalar(DType::i64, 1), flag);
    flag = after_check(c, flag, c.b.sub(c.b.scalar(DType::i64, 1), flag), branches, !bad);
    const Expr taken = c.b.read_dims(flag, fmt::format("{}_that_does_not_fit_", name), {Expr(0)}).at(0);
    Outputs out = run(!bad, Expr(1) - taken);
    for (Value*& y : out) {
      const Shape shape = branches.sized ? without_rows(y) : y->type.shape;
      y = c.b.reshape(branches.sized ? c.b.slice_axis(y, 0, Expr(0), Expr(1)) : y, shape);
      // What is given depends on the flag, so that the flag is read.
      if (!branches.sized && !shape.empty()) y = c.b.slice_axis(y, 0, taken, shape[0]);
    }
    return out;
  }
  flag = after_check(c, flag, c.b.sub(c.b.scalar(DType::i64, 1), flag), branches, false);
  flag = after_check(c, flag, flag, branches, true);
  const Expr taken = c.b.read_dims(flag, "taken", {Expr(1)}).at(0);
  const Outputs otherwise = run(false, Expr(1) - taken), then = run(true, taken);
  Outputs out;
  for (std::size_t i = 0; i < then.size(); ++i) {
    check_types(c, i, then[i]->type, otherwise[i]->type);
    const Shape shape = branches.sized ? without_rows(then[i]) : then[i]->type.shape;
    const Shape other = branches.sized ? without_rows(otherwise[i]) : otherwise[i]->type.shape;
    if (branches.sized && shape == other) {
      out.push_back(c.b.reshape(c.b.concat({otherwise[i], then[i]}, 0), shape));
    } else {
      out.push_back(chosen(c, taken, then[i], otherwise[i], shape, other));
    }
  }
  return out;
}

}  // namespace oclc::onnx
