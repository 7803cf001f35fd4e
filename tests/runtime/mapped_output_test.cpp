// Outputs that are read where they lie.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/runtime/error_of.h"
#include "tests/runtime/failing_driver.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Vectors {
  rt::Plan plan = load(vector_plan_bytes());
  rt::Session session{plan, rt::Context()};
  std::vector<float> a;

  explicit Vectors(std::size_t n) { set(n); }
  void set(std::size_t n) {
    a = ramp(n);
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(n)};
    session.set_input(0, "a", a.data(), shape);
    session.set_input(0, "b", a.data(), shape);
  }
  void check(const rt::MappedOutput& y) const {
    REQUIRE(y.bytes() == a.size() * sizeof(float));
    check_vector_result(a, a, std::vector<float>(y.as<float>(), y.as<float>() + a.size()));
  }
};

}  // namespace

TEST_CASE("an output that is not bound is read where it lies, run after run, and nothing is transferred") {
  Vectors v(100000);
  v.session.run(0);
  const void* first = nullptr;
  {
    const std::uint64_t before = failing.bytes_to_host;
    const rt::MappedOutput y = v.session.map_output(0, "y");
    v.check(y);
    first = y.data();
    CHECK(failing.bytes_to_host == before);
  }
  v.a[7] = 1000;
  v.session.run(0);
  const rt::MappedOutput y = v.session.map_output(0, "y");
  v.check(y);
  CHECK(y.data() == first);
}

TEST_CASE("an output is mapped with the size that the run found") {
  Vectors v(1000);
  v.session.run(0);
  { v.check(v.session.map_output(0, "y")); }
  v.set(10);
  v.session.run(0);
  v.check(v.session.map_output(0, "y"));
  v.set(0);
  v.session.run(0);
  const rt::MappedOutput empty = v.session.map_output(0, "y");
  CHECK(empty.bytes() == 0);
  CHECK(empty.data() == nullptr);
}

TEST_CASE("two outputs are mapped at once") {
  const rt::Plan plan = load(two_output_plan_bytes());
  rt::Session session(plan, rt::Context());
  const std::vector<float> x = {1, 2, 3, 4};
  session.set_input(0, "x", x.data(), {4});
  session.run(0);
  const rt::MappedOutput twice = session.map_output(0, "twice"), negated = session.map_output(0, "negated");
  CHECK(std::vector<float>(twice.as<float>(), twice.as<float>() + 4) == std::vector<float>{2, 4, 6, 8});
  CHECK(std::vector<float>(negated.as<float>(), negated.as<float>() + 4) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("while an output is mapped its entry point is not run, and others are") {
  const rt::Plan plan = load(counter_plan_bytes());
  rt::Session session(plan, rt::Context());
  const std::vector<float> x = {1, 2};
  session.set_input(0, "x", x.data(), {2});
  session.run(1);
  {
    const rt::MappedOutput total = session.map_output(1, "total");
    const std::string message = error_of([&] { session.run(1); }, OCLC_E_ARGUMENT);
    CHECK(message ==
          "output 'total' is mapped: unmap it before entry point 'get' is prepared or runs again (oclc_session_unmap_output)");
    CHECK(error_of([&] { session.prepare(1); }, OCLC_E_ARGUMENT) == message);
    CHECK(error_of([&] { session.run_steps(1, 2); }, OCLC_E_ARGUMENT) == message);
    session.run(0);
    CHECK(total.as<float>()[0] == 10);
  }
  session.run(1);
  CHECK(session.map_output(1, "total").as<float>()[1] == 22);
}

TEST_CASE("outputs that are bound, mapped, not computed or unknown are not mapped") {
  Vectors v(8);
  CHECK(error_of([&] { v.session.map_output(0, "y"); }, OCLC_E_ARGUMENT) ==
        "output 'y': entry point 'predict' was not run, or inputs or outputs were bound since");
  v.session.run(0);
  CHECK(error_of([&] { v.session.map_output(0, "z"); }, OCLC_E_ARGUMENT) ==
        "entry point 'predict' has no output 'z'; it has: y");
  {
    const rt::MappedOutput y = v.session.map_output(0, "y");
    CHECK(error_of([&] { v.session.map_output(0, "y"); }, OCLC_E_ARGUMENT) == "output 'y' is mapped already");
  }
  CHECK(oclc_session_unmap_output(v.session.get(), 0, "y") == OCLC_E_ARGUMENT);
  CHECK(std::string(oclc_session_message(v.session.get())) == "output 'y' is not mapped");
  std::vector<float> y(8);
  v.session.set_output(0, "y", y.data(), {8});
  v.session.run(0);
  CHECK(error_of([&] { v.session.map_output(0, "y"); }, OCLC_E_ARGUMENT) ==
        "output 'y' is bound: read it where it is bound to");
  CHECK(oclc_session_map_output(v.session.get(), 0, "y", nullptr, nullptr) == OCLC_E_ARGUMENT);
}

TEST_CASE("strings are not mapped") {
  const rt::Plan plan = load(finish(string_plan()));
  rt::Session session(plan, rt::Context());
  session.set_strings(0, "x", {"a", "stop"}, {2});
  session.run(0);
  CHECK(error_of([&] { session.map_output(0, "y"); }, OCLC_E_UNSUPPORTED) ==
        "output 'y' holds strings, which are not mapped: use oclc_session_read_output");
}

TEST_CASE("a session may be released while an output is mapped, and leaves nothing") {
  const long before = failing.objects;
  {
    Vectors v(64);
    v.session.run(0);
    const void* host = nullptr;
    std::uint64_t bytes = 0;
    REQUIRE(oclc_session_map_output(v.session.get(), 0, "y", &host, &bytes) == OCLC_OK);
    CHECK(bytes == 256);
  }
  CHECK(failing.objects == before);
}
