#include <CL/cl.h>
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

rt::Plan load(const fb::PlanT& plan) { return test::load(finish(plan)); }

struct Outputs {
  std::vector<const char*> y;
  std::int64_t n = -1;

  void bind(rt::Session& session, std::size_t size) {
    y.assign(size, nullptr);
    session.set_output(0, "y", y.data(), {static_cast<std::int64_t>(size)});
    session.set_output(0, "n", &n, {1});
  }
};

}  // namespace

TEST_CASE("strings are copied when set, and given as texts of the session") {
  rt::Session session(load(string_plan()), rt::Context());
  Outputs out;
  {
    std::string first = "one", second = "stop", third = "drei ä";
    session.set_strings(0, "x", {first.c_str(), second.c_str(), third.c_str()}, {3});
    first = "changed";
  }
  out.bind(session, 3);
  session.run(0);
  CHECK(out.n == 2);
  CHECK(std::string(out.y[0]) == "ONE");
  CHECK(std::string(out.y[1]) == "DREI Ä");
  CHECK(std::string(out.y[2]).empty());
  CHECK(session.stats().launches == 0);
  session.run(0);  // with the same strings
  CHECK(std::string(out.y[0]) == "ONE");
  session.set_strings(0, "x", {"stop", "stop", "stop"}, {3});
  session.run(0);
  CHECK(out.n == 1);
  CHECK(std::string(out.y[0]).empty());
  // Another number of strings.
  oclc_session_set_output(session.get(), 0, "y", nullptr);
  session.set_strings(0, "x", {"a"}, {1});
  out.bind(session, 1);
  session.run(0);
  CHECK(std::string(out.y[0]) == "A");
  CHECK(session.shape(0, OCLC_OUTPUT, "y") == std::vector<std::int64_t>{1});
  CHECK(session.bytes(0, OCLC_OUTPUT, "y") == sizeof(const char*));
}

TEST_CASE("many runs with ever new strings keep none of the old") {
  rt::Session session(load(string_plan()), rt::Context());
  Outputs out;
  out.bind(session, 2);
  for (int i = 0; i < 300; ++i) {
    const std::string word = "word " + std::to_string(i);
    session.set_strings(0, "x", {word.c_str(), "stop"}, {2});
    session.run(0);
    REQUIRE(std::string(out.y[0]) == "WORD " + std::to_string(i));
  }
}

TEST_CASE("enqueue is complete for strings when it returns") {
  rt::Session session(load(string_plan()), rt::Context());
  Outputs out;
  session.set_strings(0, "x", {"a", "b"}, {2});
  out.bind(session, 2);
  cl_event event = session.enqueue(0);
  CHECK(std::string(out.y[1]) == "B");
  CHECK(clWaitForEvents(1, &event) == CL_SUCCESS);
  clReleaseEvent(event);
  CHECK(out.n == 2);
}

TEST_CASE("what strings cannot be is refused") {
  const rt::Context context;
  rt::Session session(load(string_plan()), context);
  CHECK(error_of([&] { session.set_strings(0, "x", {"a", nullptr}, {2}); }) == "input 'x': element 1 is NULL, wanted a string");
  CHECK(error_of([&] { session.set_strings(0, "x", {"a"}, {2}); }) == "input 'x': shape [2] needs 16 bytes, found 8");
  const std::int32_t number = 1;
  CHECK(error_of([&] { session.set_input(0, "x", &number, {1}); }) == "input 'x': wanted string, found int32");
  cl_int code = CL_SUCCESS;
  cl_mem memory = clCreateBuffer(context.cl_context(), CL_MEM_READ_WRITE, 64, nullptr, &code);
  REQUIRE(code == CL_SUCCESS);
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  const std::int64_t shape[] = {2};
  tensor.dtype = OCLC_STRING;
  tensor.rank = 1;
  tensor.shape = shape;
  tensor.buffer = memory;
  CHECK(error_of([&] { session.set_input(0, "x", tensor); }) == "input 'x': strings lie in host memory, found a cl_mem");
  clReleaseMemObject(memory);
  Outputs out;
  session.set_strings(0, "x", {"a", "b"}, {2});
  out.bind(session, 1);
  CHECK(error_of([&] { session.run(0); }) == "output 'y': wanted shape [N] = [2], found [1]");
}

TEST_CASE("values that an operator of the host refuses fail the run with its nodes") {
  fb::PlanT plan = string_plan();
  auto& steps = plan.entries[0]->steps;
  steps.resize(1);
  fb::HostT host;
  host.op = "string_to_number";
  host.nodes = {"parse"};
  host.inputs.push_back(operand(reads(0), {1}));
  host.outputs.push_back(operand(writes(3), {1}));
  steps[0]->body.Set(std::move(host));
  plan.buffers[2]->last = 0;
  rt::Session session(load(plan), rt::Context());
  Outputs out;
  session.set_strings(0, "x", {"42"}, {1});
  session.set_output(0, "n", &out.n, {1});
  session.run(0);
  CHECK(out.n == 42);
  session.set_strings(0, "x", {"forty-two"}, {1});
  CHECK(error_of([&] { session.run(0); }) ==
        "operator 'string_to_number' of the host (nodes parse): wanted a number as element 0, found \"forty-two\"");
  session.set_strings(0, "x", {"7"}, {1});  // and the session goes on
  session.run(0);
  CHECK(out.n == 7);
}

TEST_CASE("operands that reach past their buffer, and numbers of no string, fail the run") {
  fb::PlanT large = string_plan();
  large.entries[0]->steps[0]->body.AsHost()->inputs[0]->shape[0] = (E::symbol(0) + 1).ptr();
  rt::Session session(load(large), rt::Context());
  session.set_strings(0, "x", {"a", "b"}, {2});
  CHECK(error_of([&] { session.run(0); }, OCLC_E_PLAN).find("uses 3 elements from 0 on of buffer 0, which has 2") !=
        std::string::npos);

  // The second step reads y, to which no step has written.
  fb::PlanT wild = string_plan();
  auto& steps = wild.entries[0]->steps;
  wild.programs.push_back(program("wild", R"(
kernel void wild(global int* y, long y0) { y[y0 + get_global_id(0)] = 77; }
)"));
  steps.erase(steps.begin() + 1, steps.end());
  steps[0] = launch("wild", 0, {E::symbol(0)}, {1}, writes(1));
  wild.buffers[2]->last = 0;
  rt::Session other(load(wild), rt::Context());
  Outputs out;
  other.set_strings(0, "x", {"a", "b"}, {2});
  out.bind(other, 2);
  CHECK(error_of([&] { other.run(0); }, OCLC_E_PLAN) == "invalid plan: a buffer of strings holds 77, the number of none");
}

TEST_CASE("strings have the size of a pointer and a name") {
  CHECK(oclc_dtype_bytes(OCLC_STRING) == sizeof(const char*));
  CHECK(std::string(oclc_dtype_name(OCLC_STRING)) == "string");
  CHECK(oclc_dtype_bytes(static_cast<oclc_dtype>(OCLC_U2 + 1)) == 0);
  CHECK(oclc_dtype_bytes(OCLC_U4) == 1);
  CHECK(std::string(oclc_dtype_name(OCLC_U4)) == "uint4");
  CHECK(std::string(oclc_dtype_name(OCLC_U2)) == "uint2");
  const rt::Plan plan = load(string_plan());
  CHECK(plan.inputs(0)[0].dtype == OCLC_STRING);
  CHECK(plan.entry_info(0).launch_count == 0);
}
