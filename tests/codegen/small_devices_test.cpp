// Devices with little of everything: no launch asks for more than they have.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/compile.h"
#include "compiler/ops/builder.h"
#include "plan_generated.h"
#include "tests/support/random_case.h"
#include "tests/support/run_plan.h"

namespace oclc::small_devices_test {
namespace {

namespace fb = oclc::plan;
using namespace oclc::test;

struct Tiny {
  const char* name;
  DeviceFacts facts;
};

std::vector<Tiny> tiny_devices() {
  DeviceFacts few;
  few.is_cpu = false;
  few.max_work_group = 64;
  few.local_bytes = 16 << 10;
  DeviceFacts fewer = few;
  fewer.max_work_group = 16;
  DeviceFacts one = few;
  one.max_work_group = 1;
  DeviceFacts scalar;
  scalar.vector_width = 1;
  scalar.compute_units = 1;
  scalar.local_bytes = 16 << 10;
  return {{"64 work-items", few}, {"16 work-items", fewer}, {"1 work-item", one}, {"a processor without vectors", scalar}};
}

std::unique_ptr<Graph> network() {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph);
  Value* x = graph->add_input("x", {DType::f32, {Expr::symbol("N"), Expr(3), Expr(33), Expr(29)}});
  Value* c = b.relu(b.conv(x, b.constant(random_tensor(DType::f32, {24, 3, 3, 3}, 1)), nullptr, {}));
  Value* p = b.max_pool(c, {.kernel = {3, 3}});
  Value* flat = b.reshape(p, {Expr::symbol("N"), Expr(24), p->type.shape[2] * p->type.shape[3]});
  Value* y = b.softmax(b.matmul(flat, b.constant(random_tensor(DType::f32, {29 * 25, 65}, 2))), 2);
  graph->add_output("y", y);
  graph->add_output("sum", b.reduce("reduce_sum", y, {1, 2}, false));
  return graph;
}

// Sizes of launches, in loops too.
void check_steps(const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>& steps, const DeviceFacts& facts, int& launches) {
  for (const fb::Step* step : steps) {
    if (const fb::Loop* loop = step->body_as_Loop()) check_steps(*loop->body(), facts, launches);
    const fb::Launch* launch = step->body_as_Launch();
    if (!launch) continue;
    ++launches;
    INFO("launch " << launch->name()->str());
    std::int64_t items = 1;
    for (const std::uint32_t size : *launch->local()) {
      CHECK(size > 0);
      items *= size;
    }
    CHECK(items <= facts.max_work_group);
    CHECK(launch->local()->size() == launch->global()->size());
    // Pointers and numbers of eight bytes at the most: what the least of devices (OpenCL 1.2) takes.
    if (launch->args()) CHECK(launch->args()->size() * 16 <= 1024);
  }
}

}  // namespace

TEST_CASE("case 92: launches fit the device that they are made for") {
  for (const Tiny& tiny : tiny_devices()) {
    INFO(tiny.name);
    CompileOptions options;
    options.target = target_for(tiny.facts);
    int launches = 0;
    const auto check = [&](std::unique_ptr<Graph> graph) {
      const Compiled compiled = compile(module_of(std::move(graph)), options);
      for (const fb::Entry* entry : *fb::GetPlan(compiled.plan.metadata.data())->entries())
        check_steps(*entry->steps(), tiny.facts, launches);
    };
    check(network());
    for (std::uint64_t seed = 0; seed < 10; ++seed) check(random_graph(seed, {.nodes = 16}));
    CHECK(launches > 10);
  }
}

}  // namespace oclc::small_devices_test
