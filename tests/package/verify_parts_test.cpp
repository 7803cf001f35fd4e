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
  // The runtime makes macros of the name.
  CHECK(error_after([](fb::PlanT& p) { p.programs[1]->name = "add -DX"; }) ==
        "program 1: has parts, and its name is not an identifier");
}
