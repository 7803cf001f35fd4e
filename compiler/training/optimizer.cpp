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
  Value* rate = b.div(lr, one_minus(b, power1));
  Value* root = b.sqrt(b.div(v, one_minus(b, power2)));
  return b.sub(p, b.div(b.mul(rate, m), b.add(root, c.number("epsilon", 1e-8))));
}

Value* adam(OptimizerContext& c) { return adam_step(c, c.parameters, with_decay(c), c.number("lr", 1e-3)); }

Value* adamw(OptimizerContext& c) {
  Value* lr = c.number("lr", 1e-3);
  return adam_step(c, decoupled_decay(c, lr, 0.01), c.gradients, lr);
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

// v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + epsilon), with momentum on the quotient.
Value* rmsprop(OptimizerContext& c) {
  Builder& b = c.b;
  Value *g = with_decay(c), *lr = c.number("lr", 0.01), *alpha = c.number("alpha", 0.99);
  Value* v = blend(b, alpha, c.moment("square"), one_minus(b, alpha), b.mul(g, g));
  c.update("square", v);
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
  static const std::vector<OptimizerRow> kRows = {
      {"sgd", {"lr", "momentum", "dampening", "nesterov", "weight_decay", "clip_norm", "clip_value", "ema"}, sgd},
      {"adam", {"lr", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm", "clip_value", "ema"}, adam},
      {"adamw", {"lr", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm", "clip_value", "ema"}, adamw},
      {"adagrad", {"lr", "lr_decay", "epsilon", "weight_decay", "clip_norm", "clip_value", "ema"}, adagrad},
      {"rmsprop", {"lr", "alpha", "epsilon", "momentum", "weight_decay", "clip_norm", "clip_value", "ema"}, rmsprop},
      {"lion", {"lr", "beta1", "beta2", "weight_decay", "clip_norm", "clip_value", "ema"}, lion},
  };
  return kRows;
}

}  // namespace oclc
