// More plans by hand.
#pragma once
#include <doctest/doctest.h>

#include "tests/runtime/plan_builder.h"

namespace oclc::test {

inline std::vector<float> ramp(std::size_t n, float step = 1) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i) * step;
  return v;
}

// Of `vector_plan_bytes`.
inline void check_vector_result([[maybe_unused]] const std::vector<float>& a, [[maybe_unused]] const std::vector<float>& b,
                                const std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == (a[i] + b[i]) * static_cast<float>(1 + i % 4) + 1);
}

inline std::vector<std::byte> two_output_plan_bytes() {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 16));
  plan.buffers.push_back(buffer("twice", fb::BufferKind::output, 16));
  plan.buffers.push_back(buffer("negated", fb::BufferKind::output, 16));
  plan.programs.push_back(program("both", R"(
kernel void both(global const float* x, long x0, global float* t, long t0, global float* n, long n0) {
  size_t i = get_global_id(0);
  t[t0 + i] = 2 * x[x0 + i];
  n[n0 + i] = -x[x0 + i];
})"));
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {4}));
  e->outputs.push_back(binding("twice", 1, {4}));
  e->outputs.push_back(binding("negated", 2, {4}));
  e->steps.push_back(launch("both", 0, {4}, {2}, reads(0), writes(1), writes(2)));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

// y = x; for t < T: y += t; for u < t: y += 1.
inline std::vector<std::byte> loop_plan_bytes() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("T", 0, 1000));
  plan.symbols.push_back(symbol("t", 0, 1000, true));
  plan.symbols.push_back(symbol("u", 0, 1000, true));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 12));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 12));
  plan.programs.push_back(program("loop", R"(
kernel void copy(global const float* x, long x0, global float* y, long y0) {
  y[y0 + get_global_id(0)] = x[x0 + get_global_id(0)];
}
kernel void add(global float* y, long y0, long addend) { y[y0 + get_global_id(0)] += addend; }
)"));
  const auto add = [](const E& addend) { return launch("add", 0, {3}, {1}, writes(1), value(fb::ArgKind::int64, addend)); };
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {3}));
  e->outputs.push_back(binding("y", 1, {3}));
  e->steps.push_back(launch("copy", 0, {3}, {1}, reads(0), writes(1)));
  std::vector<std::unique_ptr<fb::StepT>> inner;
  inner.push_back(add(1));
  std::vector<std::unique_ptr<fb::StepT>> body;
  body.push_back(add(E::symbol(1)));
  body.push_back(loop(E::symbol(1), 2, std::move(inner)));
  e->steps.push_back(loop(E::symbol(0), 1, std::move(body)));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

// State `total` (initially 10, 20) and `calls` (initially 0): `add` adds x and counts, `get` reads.
inline std::vector<std::byte> counter_plan_bytes() {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("total", fb::BufferKind::state, 8));
  plan.buffers.back()->has_initial = true;
  plan.buffers.push_back(buffer("calls", fb::BufferKind::state, 8));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 8));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 8));
  plan.programs.push_back(program("counter", R"(
kernel void add(global float* total, long t0, global float* calls, long c0, global const float* x, long x0) {
  size_t i = get_global_id(0);
  total[t0 + i] += x[x0 + i];
  calls[c0 + i] += 1;
}
kernel void get(global const float* total, long t0, global float* y, long y0) { y[y0 + get_global_id(0)] = total[t0 + get_global_id(0)]; }
)"));
  auto add = entry("add");
  add->inputs.push_back(binding("x", 2, {2}));
  add->steps.push_back(launch("add", 0, {2}, {1}, writes(0), writes(1), reads(2)));
  auto get = entry("get");
  get->outputs.push_back(binding("total", 3, {2}));
  get->steps.push_back(launch("get", 0, {2}, {1}, reads(0), writes(3)));
  plan.entries.push_back(std::move(add));
  plan.entries.push_back(std::move(get));
  for (int i = 0; i < 2; ++i) {
    auto v = std::make_unique<fb::VariableT>();
    v->name = i == 0 ? "total" : "calls";
    v->buffer = i;
    v->shape.push_back(E(2).ptr());
    plan.variables.push_back(std::move(v));
  }
  return finish(plan, {10, 20});
}

// Every form of dimension expression.
inline std::vector<std::byte> info_plan_bytes() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 1, 100));
  const E n = E::symbol(0);
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 4));
  auto e = entry("predict");
  e->inputs.push_back(binding(
      "x", 0,
      {n, E(2) * n + 1, (n + 1).then(2, ExprOp::floor_div), n.then(3, ExprOp::max), n.then(4, ExprOp::mod), 7, n + -1}));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

}  // namespace oclc::test
