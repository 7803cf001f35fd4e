// Losses as torch.export leaves them whole.
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

constexpr OpRow kLossRows[] = {
    {"aten.cross_entropy_loss.default", cross_entropy},
    {"aten.nll_loss.default", nll},
    {"aten.nll_loss_nd.default", nll},
    {"aten.mse_loss.default", mse},
    {"aten.l1_loss.default", l1},
    {"aten.huber_loss.default", huber_of},
    {"aten.smooth_l1_loss.default", huber_of, "smooth"},
    {"aten.binary_cross_entropy_with_logits.default", binary_with_logits},
};

}  // namespace

std::span<const OpRow> loss_rows() { return kLossRows; }

}  // namespace oclc::pt2
