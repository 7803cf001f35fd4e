// A plan for CPUs on a GPU.
#include <doctest/doctest.h>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// The device says that it is a GPU.
struct SaidGpu {
  SaidGpu() {
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    driver = {};
    driver.says[CL_DEVICE_TYPE] = std::string(reinterpret_cast<const char*>(&type), sizeof type);
  }
  ~SaidGpu() { driver = {}; }
};

rt::Plan plan_for(fb::DeviceClass device_class) {
  fb::PlanT plan = vector_plan();
  plan.device_class = device_class;
  return load(finish(plan, {1, 2, 3, 4}));
}

void check_runs(const rt::Plan& plan, const oclc_context_options& options) {
  const rt::Context context(options);
  rt::Session session(plan, context);
  const auto a = ramp(8);
  std::vector<float> y(8);
  session.set_input(0, "a", a.data(), {8});
  session.set_input(0, "b", a.data(), {8});
  session.set_output(0, "y", y.data(), {8});
  session.run(0);
  check_vector_result(a, a, y);
}

}  // namespace

TEST_CASE("a plan for CPUs is refused on a GPU, with what to do") {
  const SaidGpu gpu;
  const rt::Context context;
  const std::string message = error_of([&] { rt::Session(plan_for(fb::DeviceClass::cpu), context); }, OCLC_E_UNSUPPORTED);
  CHECK(message == std::string("plan: the plan was compiled for CPUs (target 'cpu'), found the GPU '") + context.device().name +
                       "', whose compiler may take hours for such kernels; compile the model for it (oclc --device gpu), "
                       "choose a CPU, or ask for this (OCLC_ANY_DEVICE=1)");
}

TEST_CASE("a plan for CPUs runs on a GPU when that is asked for, by an option or the environment") {
  const SaidGpu gpu;
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.any_device = 1;
  check_runs(plan_for(fb::DeviceClass::cpu), options);
  const Setting by_environment("OCLC_ANY_DEVICE", "1");
  check_runs(plan_for(fb::DeviceClass::cpu), OCLC_INIT(oclc_context_options));
}

TEST_CASE("a GPU of small work-groups takes plans for CPUs: the compiler makes it no others") {
  const SaidGpu gpu;
  const std::size_t items = 32;
  driver.says[CL_DEVICE_MAX_WORK_GROUP_SIZE] = std::string(reinterpret_cast<const char*>(&items), sizeof items);
  check_runs(plan_for(fb::DeviceClass::cpu), OCLC_INIT(oclc_context_options));
}

TEST_CASE("plans for GPUs, and those that do not say what they are for, run on a GPU and on a CPU") {
  for (const fb::DeviceClass device_class : {fb::DeviceClass::any, fb::DeviceClass::gpu}) {
    check_runs(plan_for(device_class), OCLC_INIT(oclc_context_options));
    const SaidGpu gpu;
    check_runs(plan_for(device_class), OCLC_INIT(oclc_context_options));
  }
}
