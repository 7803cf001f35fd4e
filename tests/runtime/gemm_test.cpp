#include <doctest/doctest.h>

#include "oclc/oclc.hpp"
#include "tests/runtime/plan_builder.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// y[2, B, 2] = a[2, B, K] * b[K, 2], with b stored transposed if `transposed`.
std::vector<std::byte> gemm_plan_bytes(bool transposed) {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("B", 0, 100));
  plan.symbols.push_back(symbol("K", 0, 100));
  const E rows = E::symbol(0);
  const E k = E::symbol(1);
  plan.buffers.push_back(buffer("a", fb::BufferKind::input, rows * k * 8));
  plan.buffers.push_back(buffer("b", fb::BufferKind::input, k * 8));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, rows * 16));
  fb::BlasGemmT g;
  g.a = reads(0), g.b = reads(1), g.c = writes(2);
  g.m = rows.ptr(), g.n = E(2).ptr(), g.k = k.ptr();
  g.lda = k.ptr(), g.ldb = transposed ? k.ptr() : E(2).ptr(), g.ldc = E(2).ptr();
  g.batch = E(2).ptr();
  g.stride_a = (rows * k).ptr(), g.stride_b = E(0).ptr(), g.stride_c = (rows * 2).ptr();
  g.trans_b = transposed;
  g.name = "gemm";
  g.nodes = {"dense"};
  auto e = entry("predict");
  e->inputs.push_back(binding("a", 0, {2, rows, k}));
  e->inputs.push_back(binding("b", 1, transposed ? std::vector<E>{2, k} : std::vector<E>{k, 2}));
  e->outputs.push_back(binding("y", 2, {2, rows, 2}));
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(g));
  e->steps.push_back(std::move(step));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

}  // namespace

TEST_CASE("GEMM steps run through the CLBlast component") {
  const rt::Context context;
  for (const bool transposed : {false, true}) {
    const auto bytes = gemm_plan_bytes(transposed);
    rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
    const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const std::vector<float> b = {1, 10, 2, 20, 3, 30};
    const std::vector<float> b_transposed = {1, 2, 3, 10, 20, 30};
    std::vector<float> y(8, -1);
    session.set_input(0, "a", a.data(), {2, 2, 3});
    if (transposed)
      session.set_input(0, "b", b_transposed.data(), {2, 3});
    else
      session.set_input(0, "b", b.data(), {3, 2});
    session.set_output(0, "y", y.data(), {2, 2, 2});
    session.run(0);
    CHECK(y == std::vector<float>{14, 140, 32, 320, 50, 500, 68, 680});
  }
}

TEST_CASE("a product over nothing is zero") {
  const auto bytes = gemm_plan_bytes(false);
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), rt::Context());
  std::vector<float> y(8, -1);
  session.set_input<float>(0, "a", nullptr, {2, 2, 0});
  session.set_input<float>(0, "b", nullptr, {0, 2});
  session.set_output(0, "y", y.data(), {2, 2, 2});
  session.run(0);
  CHECK(y == std::vector<float>(8, 0.0f));
}
