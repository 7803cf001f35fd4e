// Losses as torch.export leaves them whole.
#include <numbers>

#include "frontends/pt2/norms.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// torch's numbers of reductions: none, mean, sum.
constexpr std::int64_t kNone = 0, kMean = 1;

Value* over_all(AtenContext& c, std::string_view op, Value* x) {
  Ints axes;
  for (std::size_t i = 0; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes.empty() ? x : c.b.reduce(op, x, axes, false);
}

Outputs collected(AtenContext& c, Value* loss) {
  const std::int64_t reduction = c.integer("reduction", kMean);
  if (reduction == kNone) return {loss};
  return {over_all(c, reduction == kMean ? "reduce_mean" : "reduce_sum", loss)};
}

// Of log-probabilities [N, C, ..] and classes [N, ..], or [C] and one class: those that are not ignored count, by their weight.
Outputs likelihood(AtenContext& c, Value* log_probability, double smoothing) {
  Value* target = c.tensor("target");
  const std::size_t rank = log_probability->type.rank();
  const std::int64_t axis = rank == 1 ? 0 : 1;
  const DType dtype = log_probability->type.dtype;
  Shape column = target->type.shape;
  column.insert(column.begin() + axis, Expr(1));
  Value* index = c.b.reshape(c.b.cast(target, DType::i64), column);
  Value* ignored = c.has("ignore_index") ? c.operand("ignore_index", DType::i64) : c.b.scalar(DType::i64, -100);
  Value* counts = c.b.unary("not", c.b.call("equal", {index, ignored}));
  index = c.b.where(counts, index, c.b.scalar(DType::i64, 0));
  Value* weight = c.b.cast(counts, dtype);
  Value* table = c.optional_tensor("weight");
  if (table) weight = c.b.mul(weight, c.b.gather(table, index, 0));
  Value* loss = c.b.mul(c.b.unary("neg", c.b.gather_elements(log_probability, index, axis)), weight);
  if (smoothing != 0) {
    Value* spread = log_probability;
    if (table) {
      Shape wide(rank, Expr(1));
      wide[static_cast<std::size_t>(axis)] = table->type.shape[0];
      spread = c.b.mul(spread, c.b.reshape(table, wide));
    }
    const Expr& classes = log_probability->type.shape[static_cast<std::size_t>(axis)];
    if (!classes.is_constant()) c.refuse("a known number of classes", log_probability->type.text());
    spread = c.b.mul(c.b.reduce("reduce_sum", spread, {axis}, true), -smoothing / static_cast<double>(classes.value()));
    loss = c.b.add(c.b.mul(loss, 1 - smoothing), c.b.mul(spread, c.b.cast(counts, dtype)));
  }
  const std::int64_t reduction = c.integer("reduction", kMean);
  if (reduction == kNone) return {c.b.reshape(loss, target->type.shape)};
  Value* sum = over_all(c, "reduce_sum", loss);
  return {reduction == kMean ? c.b.div(sum, over_all(c, "reduce_sum", weight)) : sum};
}

Outputs cross_entropy(AtenContext& c) {
  Value* x = c.tensor("self");
  if (is_float(c.tensor("target")->type.dtype))
    c.refuse("classes as target of cross_entropy", "probabilities", "write the loss with log_softmax");
  return likelihood(c, c.b.log_softmax(x, x->type.rank() == 1 ? 0 : 1), c.real("label_smoothing", 0));
}

Outputs nll(AtenContext& c) { return likelihood(c, c.tensor("self"), 0); }

Outputs mse(AtenContext& c) {
  Value* d = c.b.sub(c.tensor("self"), c.tensor("target"));
  return collected(c, c.b.mul(d, d));
}

Outputs l1(AtenContext& c) { return collected(c, c.b.unary("abs", c.b.sub(c.tensor("self"), c.tensor("target")))); }

// d^2 / 2 up to |d| = delta, linear beyond; smooth_l1 is that divided by beta.
Outputs huber_of(AtenContext& c) {
  const bool smooth = c.core() == "smooth";
  const double delta = c.real(smooth ? "beta" : "delta", 1);
  Value* size = c.b.unary("abs", c.b.sub(c.tensor("self"), c.tensor("target")));
  if (delta == 0) return collected(c, size);
  Value* inner = c.b.min(size, c.b.scalar(size->type.dtype, delta));
  Value* loss = c.b.mul(inner, c.b.sub(size, c.b.mul(inner, 0.5)));
  return collected(c, smooth ? c.b.mul(loss, 1 / delta) : loss);
}

// (1 - t) x + (1 + (w - 1) t) log(1 + e^-x)
Outputs binary_with_logits(AtenContext& c) {
  Value *x = c.tensor("self"), *t = c.tensor("target");
  const DType dtype = x->type.dtype;
  Value* loss = c.b.sub(c.b.unary("softplus", x), c.b.mul(x, t));
  if (Value* positive = c.optional_tensor("pos_weight")) {
    Value* factor = c.b.add(c.b.mul(c.b.sub(positive, c.b.scalar(dtype, 1)), t), 1.0);
    loss = c.b.add(c.b.mul(c.b.sub(c.b.scalar(dtype, 1), t), x), c.b.mul(factor, c.b.unary("softplus", c.b.unary("neg", x))));
  }
  if (Value* weight = c.optional_tensor("weight")) loss = c.b.mul(loss, weight);
  return collected(c, loss);
}

Value* positive_part(AtenContext& c, Value* x) { return c.b.max(x, number(c, x, 0)); }

// x log y, and 0 where x is.
Value* x_log_y(AtenContext& c, Value* x, Value* y) {
  return c.b.where(c.b.call("equal", {x, number(c, x, 0)}), number(c, x, 0), c.b.mul(x, c.b.unary("log", y)));
}

// t (log t - x)
Outputs kullback_leibler(AtenContext& c) {
  Value *x = c.tensor("self"), *t = c.tensor("target");
  if (c.flag("log_target")) return collected(c, c.b.mul(c.b.exp(t), c.b.sub(t, x)));
  return collected(c, c.b.sub(x_log_y(c, t, t), c.b.mul(t, x)));
}

// Of probabilities; logarithms are at least -100, as torch has them.
Outputs binary(AtenContext& c) {
  Value *x = c.tensor("self"), *t = c.tensor("target"), *rest = c.b.sub(number(c, x, 1), x);
  const auto log = [&](Value* v) { return c.b.max(c.b.unary("log", v), number(c, v, -100)); };
  Value* loss = c.b.unary("neg", c.b.add(c.b.mul(t, log(x)), c.b.mul(c.b.sub(number(c, t, 1), t), log(rest))));
  if (Value* weight = c.optional_tensor("weight")) loss = c.b.mul(loss, weight);
  return collected(c, loss);
}

// log(1 + e^(-t x))
Outputs soft_margin(AtenContext& c) {
  return collected(c, c.b.unary("softplus", c.b.unary("neg", c.b.mul(c.tensor("target"), c.tensor("self")))));
}

Value* where_not(AtenContext& c, Value* t, double value, Value* y) {
  return c.b.where(c.b.call("equal", {t, number(c, t, value)}), number(c, y, 0), y);
}

// x where the target is 1, how much less than the margin it is where the target is -1.
Outputs hinge_embedding(AtenContext& c) {
  Value *x = c.tensor("self"), *t = c.tensor("target");
  Value* below = positive_part(c, c.b.sub(number(c, x, c.real("margin", 1)), x));
  return collected(c, c.b.add(where_not(c, t, -1, x), where_not(c, t, 1, below)));
}

Outputs margin_ranking(AtenContext& c) {
  Value* apart = c.b.mul(c.tensor("target"), c.b.sub(c.tensor("input2"), c.tensor("input1")));
  return collected(c, positive_part(c, c.b.add(apart, c.real("margin", 0))));
}

// 1 - cos where the target is 1, cos beyond the margin where it is -1.
Outputs cosine_embedding(AtenContext& c) {
  Value *a = c.tensor("input1"), *b = c.tensor("input2"), *t = c.tensor("target");
  const auto dot = [&](Value* x, Value* y) {
    Value* p = c.b.mul(x, y);
    return c.b.reduce("reduce_sum", p, {static_cast<std::int64_t>(p->type.rank()) - 1}, false);
  };
  constexpr double kEpsilon = 1e-12;
  Value* size = c.b.sqrt(c.b.mul(c.b.add(dot(a, a), kEpsilon), c.b.add(dot(b, b), kEpsilon)));
  Value* cosine = c.b.div(dot(a, b), size);
  const auto where_is = [&](double value, Value* y) {
    return c.b.where(c.b.call("equal", {t, number(c, t, value)}), y, number(c, y, 0));
  };
  Value* beyond = positive_part(c, c.b.add(cosine, -c.real("margin", 0)));
  return collected(c, c.b.add(where_is(1, c.b.sub(number(c, cosine, 1), cosine)), where_is(-1, beyond)));
}

Outputs triplet_margin(AtenContext& c) {
  Value *anchor = c.tensor("anchor"), *positive = c.tensor("positive"), *negative = c.tensor("negative");
  const auto distance = [&](Value* x, Value* y) {
    return norms(c, c.b.add(c.b.sub(x, y), c.real("eps", 1e-6)), c.real("p", 2));
  };
  Value* far = distance(anchor, negative);
  if (c.flag("swap")) far = c.b.min(far, distance(positive, negative));
  return collected(c, positive_part(c, c.b.add(c.b.sub(distance(anchor, positive), far), c.real("margin", 1))));
}

// Of rates, or of their logarithms; whole, with Stirling's formula for log(t!).
Outputs poisson(AtenContext& c) {
  Value *x = c.tensor("input"), *t = c.tensor("target");
  Value* loss = c.flag("log_input") ? c.b.sub(c.b.exp(x), c.b.mul(t, x))
                                    : c.b.sub(x, c.b.mul(t, c.b.unary("log", c.b.add(x, c.real("eps", 1e-8)))));
  if (c.flag("full")) {
    Value* root = c.b.mul(c.b.unary("log", c.b.mul(t, 2 * std::numbers::pi)), 0.5);
    Value* stirling = c.b.add(c.b.sub(c.b.mul(t, c.b.unary("log", t)), t), root);
    loss = c.b.add(loss, c.b.where(c.b.call("greater", {t, number(c, t, 1)}), stirling, number(c, stirling, 0)));
  }
  return collected(c, loss);
}

constexpr OpRow kLossRows[] = {
    {"aten.cross_entropy_loss.default", cross_entropy},
    {"aten.nll_loss.default", nll},
    {"aten.nll_loss_nd.default", nll},
    {"aten.mse_loss.default", mse},
    {"aten.l1_loss.default", l1},
    {"aten.huber_loss.default", huber_of},
    {"aten.smooth_l1_loss.default", huber_of, "smooth"},
    {"aten.binary_cross_entropy_with_logits.default", binary_with_logits},
    {"aten.binary_cross_entropy.default", binary},
    {"aten.kl_div.default", kullback_leibler},
    {"aten.soft_margin_loss.default", soft_margin},
    {"aten.hinge_embedding_loss.default", hinge_embedding},
    {"aten.margin_ranking_loss.default", margin_ranking},
    {"aten.cosine_embedding_loss.default", cosine_embedding},
    {"aten.triplet_margin_loss.default", triplet_margin},
    {"aten.poisson_nll_loss.default", poisson},
};

}  // namespace

std::span<const OpRow> loss_rows() { return kLossRows; }

}  // namespace oclc::pt2
