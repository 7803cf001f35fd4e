// Programs with a branch for AMX tiles, on a device that may have them or not.
#include <doctest/doctest.h>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// y = x; y = -x with OCLC_AMX; y = 2 x with OCLC_AMX_EMULATED.
fb::PlanT plan_with_branches() {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 16));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 16));
  plan.programs.push_back(program("branches", R"(
#if defined(OCLC_AMX)
#define F(v) -v
#elif defined(OCLC_AMX_EMULATED)
#define F(v) 2 * v
#else
#define F(v) v
#endif
kernel void copy(global const float* x, long x0, global float* y, long y0) { y[y0 + get_global_id(0)] = F(x[x0 + get_global_id(0)]); }
)"));
  plan.programs[0]->instructions = fb::Instructions::amx;
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {4}));
  e->outputs.push_back(binding("y", 1, {4}));
  e->steps.push_back(launch("copy", 0, {4}, {1}, reads(0), writes(1)));
  plan.entries.push_back(std::move(e));
  return plan;
}

Made run(const char* use) {
  Made made;
  const Setting off("OCLC_CACHE", "0"), wish("OCLC_AMX", use);
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.message = add_message;
  options.user = &made.messages;
  const rt::Context context(options);
  const auto bytes = finish(plan_with_branches());
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  const std::vector<float> x = {1, 2, 3, 4};
  made.result.resize(4);
  session.set_input(0, "x", x.data(), {4});
  session.set_output(0, "y", made.result.data(), {4});
  session.run(0);
  return made;
}

}  // namespace

TEST_CASE("a refused unit leaves the portable branch, and a note") {
  const Made made = run("0");
  CHECK(made.result == std::vector<float>{1, 2, 3, 4});
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0].find("compiled for AMX tiles") != std::string::npos);
  CHECK(made.messages[0].find("OCLC_AMX=0") != std::string::npos);
}

TEST_CASE("the unit's arithmetic in plain C is to be had on request") {
  const Made made = run("emulate");
  CHECK(made.result == std::vector<float>{2, 4, 6, 8});
  CHECK(made.messages.size() == 1);
}

TEST_CASE("the branch for the unit is built where the processor has it") {
  const Made made = run(nullptr);
  oclc_device_info device = OCLC_INIT(oclc_device_info);
  std::uint32_t index = 0;
  REQUIRE(oclc_device_select("", &index, nullptr) == OCLC_OK);
  REQUIRE(oclc_device_get(index, &device, nullptr) == OCLC_OK);
  if (std::string(device.cpu_features).find("amx_bf16") == std::string::npos) {
    REQUIRE(made.messages.size() == 1);
    CHECK(made.messages[0].find("the processor has no AMX tiles") != std::string::npos);
  }
  CHECK(made.result == (made.messages.empty() ? std::vector<float>{-1, -2, -3, -4} : std::vector<float>{1, 2, 3, 4}));
}

TEST_CASE("a driver whose compiler takes no instructions of the unit is known, and leaves the portable branch") {
  const struct Intel {
    Intel() { driver.platform = "Intel(R) OpenCL"; }
    ~Intel() { driver = {}; }
  } intel;
  oclc_device_info device = OCLC_INIT(oclc_device_info);
  REQUIRE(oclc_device_get(0, &device, nullptr) == OCLC_OK);
  CHECK(std::string(device.quirks).find("no_tile_assembly") != std::string::npos);
  const Made made = run(nullptr);
  CHECK(made.result == std::vector<float>{1, 2, 3, 4});
  REQUIRE(made.messages.size() == 1);
  const bool has_unit = std::string(device.cpu_features).find("amx_bf16") != std::string::npos;
  CHECK(made.messages[0].find(has_unit ? "its compiler takes no AMX instructions" : "the processor has no AMX tiles") !=
        std::string::npos);
  CHECK(run("emulate").result == std::vector<float>{2, 4, 6, 8});
}
