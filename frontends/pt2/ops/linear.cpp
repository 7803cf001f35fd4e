// Matrix products and attention.
#include <cmath>
#include <limits>

#include "frontends/pt2/gradient.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

bool is_one(AtenContext& c, const char* name) { return !c.has(name) || c.real(name) == 1; }

// Vectors take part as a row on the left and a column on the right.
Value* product(AtenContext& c, Value* a, Value* b) { return onnx_call(c, "MatMul", {a, b})[0]; }

Outputs mm(AtenContext& c) { return {product(c, c.tensor("self"), c.tensor(c.core()))}; }

// beta * self + alpha * (a @ b), rounded once.
Outputs added(AtenContext& c) {
  const std::string first(c.core()), second = first == "mat1" ? "mat2" : first == "batch1" ? "batch2" : "vec";
  const bool plain = is_one(c, "alpha") && is_one(c, "beta");
  const auto factor = [&](const std::string& name) { return plain ? c.tensor(name) : c.widened(c.tensor(name)); };
  Value* y = product(c, factor(first), factor(second));
  if (y->type.rank() > c.result().rank()) y = c.b.reduce("reduce_sum", y, {0}, false);  // addbmm: over the batch
  const DType dtype = y->type.dtype;
  if (!is_one(c, "alpha")) y = c.b.mul(y, c.operand("alpha", dtype));
  if (c.has("beta") && c.real("beta") == 0) return {c.b.cast(y, c.result().dtype)};
  Value* bias = c.operand("self", dtype);
  if (!is_one(c, "beta")) bias = c.b.mul(bias, c.operand("beta", dtype));
  return {c.b.cast(c.b.add(y, bias), c.result().dtype)};
}

// The sum over some axes of the product of three tensors, each with axes of size 1 put in at the places named.
Outputs product_of_three(AtenContext& c) {
  const auto apart = [&](const char* name, const char* places) {
    Value* x = c.tensor(name);
    Shape shape = x->type.shape;
    for (const std::int64_t at : c.integers(places)) shape.insert(shape.begin() + at, Expr(1));
    return c.b.reshape(x, std::move(shape));
  };
  Value* y = c.b.mul(c.b.mul(apart("i1", "expand1"), apart("i2", "expand2")), apart("i3", "expand3"));
  return {c.b.reduce("reduce_sum", y, c.axes("sumdim", y->type.rank()), false)};
}

// x @ weight^T + bias
Outputs linear(AtenContext& c) {
  Value *x = c.tensor("input"), *weight = c.tensor("weight"), *bias = c.optional_tensor("bias");
  const Shape shape = x->type.shape;
  Value* y = nullptr;
  if (shape.size() == 1) {
    y = c.b.reshape(c.b.matmul(c.b.reshape(x, {Expr(1), shape[0]}), weight, false, true), {weight->type.shape[0]});
  } else if (shape.size() == 2) {
    y = c.b.matmul(x, weight, false, true);
  } else {
    Shape result(shape.begin(), shape.end() - 1);
    const Expr rows = oclc::product(std::span<const Expr>(result));
    result.push_back(weight->type.shape[0]);
    y = c.b.reshape(c.b.matmul(c.b.reshape(x, {rows, shape.back()}), weight, false, true), result);
  }
  return {bias ? c.b.add(y, bias) : y};
}

struct Attention {
  bool causal = false;
  double scale = 0;
  Value* mask = nullptr;
};

Value* scores_of(AtenContext& c, Value* q, Value* k, const Attention& a) {
  Value* scores = c.b.mul(c.b.matmul(q, k, false, true), a.scale);
  const DType dtype = q->type.dtype;
  Value* lowest = c.b.scalar(dtype, -std::numeric_limits<double>::infinity());
  if (a.causal) {
    const std::size_t rank = q->type.rank();
    Value* row = c.b.iota({q->type.shape[rank - 2], Expr(1)}, 0, DType::i64);
    Value* column = c.b.iota({Expr(1), k->type.shape[rank - 2]}, 1, DType::i64);
    scores = c.b.where(c.b.call("less_equal", {column, row}), scores, lowest);
  }
  if (!a.mask) return scores;
  if (a.mask->type.dtype == DType::boolean) return c.b.where(a.mask, scores, lowest);
  return c.b.add(scores, c.b.cast(a.mask, dtype));
}

Value* attended(AtenContext& c, Value* q, Value* k, Value* v, const Attention& a) {
  Value* scores = scores_of(c, q, k, a);
  const auto last = static_cast<std::int64_t>(scores->type.rank()) - 1;
  Value* shares = c.b.softmax(scores, last);
  if (a.mask) {  // queries that may look at no key give 0
    Value* top = c.b.reduce("reduce_max", scores, {last}, true);
    Value* dead = c.b.call("equal", {top, c.b.scalar(top->type.dtype, -std::numeric_limits<double>::infinity())});
    shares = c.b.where(dead, c.b.scalar(top->type.dtype, 0), shares);
  }
  return c.b.matmul(shares, v);
}

Attention attention_of(AtenContext& c) {
  Value* q = c.tensor("query");
  if (c.real("dropout_p", 0) != 0)
    c.refuse("attention without dropout", "dropout_p", "set dropout_p to 0, or put nn.Dropout behind the softmax");
  Attention a{c.flag("is_causal"), 0, c.optional_tensor("attn_mask")};
  const Expr width = q->type.shape.back();
  if (!c.has("scale") && !width.is_constant()) c.refuse("heads of known width", q->type.text());
  a.scale = c.has("scale") ? c.real("scale") : 1 / std::sqrt(static_cast<double>(width.value()));
  return a;
}

Value* with_heads_of(AtenContext& c, Value* x, const Value* q) {
  const Shape& s = x->type.shape;
  if (s.size() != 4 || s[1] == q->type.shape[1]) return x;
  const Expr repeats = floor_div(q->type.shape[1], s[1]);
  Value* wide = c.b.expand(c.b.reshape(x, {s[0], s[1], Expr(1), s[2], s[3]}), {s[0], s[1], repeats, s[2], s[3]});
  return c.b.reshape(wide, {s[0], q->type.shape[1], s[2], s[3]});
}

Outputs attention(AtenContext& c) {
  Value* q = c.tensor("query");
  const bool shares_heads = c.flag("enable_gqa");
  Value *k = c.tensor("key"), *v = c.tensor("value");
  if (shares_heads) {
    k = with_heads_of(c, k, q);
    v = with_heads_of(c, v, q);
  }
  return {attended(c, q, k, v, attention_of(c))};
}

// The operator that torch chooses on CPUs, with the logarithm of the sums that its gradient wants.
Outputs flash_attention(AtenContext& c) {
  const Attention a = attention_of(c);
  Value *q = c.tensor("query"), *k = c.tensor("key");
  Outputs out{attended(c, q, k, c.tensor("value"), a), nullptr};
  if (!c.wants(1)) return out;
  Value* scores = c.b.cast(scores_of(c, q, k, a), c.result(1).dtype);
  Value* sums = onnx_call(c, "ReduceLogSumExp", {scores, c.b.ints({-1})}, {{"keepdims", std::int64_t{0}}})[0];
  out[1] = sums->type.shape == c.result(1).shape ? sums : c.b.transpose(sums, {0, 2, 1});
  return out;
}

Outputs flash_attention_backward(AtenContext& c) {
  const Attention a = attention_of(c);
  return gradients_of(c, {c.tensor("query"), c.tensor("key"), c.tensor("value")}, c.tensor("grad_out"),
                      [&](const std::vector<Value*>& own) { return attended(c, own[0], own[1], own[2], a); });
}

constexpr OpRow kLinearRows[] = {
    {"aten.mm.default", mm, "mat2"},
    {"aten.bmm.default", mm, "mat2"},
    {"aten.matmul.default", mm, "other"},
    {"aten.mv.default", mm, "vec"},
    {"aten.dot.default", mm, "tensor"},
    {"aten.vdot.default", mm, "other"},
    {"aten.addmm.default", added, "mat1"},
    {"aten.baddbmm.default", added, "batch1"},
    {"aten.addbmm.default", added, "batch1"},
    {"aten.addmv.default", added, "mat"},
    {"aten._trilinear.default", product_of_three},
    {"aten.linear.default", linear},
    {"aten.scaled_dot_product_attention.default", attention},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", flash_attention},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", flash_attention_backward},
};

}  // namespace

std::span<const OpRow> linear_rows() { return kLinearRows; }

}  // namespace oclc::pt2
