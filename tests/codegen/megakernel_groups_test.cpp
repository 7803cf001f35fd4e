// Kernels one after another in one launch of a GPU: what they compute there, what the plan says of them, which kernels take
// part.
#include <doctest/doctest.h>

#include <set>

#include "plan_generated.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// Rows of one token through `layers` of a norm, a product that widens and one that narrows, with what was there added.
struct Token {
  PlanCheck check;

  // Of odd layers the wide product has `narrower` columns less.
  explicit Token(int layers, bool symbolic = false, std::int64_t width = 384, std::int64_t narrower = 0) {
    Builder& b = check.b;
    Value* x = check.input({1, width});
    for (int i = 0; i < layers; ++i) {
      const auto seed = static_cast<unsigned>(10 * i);
      Value *scale = b.constant(random_tensor(DType::f32, {width}, seed + 1)),
            *bias = b.constant(random_tensor(DType::f32, {width}, seed + 4)), *norm = b.layer_norm(x, scale, bias);
      const std::int64_t columns = 4 * width - i % 2 * narrower;
      Value* wide = b.relu(b.matmul(norm, b.constant(random_tensor(DType::f32, {width, columns}, seed + 2, -0.1, 0.1))));
      x = b.add(x, b.matmul(wide, b.constant(random_tensor(DType::f32, {columns, width}, seed + 3, -0.1, 0.1))));
    }
    if (symbolic) {
      // Attention over rows of a number that is not known.
      Value* rows = check.input(DType::f32, {37, width}, -1, 1, {"S", ""});
      Value* weights = b.softmax(b.matmul(x, b.transpose(rows, {1, 0})), 1);
      x = b.add(b.matmul(weights, rows), x);
      check.symbols = {{"S", 37}};
    }
    check.out("y", x);
  }

  CompileOptions options(std::vector<std::string> disabled) const {
    CompileOptions out = default_options();
    out.target = find_target("h200");
    out.disabled = std::move(disabled);
    return out;
  }
  Compiled compiled(std::vector<std::string> disabled = {}) const {
    return compile(module_of(copy_graph(*check.graph)), options(std::move(disabled)));
  }
  std::vector<HostTensor> run(std::vector<std::string> disabled = {}, int times = 1) const {
    PlanRunner runner(module_of(copy_graph(*check.graph)), options(std::move(disabled)));
    std::vector<HostTensor> out;
    for (int i = 0; i < times; ++i) out = runner.run(check.inputs, check.symbols);
    return out;
  }
};

const plan::Plan& metadata_of(const Compiled& c) { return *flatbuffers::GetRoot<plan::Plan>(c.plan.metadata.data()); }

TEST_CASE("short kernels of a Hopper are one launch, whose parts have kernels of their own for other devices") {
  const Token net(4);
  const Compiled together = net.compiled(), apart = net.compiled({"megakernel"});
  CHECK(together.plan.launches == 1);
  CHECK(apart.plan.launches == 8);
  const plan::Launch& launch = *metadata_of(together).entries()->Get(0)->steps()->Get(0)->body_as_Launch();
  CHECK(launch.anchor()->str() == "megakernel");
  CHECK(launch.local()->Get(0) == 256);
  REQUIRE(launch.parts()->size() == 8);
  // Layers have the same texts: two kernels do all eight parts.
  for (std::uint32_t i = 0; i < 8; ++i) {
    CHECK(launch.parts()->Get(i)->name()->str() == apart.schedule.kernels[i].name);
    CHECK(launch.parts()->Get(i)->kernel()->str() == launch.name()->str() + "_k" + std::to_string(i % 2));
  }
  // A device may build some of these alone.
  const plan::Program& program = *metadata_of(together).programs()->Get(static_cast<std::uint32_t>(launch.program()));
  CHECK(program.own_kernels());
  CHECK(program.part_bytes()->size() == 2);
}

TEST_CASE("a megakernel of a GPU computes the bits of launches, run after run") {
  for (const int layers : {3, 5}) {
    for (const bool symbolic : {false, true}) {
      CAPTURE(layers);
      CAPTURE(symbolic);
      const Token net(layers, symbolic);
      const auto launched = net.run({"megakernel"});
      CHECK(oclc::difference(launched, evaluate(*net.check.graph, net.check.inputs, net.check.symbols), 5e-6) == "");
      CHECK(oclc::difference(net.run({}, 3), launched, 0) == "");
    }
  }
}

TEST_CASE("parts that differ in constants have one kernel of their own, with the same bits") {
  const Token net(4, false, 384, 64);
  const Compiled compiled = net.compiled();
  const plan::Launch& launch = *metadata_of(compiled).entries()->Get(0)->steps()->Get(0)->body_as_Launch();
  REQUIRE(launch.parts()->size() == 8);
  std::set<std::string> own;
  for (const plan::Part* part : *launch.parts()) own.insert(part->kernel()->str());
  CHECK(own.size() == 2);
  const plan::Program& program = *metadata_of(compiled).programs()->Get(static_cast<std::uint32_t>(launch.program()));
  CHECK(program.part_bytes()->size() == 2);
  CHECK(program.source()->str().find("_merged(") != std::string::npos);
  const auto launched = net.run({"megakernel"});
  CHECK(oclc::difference(net.run(), launched, 0) == "");
  // As a runtime builds them first.
  PlanRunner first(module_of(copy_graph(*net.check.graph)), net.options({}), [](plan::PlanT& plan) {
    for (const auto& p : plan.programs)
      if (p->own_kernels) p->options += " -D" + p->name + "_FIRST=0 -D" + p->name + "_LAST=2";
  });
  CHECK(oclc::difference(first.run(net.check.inputs), launched, 0) == "");
}

TEST_CASE("rows of odd lengths have sums of several results as well") {
  const Token net(3, false, 390);
  CHECK(net.compiled().plan.launches == 1);
  CHECK(oclc::difference(net.run(), net.run({"megakernel"}), 0) == "");
}

TEST_CASE("few kernels, and those longer than a launch, stay launches") {
  CHECK(Token(2).compiled().plan.launches == 4);
  CHECK(Token(4).compiled({"megakernel"}).plan.launches == 8);
  const Compiled large = Token(3, false, 1024).compiled();
  CHECK(large.plan.launches == 6);
}

}  // namespace
}  // namespace oclc::test
