// Losses over class numbers.
#include <fmt/format.h>

#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// Losses of x[N, C, ...] = log p at the classes target[N, ...].
Value* likelihood_loss(OpContext& c, Value* x, Value* target, Value* weights) {
  const std::string reduction = c.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    c.fail("reduction none, sum or mean", printable(reduction));
  const Shape& shape = x->type.shape;
  if (shape.size() < 2) c.fail("scores of rank 2 or more", x->type.text());
  Shape wanted = shape;
  wanted.erase(wanted.begin() + 1);
  if (!(target->type.shape == wanted)) c.fail("labels of " + text_of(wanted), target->type.text());
  Value* kept = nullptr;  // null: every label counts
  if (c.has("ignore_index")) {
    Value* ignored = c.b.scalar(target->type.dtype, static_cast<double>(c.integer("ignore_index")));
    kept = c.b.unary("not", c.b.call("equal", {target, ignored}));
    target = c.b.where(kept, target, c.b.scalar(target->type.dtype, 0));
  }
  Shape column = wanted;
  column.insert(column.begin() + 1, Expr(1));
  Value* loss = c.b.reshape(c.b.gather_elements(x, c.b.reshape(target, column), 1), wanted);
  loss = c.b.unary("neg", loss);
  Value* share = weights ? c.b.gather(weights, target, 0) : nullptr;
  if (kept) {
    Value* zero = c.b.scalar(x->type.dtype, 0);
    loss = c.b.where(kept, loss, zero);
    share = share ? c.b.where(kept, share, zero) : c.b.cast(kept, x->type.dtype);
  }
  if (share) loss = c.b.mul(loss, share);
  if (reduction == "none") return loss;
  Ints axes(wanted.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (reduction == "mean" && !share) return c.b.reduce("reduce_mean", loss, axes, false);
  Value* sum = c.b.reduce("reduce_sum", loss, axes, false);
  return reduction == "sum" ? sum : c.b.div(sum, c.b.reduce("reduce_sum", share, axes, false));
}

Outputs negative_log_likelihood(OpContext& c) { return {likelihood_loss(c, c.input(0), c.input(1), c.optional_input(2))}; }

Outputs softmax_cross_entropy(OpContext& c) {
  if (c.rank(0) < 2) c.fail("scores of rank 2 or more", c.input(0)->type.text());
  Value* log_p = c.b.log_softmax(c.input(0), 1);
  return {likelihood_loss(c, log_p, c.input(1), c.optional_input(2)), log_p};
}

constexpr OpRow kLossRows[] = {
    {"NegativeLogLikelihoodLoss", 12, 2, 3, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, softmax_cross_entropy},
};

}  // namespace

std::span<const OpRow> loss_rows() { return kLossRows; }

}  // namespace oclc::onnx
