// Optimizers of the domain ai.onnx.preview.training. Inputs: learning rate R, update count T, then n tensors each of X, of
// their gradients G and of the optimizer's own tensors; outputs: what X and the own tensors become. The operator Gradient,
// which reads the graph around it, is in gradient.cpp.
#include <fmt/format.h>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

struct Update {
  Value *x, *g, *first, *second;  // second: null if the optimizer has one tensor of its own
  Value *rate, *count;            // of the type of x
};

// `rule` changes x, first and second of the update. `own`: tensors the optimizer keeps for each X.
template <class Rule>
Outputs update_all(OpContext& c, std::size_t own, const Rule& rule) {
  const std::size_t kinds = 2 + own, given = c.inputs() - 2;
  if (given == 0 || given % kinds != 0)
    c.fail(fmt::format("R, T and {} inputs for each tensor", kinds), fmt::format("{} inputs", c.inputs()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(c.input(i)->type.elements() == Expr(1))) c.fail(fmt::format("one number as input {}", i), c.input(i)->type.text());
  }
  const std::size_t n = given / kinds;
  Outputs out(n * (1 + own));
  for (std::size_t i = 0; i < n; ++i) {
    const auto input = [&](std::size_t kind) { return c.input(2 + kind * n + i); };
    const TensorType& type = input(0)->type;
    for (std::size_t kind = 1; kind < kinds; ++kind) {
      if (!(input(kind)->type == type))
        c.fail(fmt::format("{} as input {}", type.text(), 2 + kind * n + i), input(kind)->type.text());
    }
    const auto number = [&](std::size_t at) { return c.b.cast(c.b.reshape(c.input(at), {}), type.dtype); };
    Update u{input(0), input(1), input(2), own > 1 ? input(3) : nullptr, number(0), number(1)};
    if (const double decay = c.real("norm_coefficient", 0); decay != 0) u.g = c.b.add(c.b.mul(u.x, decay), u.g);
    rule(u);
    out[i] = u.x;
    out[n + i] = u.first;
    if (own > 1) out[2 * n + i] = u.second;
  }
  return out;
}

Value* one(Builder& b, Value* like) { return b.scalar(like->type.dtype, 1); }

Value* if_counted(Builder& b, Value* count, Value* yes, Value* no) {
  return b.where(b.call("greater", {count, b.scalar(count->type.dtype, 0)}), yes, no);
}

Outputs adagrad(OpContext& c) {
  const double decay = c.real("decay_factor", 0), epsilon = c.real("epsilon", 1e-6);
  return update_all(c, 1, [&](Update& u) {
    Builder& b = c.b;
    Value* rate = b.div(u.rate, b.add(b.mul(u.count, decay), one(b, u.count)));
    u.first = b.add(u.first, b.mul(u.g, u.g));
    u.x = b.sub(u.x, b.div(b.mul(rate, u.g), b.add(b.sqrt(u.first), epsilon)));
  });
}

Outputs adam(OpContext& c) {
  const double alpha = c.real("alpha", 0.9), beta = c.real("beta", 0.999), epsilon = c.real("epsilon", 1e-6);
  const double post = c.real("norm_coefficient_post", 0);
  return update_all(c, 2, [&](Update& u) {
    Builder& b = c.b;
    u.first = b.add(b.mul(u.first, alpha), b.mul(u.g, 1 - alpha));
    u.second = b.add(b.mul(u.second, beta), b.mul(b.mul(u.g, u.g), 1 - beta));
    const auto rest = [&](double base) { return b.sub(one(b, u.count), b.pow(b.scalar(u.count->type.dtype, base), u.count)); };
    Value* rate = if_counted(b, u.count, b.div(b.mul(u.rate, b.sqrt(rest(beta))), rest(alpha)), u.rate);
    u.x = b.sub(u.x, b.div(b.mul(rate, u.first), b.add(b.sqrt(u.second), epsilon)));
    if (post != 0) u.x = b.mul(u.x, 1 - post);
  });
}

Outputs momentum(OpContext& c) {
  const double alpha = c.real("alpha"), beta = c.real("beta");
  c.real("norm_coefficient");
  const std::string mode = c.text("mode");
  if (mode != "standard" && mode != "nesterov") c.fail("the mode standard or nesterov", fmt::format("'{}'", mode));
  return update_all(c, 1, [&](Update& u) {
    Builder& b = c.b;
    Value* share = if_counted(b, u.count, b.scalar(u.x->type.dtype, beta), one(b, u.x));
    u.first = b.add(b.mul(u.first, alpha), b.mul(share, u.g));
    Value* step = mode == "nesterov" ? b.add(u.g, b.mul(u.first, alpha)) : u.first;
    u.x = b.sub(u.x, b.mul(u.rate, step));
  });
}

constexpr OpRow kTrainingRows[] = {
    {"ai.onnx.preview.training.Adagrad", 1, 3, kAnyNumber, adagrad},
    {"ai.onnx.preview.training.Adam", 1, 3, kAnyNumber, adam},
    {"ai.onnx.preview.training.Momentum", 1, 3, kAnyNumber, momentum},
};

}  // namespace

std::span<const OpRow> training_rows() { return kTrainingRows; }

}  // namespace oclc::onnx
