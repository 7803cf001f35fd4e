// Version macros and queries of the runtime, and the C++ header's events.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "runtime/package/container.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plans.h"

namespace header_test {

using namespace oclc;
using namespace oclc::test;

TEST_CASE("the header's version is the library's, as numbers that #if compares") {
  const std::string text =
      std::to_string(OCLC_VERSION_MAJOR) + "." + std::to_string(OCLC_VERSION_MINOR) + "." + std::to_string(OCLC_VERSION_PATCH);
  CHECK(text == oclc_version());
#if OCLC_VERSION_NUMBER >= 100 && OCLC_VERSION_NUMBER < 1000000
  CHECK(OCLC_VERSION_NUMBER == OCLC_VERSION_MAJOR * 10000 + OCLC_VERSION_MINOR * 100 + OCLC_VERSION_PATCH);
#else
  CHECK_MESSAGE(false, "OCLC_VERSION_NUMBER is no number of the preprocessor");
#endif
}

TEST_CASE("a plan tells the number of its format, and the library those that it reads") {
  std::uint32_t oldest = 0, newest = 0;
  oclc_plan_formats(&oldest, &newest);
  CHECK(oldest == 1);
  CHECK(newest == package::kFormatVersion);
  oclc_plan_formats(nullptr, nullptr);
  const std::vector<std::byte> bytes = vector_plan_bytes();
  package::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const rt::Plan plan = load(bytes);
  CHECK(plan.info().format == header.version);
  CHECK(plan.info().format >= oldest);
  // A program that was compiled before the member was there has a shorter struct.
  struct {
    oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  } before;
  before.info.format = 77;
  before.info.size = offsetof(oclc_plan_info, format);
  CHECK(oclc_plan_get_info(plan.get(), &before.info) == OCLC_OK);
  CHECK(before.info.format == 77);
  CHECK(before.info.program_count == 1);
}

TEST_CASE("a run that was started ends with its event, without a call of OpenCL") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context context;
  rt::Session session(plan, context);
  const std::vector<float> a = ramp(100), b = ramp(100, 2);
  std::vector<float> y(100);
  session.set_input(0, "a", a.data(), {100});
  session.set_input(0, "b", b.data(), {100});
  session.set_output(0, "y", y.data(), {100});
  const rt::Event done = session.start(0);
  done.wait();
  check_vector_result(a, b, y);
  // One run behind another's event; an event that nobody waits for is given back all the same.
  std::fill(y.begin(), y.end(), 0.f);
  {
    const rt::Event dropped = session.start(0);
    CHECK(dropped.get() != nullptr);
  }
  session.start(0, {done.get()}).wait();
  check_vector_result(a, b, y);
  session.cancel();  // nothing is being enqueued: nothing happens
  session.run(0);
}

TEST_CASE("waiting for no event is an error, releasing none is not") {
  oclc_error error = OCLC_INIT(oclc_error);
  CHECK(oclc_event_wait(nullptr, &error) == OCLC_E_ARGUMENT);
  CHECK(std::string(error.message) == "event is NULL");
  oclc_event_release(nullptr);
}

}  // namespace header_test
