// Programs with instructions of sm_90a, on a device that says it has them.
#include <doctest/doctest.h>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr const char* kPtx =
    ".version 9.0\n.target sm_90, texmode_independent\n.entry copy()\n.reqntid 4, 1, 1\n{\n\t//@wgmma.fence.sync.aligned;\n"
    "\t// a comment\n\tret;\n}\n";
constexpr const char* kLifted =
    ".version 9.0\n.target sm_90a, texmode_independent\n.entry copy()\n.reqntid 4, 1, 1\n.minnctapersm 1\n{\n"
    "\twgmma.fence.sync.aligned;\n\t// a comment\n\tret;\n}\n";

// y = x, or y = -x with OCLC_SM90A.
fb::PlanT plan_with_branches(bool broken) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 16));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 16));
  plan.programs.push_back(program(
      "branches", std::string("#ifdef OCLC_SM90A\n#define F(v) -v\n") + (broken ? "#error no such unit\n" : "") + R"(#else
#define F(v) v
#endif
kernel void copy(global const float* x, long x0, global float* y, long y0) { y[y0 + get_global_id(0)] = F(x[x0 + get_global_id(0)]); }
)"));
  plan.programs[0]->instructions = fb::Instructions::sm90a;
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {4}));
  e->outputs.push_back(binding("y", 1, {4}));
  e->steps.push_back(launch("copy", 0, {4}, {1}, reads(0), writes(1)));
  plan.entries.push_back(std::move(e));
  return plan;
}

struct Device {
  explicit Device(cl_uint major) {
    driver = {};
    driver.capability_major = major;
  }
  ~Device() { driver = {}; }
};

Made run(bool broken = false) {
  Made made;
  const Setting off("OCLC_CACHE", "0");
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.message = add_message;
  options.user = &made.messages;
  const rt::Context context(options);
  const auto bytes = finish(plan_with_branches(broken));
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  const std::vector<float> x = {1, 2, 3, 4};
  made.result.resize(4);
  session.set_input(0, "x", x.data(), {4});
  session.set_output(0, "y", made.result.data(), {4});
  session.run(0);
  return made;
}

const std::vector<float> kSame = {1, 2, 3, 4};

}  // namespace

TEST_CASE("other devices build the portable branch") {
  for (const cl_uint major : {0u, 8u, 10u}) {
    const Device device(major);
    const Made made = run();
    CHECK(made.result == kSame);
    CHECK(made.messages.empty());
    CHECK(driver.binaries_offered == 0);
  }
}

TEST_CASE("hidden instructions are lifted out of the driver's PTX") {
  const Device device(9);
  driver.ptx = kPtx;
  driver.answer = CL_INVALID_BINARY;  // this machine's driver knows no PTX
  const Made made = run();
  CHECK(driver.binaries_offered == 1);
  CHECK(driver.last_binary == kLifted);
  CHECK(made.result == kSame);
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0].find(
            "does not take sm_90a instructions, program 'branches' runs without them: CL_INVALID_BINARY (-42)") !=
        std::string::npos);
}

TEST_CASE("a driver whose binaries are no PTX gets the portable branch") {
  const Device device(9);
  driver.ptx =
      "\x7f"
      "ELF";
  const Made made = run();
  CHECK(driver.binaries_offered == 0);
  CHECK(made.result == kSame);
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0].find("program 'branches' runs without them: its binary is no PTX for sm_90") != std::string::npos);
}

TEST_CASE("a branch that does not build gives way to the portable one") {
  const Device device(9);
  const Made made = run(true);
  CHECK(made.result == kSame);
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0].find("program 'branches' runs without them: program 'branches' does not build on device") !=
        std::string::npos);
}
