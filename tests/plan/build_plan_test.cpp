// Live ranges, sharing of kernels and determinism of plans.
#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"
#include "compiler/targets/target.h"
#include "plan_generated.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

Compiled compiled(const std::string& text, const std::vector<std::string>& disabled = {}) {
  CompileOptions options = default_options();
  options.disabled = disabled;
  return compile(module_of(parse_graph(text, find_op)), options);
}

const plan::Plan& plan_of(const Compiled& c) { return *flatbuffers::GetRoot<plan::Plan>(c.plan.metadata.data()); }

// "first-last" of each buffer of the arena, in order.
std::string lives(const Compiled& c) {
  std::string out;
  for (const plan::Buffer* b : *plan_of(c).buffers()) {
    if (b->kind() != plan::BufferKind::arena) continue;
    out += (out.empty() ? "" : " ") + std::to_string(b->first()) + "-" + std::to_string(b->last());
  }
  return out;
}

const std::string kProduct = "{trans_a=0, trans_b=0}";

std::string chain(int length) {
  std::string text = "graph g(%x: f32[32, 32], %w: f32[32, 32]) {\n  %0 = matmul(%x, %w) " + kProduct + "\n";
  for (int i = 1; i < length; ++i)
    text += "  %" + std::to_string(i) + " = matmul(%" + std::to_string(i - 1) + ", %w) " + kProduct + "\n";
  return text + "  return y=%" + std::to_string(length - 1) + "\n}\n";
}

}  // namespace

TEST_CASE("each result of a chain lives until the next kernel has read it") {
  CHECK(lives(compiled(chain(5))) == "0-1 1-2 2-3 3-4");
}

TEST_CASE("a result that is read late lives until then") {
  CHECK(lives(compiled("graph g(%x: f32[32, 32], %w: f32[32, 32]) {\n  %0 = matmul(%x, %w) " + kProduct +
                       "\n  %1 = matmul(%0, %w) " + kProduct + "\n  %2 = matmul(%1, %w) " + kProduct +
                       "\n  %3 = matmul(%2, %0) " + kProduct + "\n  return y=%3\n}\n")) == "0-3 1-2 2-3");
}

TEST_CASE("kernels of one text are one function in the plan") {
  const Compiled c = compiled(chain(6), {"megakernel"});
  CHECK(c.plan.launches == 6);
  CHECK(c.plan.files.size() == 1);
}

TEST_CASE("kernels of different shapes stay apart") {
  const Compiled c = compiled("graph g(%x: f32[32, 32], %w: f32[32, 16]) {\n  %0 = matmul(%x, %x) " + kProduct +
                                  "\n  %1 = matmul(%0, %w) " + kProduct + "\n  return y=%1\n}\n",
                              {"megakernel"});
  CHECK(c.plan.launches == 2);
  CHECK(c.plan.files.size() == 2);
}

TEST_CASE("two builds of a plan are equal in every byte") {
  const std::string text =
      "symbol N\ngraph g(%x: f32[N, 4, 8, 8]) {\n  %w = constant f32[6, 4, 3, 3] random 1\n  %0 = conv(%x, %w) "
      "{dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n  %1 = relu(%0)\n  %2 = concat(%1, %x) {axis=1}\n  %3 = "
      "softmax(%2) {axis=1}\n  return y=%3, z=%1\n}\n";
  for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"fuse"}}) {
    const Compiled a = compiled(text, disabled), b = compiled(text, disabled);
    CHECK(a.plan.metadata == b.plan.metadata);
    CHECK(a.schedule.text() == b.schedule.text());
  }
}

TEST_CASE("what a loop carries lives through all of its trips") {
  const Compiled c = compiled(R"(axis t < 5
graph g(%x: f32[5, 4], %h: f32[4], %w: f32[4, 4]) {
  %a = relu(%h)
  %0, %1 = loop(%a, %x, %w) {carried=1, counter="t", trip=(5)} : f32[4], f32[5, 4]
    body step(%h: f32[4], %x: f32[5, 4], %w: f32[4, 4]) {
      %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0} : f32[1, 4]
      %2 = reshape(%1) {shape=(4)} : f32[4]
      %3 = add(%h, %2) : f32[4]
      %4 = tanh(%3) : f32[4]
      return next=%4, result=%3
    }
  %2 = exp(%1)
  return last=%0, all=%2
}
)",
                              {"loop_kernel"});
  int before = -1, within = 0;
  const std::vector<Step> steps = c.schedule.entries.at(0).steps_apart();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].body().empty()) continue;
    before = static_cast<int>(i);
    within = static_cast<int>(steps[i].body().size());
  }
  REQUIRE(before > 0);
  REQUIRE(within > 0);
  int slots = 0;
  for (std::size_t i = 0; i < c.schedule.buffers.size(); ++i) {
    if (!c.schedule.buffers[i].name.ends_with(".carried")) continue;
    const plan::Buffer* b = plan_of(c).buffers()->Get(static_cast<flatbuffers::uoffset_t>(i));
    CHECK(b->first() < before);
    CHECK(b->last() >= before + within - 1);
    ++slots;
  }
  CHECK(slots == 1);
}

TEST_CASE("a plan that computes with doubles says so, and targets without them refuse it by node") {
  const auto sum = [](const std::string& type, const char* target) {
    CompileOptions options;
    options.target = find_target(target);
    return compile(
        module_of(parse_graph("graph g(%x: " + type + "[4]) {\n  %0 = add(%x, %x)  // sum\n  return y=%0\n}\n", find_op)),
        options);
  };
  const Compiled with = sum("f64", "cpu");
  REQUIRE(plan_of(with).extensions()->size() == 1);
  CHECK(plan_of(with).extensions()->Get(0)->str() == "cl_khr_fp64");
  CHECK(plan_of(sum("f32", "gpu")).extensions()->size() == 0);
  CHECK_THROWS_WITH_AS(
      sum("f64", "gpu"),
      doctest::Contains(
          "node 'sum': wanted a type that target 'gpu' computes with, found f64 (double), which its devices may lack; use "
          "float in the model, or compile for a device with cl_khr_fp64"),
      CompileError);
}

TEST_CASE("a weight that several products read is packed once") {
  // 256 x 256 numbers of 4 bytes, as they are. `count` weights, used in turn by four products of 64 rows.
  const auto constants = [](int count) {
    std::string text = "graph g(%x: f32[64, 256]) {\n";
    for (int i = 0; i < count; ++i)
      text += "  %w" + std::to_string(i) + " = constant f32[256, 256] random " + std::to_string(i + 1) + "\n";
    std::string last = "x";
    for (int i = 0; i < 4; ++i) {
      const std::string y = std::to_string(2 * i + 100), z = std::to_string(2 * i + 101);
      text += "  %" + y + " = matmul(%" + last + ", %w" + std::to_string(i % count) + ") " + kProduct + "\n  %" + z +
              " = tanh(%" + y + ")\n";
      last = z;
    }
    text += "  return y=%" + last + "\n}\n";
    CompileOptions options = default_options();
    options.precision = "strict";  // weights are stored as they are
    return compile(module_of(parse_graph(text, find_op)), options).plan.constants.bytes();
  };
  const auto one = constants(1), two = constants(2), four = constants(4);
  CHECK(one < 256 * 256 * 4 * 3 / 2);
  CHECK(two >= 2 * 256 * 256 * 4 * 9 / 10);
  CHECK(four >= 2 * two * 9 / 10);
}

TEST_CASE("a launch is called by the kind of its kernel, or by the form of the step of several") {
  const auto anchors = [](const char* target, const std::string& body) {
    CompileOptions options = default_options();
    options.target = find_target(target);
    const std::string graph = "graph g(%x: f32[8, 64], %y: f32[300]) {\n" + body + "}\n";
    const Compiled c = compile(module_of(parse_graph(graph, find_op)), options);
    std::string found;
    for (const plan::Step* step : *plan_of(c).entries()->Get(0)->steps())
      found += (found.empty() ? "" : " ") + step->body_as_Launch()->anchor()->str();
    return found;
  };
  CHECK(anchors("gpu", "  %0 = relu(%x)\n  return a=%0\n") == "pointwise");
  const std::string two = "  %0 = relu(%x)\n  %1 = exp(%y)\n  return a=%0, b=%1\n";
  CHECK(anchors("gpu", two) == "horizontal_fusion");
  CHECK(anchors("cpu", two) == "megakernel");
  // The largest share of each column: columns of what is divided row by row.
  CHECK(anchors("gpu", "  %0 = softmax(%x) {axis=1}\n  %1 = reduce_max(%0) {axes=[0], keepdims=0}\n  return a=%1\n") ==
        "work_group");
}
