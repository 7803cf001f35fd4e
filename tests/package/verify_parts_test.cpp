// Launches that do several steps one after another: what a plan may say of their parts.
#include <doctest/doctest.h>

#include <optional>

#include "tests/package/verify_error.h"
#include "tests/runtime/plan_builder.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// The first launch, y = a + b, with one part that a kernel of its own does too.
fb::PlanT plan_with_part() {
  fb::PlanT plan = vector_plan();
  auto part = std::make_unique<fb::PartT>();
  part->name = "sum";
  part->anchor = "pointwise";
  part->nodes = {"add_node"};
  part->flops = E(1).ptr();
  part->bytes = E(12).ptr();
  part->kernel = "add_sum";
  part->args.push_back(reads(0));
  part->args.push_back(reads(1));
  plan.entries[0]->steps[0]->body.AsLaunch()->parts.push_back(std::move(part));
  return plan;
}

fb::PartT& part_of(fb::PlanT& plan) { return *plan.entries[0]->steps[0]->body.AsLaunch()->parts[0]; }

}  // namespace

TEST_CASE("case 62: wild parts of launches are refused") {
  const std::string where = "entry point 'predict' step 0 'add' part 0";
  fb::PlanT plan = plan_with_part();
  CHECK(verify_error(plan) == "");
  part_of(plan).kernel = "";
  CHECK(verify_error(plan) == "");  // the launch does it, and nothing else
  const auto error_after = [](const auto& change) {
    fb::PlanT changed = plan_with_part();
    change(part_of(changed));
    return verify_error(changed);
  };
  CHECK(error_after([](fb::PartT& p) { p.kernel = "add sum"; }) == where + ": its kernel name is not an identifier");
  CHECK(error_after([](fb::PartT& p) { p.kernel = "1st"; }) == where + ": its kernel name is not an identifier");
  CHECK(error_after([](fb::PartT& p) { p.args[0] = value(fb::ArgKind::int32, E(1)); }) ==
        where + " argument 0: is not a buffer");
  CHECK(error_after([](fb::PartT& p) { p.args[0] = reads(99); }) == where + " argument 0: buffer 99 of 6");
  CHECK(error_after([](fb::PartT& p) { p.args[1]->writes = true; }) ==
        where + " argument 1: buffer 1 'b' is written, but is an input");
  CHECK(error_after([](fb::PartT& p) { p.args[0] = reads(2); }) ==
        where + " argument 0: buffer 2 'w' is not one that the launch uses so");
}

TEST_CASE("wild rows of a launch of several kernels are refused") {
  const std::string where = "entry point 'predict' step 0 'add' argument 0";
  // In place of the first argument: a number that is given, the place of `b` from `a` on, and their sum.
  const auto error_after = [](const auto& change) {
    fb::PlanT plan = vector_plan();
    auto rows = std::make_unique<fb::ArgT>();
    rows->kind = fb::ArgKind::rows;
    rows->numbers = {7, 0, 0};
    const auto add = [&](std::uint32_t at, int buffer, int plus) {
      auto cell = std::make_unique<fb::CellT>();
      cell->at = at;
      cell->buffer = buffer;
      cell->base = buffer < 0 ? -1 : 0;
      cell->plus = plus;
      rows->cells.push_back(std::move(cell));
    };
    add(1, 1, 0);
    add(2, -1, 1);
    change(*rows);
    plan.entries[0]->steps[0]->body.AsLaunch()->args[0] = std::move(rows);
    return verify_error(plan);
  };
  CHECK(error_after([](fb::ArgT&) {}) == "");
  CHECK(error_after([](fb::ArgT& a) { a.numbers.clear(); }) == where + ": wanted 1 to 1048576 numbers, found 0");
  CHECK(error_after([](fb::ArgT& a) { a.writes = true; }) == where + ": only buffers can be written");
  CHECK(error_after([](fb::ArgT& a) { a.value = E::symbol(1 << 20).ptr(); }) == where + ": symbol 1048576 of 1 symbols");
  CHECK(error_after([](fb::ArgT& a) { a.shared = true; }) == where + ": is shared, but not a buffer");
  CHECK(error_after([](fb::ArgT& a) { a.kind = fb::ArgKind::int32; }) == where + ": has numbers, but is no rows");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->at = 3; }) == where + " cell 0: puts number 3 of 3");
  CHECK(error_after([](fb::ArgT& a) { a.cells[1]->at = 1; }) == where + " cell 1: puts number 1 a second time");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->buffer = 6; }) == where + " cell 0: buffer 6 of 6");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->buffer = -2; }) == where + " cell 0: has a base or writes, but no buffer");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->base = -1; }) == where + " cell 0 base: buffer -1 of 6");
  CHECK(error_after([](fb::ArgT& a) { a.cells[1]->writes = true; }) == where + " cell 1: has a base or writes, but no buffer");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->writes = true; }) ==
        where + " cell 0: buffer 1 'b' is written, but is an input");
  CHECK(error_after([](fb::ArgT& a) { a.cells[1]->plus = 3; }) ==
        where + " cell 1: counts on number 3, which is not known before it");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->plus = 2; }) ==
        where + " cell 0: counts on number 2, which is not known before it");
  CHECK(error_after([](fb::ArgT& a) { a.cells[0]->value = E::symbol(9).ptr(); }).starts_with(where + " cell 0: "));
}

TEST_CASE("only states, inputs and outputs of sizes that are known before a run are pooled") {
  fb::PlanT plan = vector_plan();
  plan.buffers[0]->pooled = true;
  CHECK(verify_error(plan) == "");
  plan.buffers[0]->dtype = fb::DType::string_;
  plan.entries[0]->inputs[0]->dtype = fb::DType::string_;
  plan.strings.emplace_back();
  CHECK(verify_error(plan) == "buffer 0 'a': is pooled, but holds strings or has a size that is read late");
  plan = vector_plan();
  plan.buffers[3]->pooled = true;
  CHECK(verify_error(plan) == "buffer 3 'sum': only states, inputs and outputs are pooled");
}

TEST_CASE("wild assumptions are refused") {
  const auto with = [](const char* node, const std::optional<E>& left, const std::optional<E>& right) {
    fb::PlanT plan = vector_plan();
    auto a = std::make_unique<fb::AssumptionT>();
    a->node = node;
    if (left) a->left = left->ptr();
    if (right) a->right = right->ptr();
    plan.assumptions.push_back(std::move(a));
    return verify_error(plan);
  };
  CHECK(with("join", E(1), E(2)).empty());  // a run compares them
  CHECK(with("join", std::nullopt, E(2)).substr(0, 13) == "assumption 0:");
  CHECK(with("join", E(1), std::nullopt).substr(0, 13) == "assumption 0:");
  fb::PlanT plan = vector_plan();
  auto a = std::make_unique<fb::AssumptionT>();
  a->node = "join";
  a->left = E(1).ptr();
  a->right = std::make_unique<fb::ExprT>();
  a->right->code = {1000};
  plan.assumptions.push_back(std::move(a));
  CHECK(verify_error(plan).substr(0, 13) == "assumption 0:");
}

TEST_CASE("case 62: a program whose parts are not its kernel's is refused") {
  const std::string where = "entry point 'predict' step 0 'add'";
  const auto error_after = [](const auto& change) {
    fb::PlanT plan = plan_with_part();
    plan.programs.push_back(program("add", plan.programs[0]->source));
    plan.programs[1]->part_bytes = {100};
    plan.entries[0]->steps[0]->body.AsLaunch()->program = 1;
    change(plan);
    return verify_error(plan);
  };
  CHECK(error_after([](fb::PlanT&) {}) == "");
  CHECK(error_after([](fb::PlanT& p) {
          p.programs[1]->part_bytes = {100, 100};
        }) == where + ": has 1 parts, its program is of kernel 'add' with 2");
  CHECK(error_after([](fb::PlanT& p) { p.programs[1]->name = "sum"; }) ==
        where + ": has 1 parts, its program is of kernel 'sum' with 1");
  const auto with_kernel = [](fb::PlanT& p) {
    p.entries[0]->steps[0]->body.AsLaunch()->parts[0]->kernel = "add_k0";
    p.programs[1]->own_kernels = true;
  };
  CHECK(error_after(with_kernel) == "");
  CHECK(error_after([&](fb::PlanT& p) {
          with_kernel(p);
          p.programs[1]->part_bytes = {100, 100};
        }) == where + ": has 1 kernels of its parts, its program is of kernel 'add' with 2");
  CHECK(error_after([&](fb::PlanT& p) {
          with_kernel(p);
          p.entries[0]->steps[0]->body.AsLaunch()->parts[0]->kernel.clear();
        }) == where + ": has 1 kernels of its parts, its program is of kernel 'add' with 1");
  // The runtime makes macros of the name.
  CHECK(error_after([](fb::PlanT& p) { p.programs[1]->name = "add -DX"; }) ==
        "program 1: has parts, and its name is not an identifier");
}
