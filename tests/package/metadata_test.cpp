// What a plan says of its model and of the class of its devices.
#include <doctest/doctest.h>

#include "oclc/oclc.hpp"
#include "runtime/package/limits.h"
#include "tests/package/verify_error.h"

using namespace oclc;
using namespace oclc::test;

namespace {

fb::PlanT plan_with(const std::vector<std::pair<std::string, std::string>>& properties) {
  fb::PlanT plan = vector_plan();
  for (const auto& [name, value] : properties) {
    auto property = std::make_unique<fb::PropertyT>();
    property->name = name;
    property->value = value;
    plan.metadata.push_back(std::move(property));
  }
  return plan;
}

rt::Plan loaded(const fb::PlanT& plan) {
  const auto bytes = finish(plan, {1, 2, 3, 4});
  return rt::Plan::load(bytes.data(), bytes.size());
}

}  // namespace

TEST_CASE("a plan gives its model's properties in their order, and the class of its devices") {
  fb::PlanT made = plan_with({{"author", "Jürgen"}, {"empty", ""}});
  made.device_class = fb::DeviceClass::gpu;
  const rt::Plan plan = loaded(made);
  CHECK(plan.metadata() == std::vector<std::pair<std::string, std::string>>{{"author", "Jürgen"}, {"empty", ""}});
  CHECK(plan.info().device_class == OCLC_DEVICE_GPU);
  CHECK(plan.info().metadata_count == 2);
}

TEST_CASE("a plan that says nothing of its model or its devices has no properties and no class") {
  const rt::Plan plan = loaded(vector_plan());
  CHECK(plan.metadata().empty());
  CHECK(plan.info().device_class == OCLC_DEVICE_OTHER);
}

TEST_CASE("a property beyond the last one, or of no plan, is an argument error, and NULL is skipped") {
  const rt::Plan plan = loaded(plan_with({{"author", "A"}}));
  const char* value = nullptr;
  CHECK(oclc_plan_get_metadata(plan.get(), 0, nullptr, &value) == OCLC_OK);
  CHECK(std::string(value) == "A");
  CHECK(oclc_plan_get_metadata(plan.get(), 0, nullptr, nullptr) == OCLC_OK);
  CHECK(oclc_plan_get_metadata(plan.get(), 1, nullptr, &value) == OCLC_E_ARGUMENT);
  CHECK(oclc_plan_get_metadata(nullptr, 0, nullptr, &value) == OCLC_E_ARGUMENT);
}

TEST_CASE("properties that break a rule are refused") {
  CHECK(verify_error(plan_with({{"a", "1"}, {"a", "2"}})) == "property 1: the name 'a' is used twice");
  CHECK(verify_error(plan_with({{"", "1"}})) == "property 0: has no name");
  CHECK(verify_error(plan_with({{"a", std::string("1\0", 2)}})) == "property 0: its value contains a NUL");
  CHECK(verify_error(plan_with({{"a", std::string(package::kMaxPropertyBytes + 1, 'x')}})) ==
        "property 0: its value is longer than 1048576 bytes");
  std::vector<std::pair<std::string, std::string>> many;
  for (std::uint32_t i = 0; i <= package::kMaxProperties; ++i) many.emplace_back("p" + std::to_string(i), "");
  CHECK(verify_error(plan_with(many)) == "metadata of the model: 1025 properties, allowed are 1024");
  fb::PlanT plan = vector_plan();
  plan.device_class = static_cast<fb::DeviceClass>(3);
  CHECK(verify_error(plan) == "device class: unknown: 3");
}
