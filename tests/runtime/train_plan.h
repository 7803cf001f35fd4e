// A network to train, by hand: y = w . x + b over batches of N samples, mean squared error, plain gradient descent.
#pragma once
#include "tests/runtime/plan_builder.h"

namespace oclc::test {

// State: "w" [2] and "b" [] are slices of one buffer, initially zero; "lr" [] is 0.1. Entry points: predict (x -> y) and
// train_step (x, labels -> loss, correct; labels are class numbers below 4).
inline fb::PlanT train_plan() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 1, 1 << 20));
  const E n = E::symbol(0);
  plan.buffers.push_back(buffer("parameters", fb::BufferKind::state, 12));  // 0
  plan.buffers.push_back(buffer("lr", fb::BufferKind::state, 4));           // 1
  plan.buffers.back()->has_initial = true;
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, n * 8));                       // 2
  plan.buffers.push_back(buffer("labels", fb::BufferKind::input, n * 4, fb::DType::i32));  // 3
  plan.buffers.push_back(buffer("loss", fb::BufferKind::output, 4));                       // 4
  plan.buffers.push_back(buffer("correct", fb::BufferKind::output, 8, fb::DType::i64));    // 5
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, n * 4));                      // 6
  plan.buffers.push_back(arena_buffer("gradients", 12, 1, 0, 1));                          // 7
  const auto variable = [&](const std::string& name, int in, std::int64_t offset, std::vector<std::int64_t> shape) {
    auto v = std::make_unique<fb::VariableT>();
    v->name = name;
    v->buffer = in;
    v->offset = offset;
    for (const std::int64_t d : shape) v->shape.push_back(E(d).ptr());
    plan.variables.push_back(std::move(v));
  };
  variable("w", 0, 1, {2});
  variable("b", 0, 0, {});
  variable("lr", 1, 0, {});
  plan.programs.push_back(program("train", R"(
float at(global const float* p, global const float* x, size_t i) { return p[0] + p[1] * x[2 * i] + p[2] * x[2 * i + 1]; }
kernel void predict(global const float* p, long p0, global const float* x, long x0, global float* y, long y0) {
  y[y0 + get_global_id(0)] = at(p + p0, x + x0, get_global_id(0));
}
kernel void backward(global const float* p, long p0, global const float* x, long x0, global const int* t, long t0,
                     global float* loss, long l0, global long* correct, long c0, global float* g, long g0, int n) {
  float sum = 0, gb = 0, gu = 0, gv = 0;
  long right = 0;
  for (int i = 0; i < n; ++i) {
    float y = at(p + p0, x + x0, i), e = y - t[t0 + i];
    sum += e * e;
    right += fabs(e) < 0.5f;
    gb += e;
    gu += e * x[x0 + 2 * i];
    gv += e * x[x0 + 2 * i + 1];
  }
  loss[l0] = sum / n;
  correct[c0] = right;
  g[g0] = 2 * gb / n;
  g[g0 + 1] = 2 * gu / n;
  g[g0 + 2] = 2 * gv / n;
}
kernel void descend(global float* p, long p0, global const float* g, long g0, global const float* lr, long r0) {
  p[p0 + get_global_id(0)] -= lr[r0] * g[g0 + get_global_id(0)];
}
)"));
  auto predict = entry("predict");
  predict->inputs.push_back(binding("x", 2, {n, 2}));
  predict->outputs.push_back(binding("y", 6, {n}));
  predict->steps.push_back(launch("predict", 0, {n}, {1}, reads(0), reads(2), writes(6)));
  auto train = entry("train_step");
  train->inputs.push_back(binding("x", 2, {n, 2}));
  train->inputs.push_back(binding("labels", 3, {n}, fb::DType::i32));
  train->inputs.back()->limit = 4;
  train->outputs.push_back(binding("loss", 4, {}));
  train->outputs.push_back(binding("correct", 5, {}, fb::DType::i64));
  train->steps.push_back(launch("backward", 0, {1}, {1}, reads(0), reads(2), reads(3), writes(4), writes(5), writes(7),
                                value(fb::ArgKind::int32, n)));
  train->steps.push_back(launch("descend", 0, {3}, {1}, writes(0), reads(7), reads(1)));
  plan.entries.push_back(std::move(predict));
  plan.entries.push_back(std::move(train));
  return plan;
}

inline std::vector<std::byte> train_plan_bytes() { return finish(train_plan(), {0.1f}); }

}  // namespace oclc::test
