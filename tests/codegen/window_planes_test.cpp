// Depthwise convolutions and pools between planes: which take the template, and the numbers that come out.
#include <limits>

#include "compiler/passes/layout/keep_nchw.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

Compiled compiled(const PlanCheck& check, const std::string& target, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  return compile(module_of(copy_graph(*check.graph)), options);
}

int templates(const Compiled& c) {
  int count = 0;
  for (const GeneratedFile& file : c.plan.files) {
    for (std::size_t at = 0; (at = file.source.find("template window_planes_cpu", at)) != std::string::npos; ++at) ++count;
  }
  return count;
}

// Every result of the graph takes the template, and is right.
void check_all(const PlanCheck& check) {
  const auto wanted = evaluate(*check.graph, check.inputs, {});
  for (const char* target : {"cpu", "cpu-256"}) {
    CAPTURE(target);
    CHECK(templates(compiled(check, target)) == static_cast<int>(check.graph->outputs().size()));
    CHECK(templates(compiled(check, target, {"keep_nchw"})) == 0);
    CHECK(check.problem(target, true, 5e-6, wanted) == "");
  }
}

Value* depthwise(PlanCheck& check, const Ints& shape, const Ints& filter, ConvOptions options) {
  options.group = shape[1];
  Builder& b = check.b;
  Value* w = b.constant(random_tensor(DType::f32, filter, 3, -1, 1));
  return b.conv(check.input(shape), w, b.constant(random_tensor(DType::f32, {filter[0]}, 4, -1, 1)), options);
}

}  // namespace

TEST_CASE("depthwise convolutions between planes have vectors along rows") {
  PlanCheck check;
  for (const std::int64_t size : {4, 7, 14, 19, 33}) {
    const std::string name = std::to_string(size);
    check.out("3x3 of " + name, depthwise(check, {2, 5, size, size}, {5, 1, 3, 3}, {.pads = {1, 1, 1, 1}}));
    check.out("3x3, stride 2, of " + name,
              depthwise(check, {1, 6, 2 * size, 2 * size - 1}, {6, 1, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  }
  check.out("5x5 with other margins", check.b.relu(depthwise(check, {1, 3, 20, 18}, {3, 1, 5, 5}, {.pads = {0, 2, 3, 1}})));
  check.out("dilated, stride 3 down", depthwise(check, {1, 3, 40, 18}, {3, 1, 3, 3}, {.strides = {3, 1}, .dilations = {2, 3}}));
  check.out("two features a channel", depthwise(check, {2, 3, 9, 20}, {6, 1, 3, 3}, {.pads = {1, 1, 1, 1}}));
  check.out("with another value", check.b.add(depthwise(check, {1, 4, 9, 20}, {4, 1, 3, 1}, {}), check.input({1, 4, 7, 20})));
  check_all(check);
}

TEST_CASE("pools between planes have vectors along rows") {
  PlanCheck check;
  Builder& b = check.b;
  const Ints ones(4, 1);
  check.out("max 3x3, stride 2", b.max_pool(check.input({2, 3, 30, 29}), {.kernel = {3, 3}, .strides = {2, 2}, .pads = ones}));
  check.out("max 2x2, ceiling",
            b.max_pool(check.input({1, 3, 21, 23}), {.kernel = {2, 2}, .strides = {2, 2}, .ceil_mode = true}));
  check.out("average 2x2", b.avg_pool(check.input({1, 3, 20, 24}), {.kernel = {2, 2}, .strides = {2, 2}}));
  check.out("average 3x3", b.avg_pool(check.input({2, 3, 15, 17}), {.kernel = {3, 3}, .pads = ones}));
  check.out("average 3x3 with padding",
            b.avg_pool(check.input({2, 3, 15, 17}), {.kernel = {3, 3}, .pads = ones, .count_include_pad = true}));
  check_all(check);
}

TEST_CASE("a NaN stays in a maximum of planes, and infinities do not spread into padding") {
  PlanCheck check;
  HostTensor x = random_tensor(DType::f32, {1, 1, 9, 20}, 5, -1, 1);
  x.set(33, std::numeric_limits<double>::quiet_NaN());
  x.set(150, std::numeric_limits<double>::infinity());
  x.set(100, -std::numeric_limits<double>::infinity());
  check.out("max", check.b.max_pool(check.input(x), {.kernel = {3, 3}, .pads = Ints(4, 1)}));
  check_all(check);
}

TEST_CASE("windows that read channels, or whose results are read as channels, have vectors of channels") {
  PlanCheck check;
  Builder& b = check.b;
  Value* channels = b.conv(check.input({1, 16, 12, 12}), b.constant(random_tensor(DType::f32, {32, 16, 3, 3}, 2)), nullptr, {});
  check.out("reads channels", b.max_pool(channels, {.kernel = {2, 2}}));
  Value* pool = b.max_pool(check.input({1, 16, 12, 12}), {.kernel = {2, 2}});
  check.out("is read as channels", b.conv(pool, b.constant(random_tensor(DType::f32, {32, 16, 3, 3}, 2)), nullptr, {}));
  check.out("narrow", b.max_pool(check.input({1, 16, 12, 4}), {.kernel = {2, 2}}));
  check.out("few of a row", b.max_pool(check.input({1, 16, 12, 15}), {.kernel = {2, 2}, .strides = {3, 3}}));
  for (const char* target : {"cpu", "cpu-256"}) CHECK(templates(compiled(check, target)) == 0);
  CHECK(templates(compiled(check, "gpu")) == 0);
}
