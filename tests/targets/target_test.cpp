// Rows of targets: decisions ask for capabilities and numbers.
#include <doctest/doctest.h>

#include <set>

#include "compiler/support/error.h"
#include "compiler/targets/target.h"

using namespace oclc;

TEST_CASE("each row has a name of its own, a description and rates") {
  std::set<std::string> names;
  for (const Target& t : target_rows()) {
    CAPTURE(t.name);
    CHECK(names.insert(t.name).second);
    CHECK_FALSE(t.about.empty());
    CHECK(t.flops > 0);
    CHECK(t.bytes_per_second > 0);
    CHECK(t.launch_seconds > 0);
    CHECK(t.largest_group >= t.work_group);
    CHECK(t.items_are_cores() == (t.work_group == 1));
    // Cores do kernels one after another, groups those of one launch side by side.
    CHECK(t.items_are_cores() != t.has.horizontal_fusion);
  }
}

TEST_CASE("a target that counts loops has neither templates nor kernels that do the work of several") {
  for (Target t : target_rows()) {
    CAPTURE(t.name);
    t.loop_iterations = 1000;
    CHECK(t.counts_loops());
    CHECK_FALSE(t.has_vector_templates());
    CHECK_FALSE(t.has_group_templates());
    CHECK(t.megakernel() == Megakernel::none);
  }
  CHECK(find_target("llvmpipe").counts_loops());
  CHECK(find_target("cpu").megakernel() == Megakernel::cores);
  CHECK(find_target("h200").megakernel() == Megakernel::groups);
  CHECK(find_target("gpu").megakernel() == Megakernel::none);
}

TEST_CASE("units are taken as the contract allows") {
  for (Target t : target_rows()) {
    CAPTURE(t.name);
    CHECK_FALSE((t.multiplies_fragments() && t.multiplies_tiles()));
    t.precision = precision_under(Contract::strict);
    CHECK_FALSE(t.multiplies_fragments());
    CHECK_FALSE(t.multiplies_tiles());
    CHECK_FALSE(t.multiplies_groups());
  }
  Target amx = find_target("cpu-amx"), h200 = find_target("h200");
  CHECK(amx.multiplies_tiles());
  CHECK(h200.multiplies_fragments());
  CHECK(h200.multiplies_groups());
  CHECK_FALSE(find_target("cpu").multiplies_tiles());
}

TEST_CASE("a device of NVIDIA's has its maker's unit, groups and memory objects, whatever row it takes") {
  DeviceFacts facts;
  facts.is_cpu = false;
  facts.max_work_group = 1024;
  facts.vendor = "NVIDIA Corporation";
  facts.name = "NVIDIA A10";
  const Target t = target_for(facts);
  CHECK(t.name == "gpu");
  CHECK(t.multiplies_fragments());
  CHECK(t.has.one_memory_object);
  CHECK(t.largest_group == 1024);
  CHECK_FALSE(t.has.wgmma);
  facts.vendor = "Another";
  const Target other = target_for(facts);
  CHECK(other.matrix_unit == nullptr);
  CHECK_FALSE(other.has.one_memory_object);
  CHECK(other.largest_group == 256);
  facts.max_work_group = 64;
  CHECK(target_for(facts).largest_group == 64);
  facts.max_work_group = 16;
  CHECK(target_for(facts).name == "cpu-128");
  CHECK(target_for(facts).kernels_a_launch == 1);
}

TEST_CASE("a target that is not there is refused with the names of those that are") {
  try {
    find_target("tpu");
    FAIL("wanted a refusal");
  } catch (const CompileError& error) {
    CHECK(std::string(error.what()).find("wanted one of cpu, cpu-zen, cpu-amx") != std::string::npos);
    CHECK(std::string(error.what()).find("target 'tpu'") != std::string::npos);
  }
}
