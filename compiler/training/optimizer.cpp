// The optimizers' rules. p: parameters, g: gradients; all elementwise over one flat tensor, so that a step is one kernel.
#include "compiler/training/training.h"

namespace oclc {
namespace {

Value* one_minus(Builder& b, Value* x) { return b.sub(b.scalar(x->type.dtype, 1), x); }

// a * x + b * y
Value* blend(Builder& b, Value* wx, Value* x, Value* wy, Value* y) { return b.fma(wx, x, b.mul(wy, y)); }

// Gradient of weight_decay / 2 * |p|^2 added.
Value* with_decay(OptimizerContext& c) {
  if (c.fixed("weight_decay", 0) == 0) return c.gradients;
  return c.b.fma(c.number("weight_decay", 0), c.parameters, c.gradients);
}

// p * (1 - lr * weight_decay): Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
Value* decoupled_decay(OptimizerContext& c, Value* lr, double otherwise) {
  if (c.fixed("weight_decay", otherwise) == 0) return c.parameters;
  return c.b.mul(c.parameters, one_minus(c.b, c.b.mul(lr, c.number("weight_decay", otherwise))));
}

// m = momentum m + (1 - dampening) g; p -= lr m, or with Nesterov's momentum p -= lr (g + momentum m).
Value* sgd(OptimizerContext& c) {
  Builder& b = c.b;
  Value *g = with_decay(c), *lr = c.number("lr", 0.01);
  if (c.fixed("momentum", 0) != 0) {
    Value* momentum = c.number("momentum", 0);
    Value* m = b.mul(momentum, c.moment("momentum"));
    if (c.fixed("dampening", 0) != 0) {
      // The first step takes the gradient whole.
      Value* share = b.where(b.call("equal", {c.scalar("step", 0), b.scalar(DType::f32, 0)}), b.scalar(DType::f32, 1),
                             one_minus(b, c.number("dampening", 0)));
      c.update("step", b.add(c.scalar("step", 0), 1.0));
      m = b.fma(share, g, m);
    } else {
      m = b.add(m, g);
    }
    c.update("momentum", m);
    g = c.fixed("nesterov", 0) != 0 ? b.fma(momentum, m, g) : m;
  }
  return b.sub(c.parameters, b.mul(lr, g));
}

// Kingma and Ba, "Adam", 2015. The powers of beta1 and beta2 are kept as state.
Value* adam_step(OptimizerContext& c, Value* p, Value* g, Value* lr) {
  Builder& b = c.b;
  Value *beta1 = c.number("beta1", 0.9), *beta2 = c.number("beta2", 0.999);
  Value* power1 = b.mul(c.scalar("beta1_power", 1), beta1);
  Value* power2 = b.mul(c.scalar("beta2_power", 1), beta2);
  Value* m = blend(b, beta1, c.moment("mean"), one_minus(b, beta1), g);
  Value* v = blend(b, beta2, c.moment("square"), one_minus(b, beta2), b.mul(g, g));
  c.update("beta1_power", power1);
  c.update("beta2_power", power2);
  c.update("mean", m);
  c.update("square", v);
  if (c.fixed("amsgrad", 0) != 0) {  // Reddi, Kale and Kumar, 2018: the largest v of all steps
    v = b.max(c.moment("largest"), v);
    c.update("largest", v);
  }
  Value* rate = b.div(lr, one_minus(b, power1));
  Value* root = b.sqrt(b.div(v, one_minus(b, power2)));
  return b.sub(p, b.div(b.mul(rate, m), b.add(root, c.number("epsilon", 1e-8))));
}

Value* adam(OptimizerContext& c) { return adam_step(c, c.parameters, with_decay(c), c.number("lr", 1e-3)); }

Value* adamw(OptimizerContext& c) {
  Value* lr = c.number("lr", 1e-3);
  return adam_step(c, decoupled_decay(c, lr, 0.01), c.gradients, lr);
}

// Dozat, "Incorporating Nesterov Momentum into Adam", 2016: Adam with the momentum of the next step, which grows with the
// steps: mu = beta1 (1 - 0.96^(step momentum_decay) / 2). `decoupled`: the decay of AdamW.
Value* nadam(OptimizerContext& c) {
  Builder& b = c.b;
  Value *lr = c.number("lr", 2e-3), *beta1 = c.number("beta1", 0.9), *beta2 = c.number("beta2", 0.999);
  const bool decoupled = c.fixed("decoupled", 0) != 0;
  Value *g = decoupled ? c.gradients : with_decay(c), *p = decoupled ? decoupled_decay(c, lr, 0) : c.parameters;
  Value *step = b.add(c.scalar("step", 0), 1.0), *decay = c.number("momentum_decay", 4e-3);
  const auto momentum_at = [&](Value* at) {
    return b.mul(beta1, one_minus(b, b.mul(b.pow(b.scalar(DType::f32, 0.96), b.mul(at, decay)), 0.5)));
  };
  Value *mu = momentum_at(step), *next = momentum_at(b.add(step, 1.0));
  Value* product = b.mul(c.scalar("momentum_product", 1), mu);
  Value* power2 = b.mul(c.scalar("beta2_power", 1), beta2);
  Value* m = blend(b, beta1, c.moment("mean"), one_minus(b, beta1), g);
  Value* v = blend(b, beta2, c.moment("square"), one_minus(b, beta2), b.mul(g, g));
  c.update("step", step);
  c.update("momentum_product", product);
  c.update("beta2_power", power2);
  c.update("mean", m);
  c.update("square", v);
  Value* of_gradient = b.div(b.mul(lr, one_minus(b, mu)), one_minus(b, product));
  Value* of_mean = b.div(b.mul(lr, next), one_minus(b, b.mul(product, next)));
  Value* root = b.add(b.sqrt(b.div(v, one_minus(b, power2))), c.number("epsilon", 1e-8));
  return b.sub(p, b.div(b.fma(of_gradient, g, b.mul(of_mean, m)), root));
}

// Duchi, Hazan and Singer, 2011: p -= lr g / (sqrt(sum of g^2) + epsilon)
Value* adagrad(OptimizerContext& c) {
  Builder& b = c.b;
  Value *g = with_decay(c), *lr = c.number("lr", 0.01);
  Value* sum = b.fma(g, g, c.moment("sum"));
  c.update("sum", sum);
  if (c.fixed("lr_decay", 0) != 0) {
    Value* step = c.scalar("step", 0);
    lr = b.div(lr, b.fma(step, c.number("lr_decay", 0), b.scalar(DType::f32, 1)));
    c.update("step", b.add(step, 1.0));
  }
  return b.sub(c.parameters, b.div(b.mul(lr, g), b.add(b.sqrt(sum), c.number("epsilon", 1e-10))));
}

// v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + epsilon), with momentum on the quotient; centered: v less the square of
// the running mean of g.
Value* rmsprop(OptimizerContext& c) {
  Builder& b = c.b;
  Value *g = with_decay(c), *lr = c.number("lr", 0.01), *alpha = c.number("alpha", 0.99);
  Value* v = blend(b, alpha, c.moment("square"), one_minus(b, alpha), b.mul(g, g));
  c.update("square", v);
  if (c.fixed("centered", 0) != 0) {
    Value* mean = blend(b, alpha, c.moment("mean"), one_minus(b, alpha), g);
    c.update("mean", mean);
    v = b.sub(v, b.mul(mean, mean));
  }
  Value* step = b.div(g, b.add(b.sqrt(v), c.number("epsilon", 1e-8)));
  if (c.fixed("momentum", 0) != 0) {
    step = b.fma(c.number("momentum", 0), c.moment("momentum"), step);
    c.update("momentum", step);
  }
  return b.sub(c.parameters, b.mul(lr, step));
}

// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
Value* lion(OptimizerContext& c) {
  Builder& b = c.b;
  Value *lr = c.number("lr", 1e-4), *beta1 = c.number("beta1", 0.9), *beta2 = c.number("beta2", 0.99);
  Value *g = c.gradients, *m = c.moment("mean");
  Value* direction = b.unary("sign", blend(b, beta1, m, one_minus(b, beta1), g));
  c.update("mean", blend(b, beta2, m, one_minus(b, beta2), g));
  return b.sub(decoupled_decay(c, lr, 0), b.mul(lr, direction));
}

}  // namespace

const std::vector<OptimizerRow>& optimizers() {
  // Of all of them: what is done to the gradients before, and to the parameters after.
  const auto with_common = [](std::vector<std::string_view> numbers) {
    numbers.insert(numbers.end(), {"weight_decay", "maximize", "clip_norm", "clip_value", "ema"});
    return numbers;
  };
  static const std::vector<OptimizerRow> kRows = {
      {"sgd", with_common({"lr", "momentum", "dampening", "nesterov"}), sgd},
      {"adam", with_common({"lr", "beta1", "beta2", "epsilon", "amsgrad"}), adam},
      {"adamw", with_common({"lr", "beta1", "beta2", "epsilon", "amsgrad"}), adamw},
      {"nadam", with_common({"lr", "beta1", "beta2", "epsilon", "momentum_decay", "decoupled"}), nadam},
      {"adagrad", with_common({"lr", "lr_decay", "epsilon"}), adagrad},
      {"rmsprop", with_common({"lr", "alpha", "epsilon", "momentum", "centered"}), rmsprop},
      {"lion", with_common({"lr", "beta1", "beta2"}), lion},
  };
  return kRows;
}

}  // namespace oclc
