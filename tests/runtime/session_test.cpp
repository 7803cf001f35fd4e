#include <CL/cl.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace {

oclc_tensor device_tensor(cl_mem memory, std::uint64_t offset, const std::vector<std::int64_t>& shape) {
  oclc_tensor t = OCLC_INIT(oclc_tensor);
  t.rank = static_cast<std::uint32_t>(shape.size());
  t.shape = shape.data();
  t.buffer = memory;
  t.offset_bytes = offset;
  return t;
}

}  // namespace

TEST_CASE("a session infers dimensions from inputs and follows them when they change") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context context;
  rt::Session session(plan, context);
  std::vector<float> a, b, y;  // the session reads and writes them in every run
  for (const std::size_t n : {std::size_t{3}, std::size_t{1000}, std::size_t{17}, std::size_t{1}, std::size_t{100003}}) {
    a = ramp(n);
    b = ramp(n, 0.5f);
    y.assign(n, 0);
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(n)};
    session.set_input(0, "a", a.data(), shape);
    session.set_input(0, "b", b.data(), shape);
    session.set_output(0, "y", y.data(), shape);
    CHECK(session.shape(0, OCLC_OUTPUT, "y") == shape);
    session.run(0);
    check_vector_result(a, b, y);
    CHECK(session.stats().launches == 3);
    CHECK(session.stats().live_bytes == 4 * n);
  }
  CHECK(session.stats().preparations == 5);
  session.run(0);
  CHECK(session.stats().preparations == 5);
}

TEST_CASE("threads that stay awake behind a run serve the next one and the caller's own commands, and end with the context") {
  const rt::Plan plan = load(vector_plan_bytes());
  std::vector<float> a = ramp(300), b = ramp(300, 0.5f), y(300);
  const std::vector<std::int64_t> shape = {300};
  for (const char* wish : {"1", "0"}) {
    CAPTURE(wish);
    setenv("OCLC_AWAKE", wish, 1);
    const rt::Context context, other;
    rt::Session first(plan, context), second(plan, context), third(plan, other);
    for (rt::Session* session : {&first, &second, &third}) {
      session->set_input(0, "a", a.data(), shape);
      session->set_input(0, "b", b.data(), shape);
      session->set_output(0, "y", y.data(), shape);
    }
    for (int i = 0; i < 50; ++i) {
      for (rt::Session* session : {&first, &second, &third}) {
        y.assign(300, 0);
        session->run(0);
        check_vector_result(a, b, y);
      }
      if (i < 40) continue;
      cl_event mark = nullptr;
      CHECK(clEnqueueMarkerWithWaitList(context.cl_queue(), 0, nullptr, &mark) == CL_SUCCESS);
      CHECK(clWaitForEvents(1, &mark) == CL_SUCCESS);
      clReleaseEvent(mark);
    }
  }
  unsetenv("OCLC_AWAKE");
}

TEST_CASE("a zero-sized dimension runs nothing") {
  rt::Session session(load(vector_plan_bytes()), rt::Context());
  session.set_input<float>(0, "a", nullptr, {0});
  session.set_input<float>(0, "b", nullptr, {0});
  session.set_output<float>(0, "y", nullptr, {0});
  session.run(0);
  CHECK(session.stats().launches == 0);
}

TEST_CASE("a kernel that reads an empty buffer runs") {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 0, 100));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, E::symbol(0) * 4));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.programs.push_back(program("sum", R"(
kernel void sum(global const float* x, long x0, global float* y, long y0, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += x[x0 + i];
  y[y0] = s;
})"));
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {E::symbol(0)}));
  e->outputs.push_back(binding("y", 1, {}));
  e->steps.push_back(launch("sum", 0, {1}, {1}, reads(0), writes(1), value(fb::ArgKind::int32, E::symbol(0))));
  plan.entries.push_back(std::move(e));
  rt::Session session(load(finish(plan)), rt::Context());
  float y = 7;
  session.set_output<float>(0, "y", &y, {});
  session.set_input<float>(0, "x", nullptr, {0});
  session.run(0);
  CHECK(y == 0);
  const std::vector<float> x = {1, 2, 4};
  session.set_input<float>(0, "x", x.data(), {3});
  session.run(0);
  CHECK(y == 7);
}

TEST_CASE("cases 94, 98: the caller's context, queue, memory and events are used, and others refused") {
  cl_platform_id platform = nullptr;
  const rt::Context picked;
  const cl_device_id device = picked.device().id;
  REQUIRE(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr) == CL_SUCCESS);
  cl_context cl = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_queue_properties profiled[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_command_queue queue = clCreateCommandQueueWithProperties(cl, device, profiled, nullptr);
  const std::size_t n = 64;
  const auto a = ramp(2 * n);
  cl_mem in = clCreateBuffer(cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 2 * n * 4, const_cast<float*>(a.data()), nullptr);
  cl_mem out = clCreateBuffer(cl, CL_MEM_READ_WRITE, 3 * n * 4, nullptr, nullptr);
  {
    const rt::Context context(cl, queue);
    CHECK(context.cl_context() == cl);
    CHECK(context.cl_queue() == queue);
    rt::Session session(load(vector_plan_bytes()), context);
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(n)};
    session.set_input(0, "a", device_tensor(in, 0, shape));
    session.set_input(0, "b", device_tensor(in, n * 4, shape));
    session.set_output(0, "y", device_tensor(out, n * 4, shape));
    cl_event gate = clCreateUserEvent(cl, nullptr);
    cl_event done = session.enqueue(0, {gate});
    cl_int status = 0;
    clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    CHECK(status != CL_COMPLETE);
    clSetUserEventStatus(gate, CL_COMPLETE);
    CHECK(clWaitForEvents(1, &done) == CL_SUCCESS);
    std::vector<float> y(n);
    clEnqueueReadBuffer(queue, out, CL_TRUE, n * 4, n * 4, y.data(), 0, nullptr, nullptr);
    check_vector_result({a.begin(), a.begin() + n}, {a.begin() + n, a.end()}, y);
    CHECK(session.stats().staging_bytes == 0);
    clReleaseEvent(gate);
    clReleaseEvent(done);

    SUBCASE("overlapping memory is refused") {
      session.set_output(0, "y", device_tensor(in, 0, shape));
      CHECK(error_of([&] { session.run(0); }) == "input 'a' and output 'y' overlap in memory");
      session.set_output(0, "y", device_tensor(in, n * 4 + 4 - 4, shape));
      CHECK(error_of([&] { session.run(0); }) == "input 'b' and output 'y' overlap in memory");
      const cl_buffer_region region = {0, n * 4};
      cl_mem sub = clCreateSubBuffer(in, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr);
      session.set_input(0, "a", device_tensor(sub, 0, shape));
      session.set_output(0, "y", device_tensor(in, 0, shape));
      CHECK(error_of([&] { session.run(0); }) == "input 'a' and output 'y' overlap in memory");
      session.set_output(0, "y", device_tensor(out, 0, shape));
      session.run(0);
      clReleaseMemObject(sub);
    }
    SUBCASE("memory that moves is followed") {
      session.set_output(0, "y", device_tensor(out, 0, shape));
      session.set_input(0, "a", device_tensor(in, n * 4, shape));
      session.set_input(0, "b", device_tensor(in, 0, shape));
      session.run(0);
      clEnqueueReadBuffer(queue, out, CL_TRUE, 0, n * 4, y.data(), 0, nullptr, nullptr);
      check_vector_result({a.begin() + n, a.end()}, {a.begin(), a.begin() + n}, y);
      session.set_output(0, "y", device_tensor(out, 2 * n * 4, shape));
      CHECK(oclc_session_enqueue_unflushed(session.get(), 0) == OCLC_OK);
      clEnqueueReadBuffer(queue, out, CL_TRUE, 2 * n * 4, n * 4, y.data(), 0, nullptr, nullptr);
      check_vector_result({a.begin() + n, a.end()}, {a.begin(), a.begin() + n}, y);
    }
    SUBCASE("profiling events of the caller's queue are reported") {
      session.enable_profile(true);
      session.run(0);
      const auto launches = session.launches();
      REQUIRE(launches.size() == 3);
      CHECK(std::string(launches[0].name) == "add");
      CHECK(std::string(launches[0].nodes) == "add_node");
      CHECK(std::string(launches[0].anchor) == "pointwise");
      CHECK(launches[0].flops == 64);
      CHECK(launches[0].bytes == 768);
      CHECK(launches[0].end_ns > launches[0].start_ns);
      CHECK(launches[1].start_ns >= launches[0].end_ns);
    }
    SUBCASE("wrong memory is refused") {
      CHECK(error_of([&] { session.set_input(0, "a", device_tensor(in, 2, shape)); }) ==
            "input 'a': offset 2 is not a multiple of the element size 4");
      CHECK(error_of([&] { session.set_input(0, "a", device_tensor(in, n * 4 + 4, shape)); }) ==
            "input 'a': shape [64] needs 256 bytes, found 252");
      CHECK(error_of([&] { session.set_input(0, "a", device_tensor(in, n * 16, shape)); }) ==
            "input 'a': offset 1024 and size 0 reach past the end of its cl_mem of 512 bytes");
      cl_mem foreign = clCreateBuffer(picked.cl_context(), CL_MEM_READ_WRITE, 256, nullptr, nullptr);
      CHECK(error_of([&] { session.set_input(0, "a", device_tensor(foreign, 0, shape)); }) ==
            "input 'a': its cl_mem belongs to another cl_context than the session");
      clReleaseMemObject(foreign);
    }
  }
  const cl_queue_properties unordered[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  if (cl_command_queue other = clCreateCommandQueueWithProperties(cl, device, unordered, nullptr)) {
    CHECK(error_of([&] { rt::Context(cl, other); }, OCLC_E_ARGUMENT) ==
          "cl_queue: wanted an in-order queue, found an out-of-order one");
    clReleaseCommandQueue(other);
  }
  CHECK(error_of([&] { rt::Context(cl, picked.cl_queue()); }, OCLC_E_ARGUMENT) ==
        "cl_queue belongs to another context than cl_context");
  CHECK(error_of([&] { rt::Context(cl, nullptr); }, OCLC_E_ARGUMENT) == "cl_context and cl_queue: give both or none");
  clReleaseMemObject(in);
  clReleaseMemObject(out);
  clReleaseCommandQueue(queue);
  clReleaseContext(cl);
}

TEST_CASE("case 98: outputs that nobody binds are dropped, host outputs may not overlap") {
  rt::Session session(load(two_output_plan_bytes()), rt::Context());
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(8, -1);
  session.set_input(0, "x", x.data(), {4});
  session.set_output(0, "twice", y.data(), {4});
  session.run(0);
  CHECK(y[3] == 8);
  CHECK(y[4] == -1);
  session.set_output(0, "negated", y.data() + 3, {4});
  CHECK(error_of([&] { session.run(0); }) == "output 'twice' and output 'negated' overlap in memory");
  session.set_output(0, "negated", y.data() + 4, {4});
  session.run(0);
  CHECK(y[7] == -4);
  // In-place over host memory works: the input is copied first.
  std::vector<float> z = x;
  session.set_input(0, "x", z.data(), {4});
  session.set_output(0, "twice", z.data(), {4});
  session.run(0);
  CHECK(z[3] == 8);
}

TEST_CASE("loops run their body once per trip with the counter as a symbol") {
  rt::Session session(load(loop_plan_bytes()), rt::Context());
  const std::vector<float> x = {1, 10, 100};
  std::vector<float> y(3);
  session.set_input(0, "x", x.data(), {3});
  session.set_output(0, "y", y.data(), {3});
  for (const std::int64_t trips : {5, 0, 2}) {
    session.bind_dim("T", trips);
    session.run(0);
    // y = x + sum over t of t, and the inner loop adds 1 for each u < t.
    const auto sum = static_cast<float>(trips * (trips - 1) / 2);
    for (std::size_t i = 0; i < 3; ++i) CHECK(y[i] == x[i] + 2 * sum);
    CHECK(session.stats().launches == 1 + trips + trips * (trips - 1) / 2);
  }
}

TEST_CASE("state is shared by the entry points of a session, not by sessions") {
  const rt::Plan plan = load(counter_plan_bytes());
  const rt::Context context;
  rt::Session first(plan, context);
  rt::Session second(plan, context);
  const std::uint32_t add = plan.entry("add");
  const std::uint32_t get = plan.entry("get");
  const std::vector<float> x = {1, 2};
  std::vector<float> y(2);
  first.set_input(add, "x", x.data(), {2});
  first.set_output(get, "total", y.data(), {2});
  for (int i = 0; i < 3; ++i) first.run(add);
  first.run(get);
  CHECK(y == std::vector<float>{13, 26});
  second.set_output(get, "total", y.data(), {2});
  second.run(get);
  CHECK(y == std::vector<float>{10, 20});
  CHECK(second.stats().state_bytes == 16);

  float seen[2];
  first.read_variable("total", seen, 8);
  CHECK(seen[1] == 26);
  const float written[2] = {-1, -2};
  first.write_variable("total", written, 8);
  first.run(get);
  first.read_variable("calls", seen, 8);
  CHECK(seen[0] == 3);
  first.reset_state();
  first.run(get);
  first.set_output(get, "total", y.data(), {2});
  first.run(get);
  CHECK(y == std::vector<float>{10, 20});
  first.read_variable("calls", seen, 8);
  CHECK(seen[0] == 0);
  CHECK(error_of([&] { first.read_variable("none", seen, 8); }, OCLC_E_ARGUMENT) == "the plan has no variable 'none'");
  CHECK(error_of([&] { first.read_variable("total", seen, 4); }, OCLC_E_ARGUMENT) == "variable 'total' has 8 bytes, found 4");
  CHECK(error_of([&] { first.write_variable("total", nullptr, 8); }, OCLC_E_ARGUMENT) ==
        "variable 'total': the host pointer is NULL");
  CHECK(plan.variables().size() == 2);
  CHECK(std::string(plan.variables()[0].shape_text) == "[2]");
}

TEST_CASE("runs may be enqueued faster than they finish") {
  rt::Session session(load(counter_plan_bytes()), rt::Context());
  const float x[2] = {1, 1};
  session.set_input(0, "x", x, {2});
  for (int i = 0; i < 100; ++i) {
    cl_event event = session.enqueue(0);
    clReleaseEvent(event);
  }
  float calls[2] = {};
  session.read_variable("calls", calls, 8);
  CHECK(calls[0] == 100);
}

TEST_CASE("a refused checkpoint leaves the state as it was") {
  const TempDir folder;
  rt::Session session(load(counter_plan_bytes()), rt::Context());
  const float written[2] = {1, 2};
  session.write_variable("calls", written, 8);
  session.save_state(folder / "c");
  const float later[2] = {3, 4};
  session.write_variable("calls", later, 8);
  float seen[2] = {};
  const auto calls = [&] { return session.read_variable("calls", seen, 8), seen[0]; };
  std::filesystem::resize_file(folder / "c", std::filesystem::file_size(folder / "c") - 1);
  CHECK(error_of([&] { session.load_state(folder / "c"); }, OCLC_E_PLAN) ==
        folder / "c: damaged checkpoint: the file has 4231 bytes, its header says 4232");
  CHECK(calls() == 3);
  CHECK(error_of([&] { session.load_state(folder / "none"); }, OCLC_E_IO) ==
        folder / "none: cannot open: No such file or directory");
  session.save_state(folder / "c");
  session.write_variable("calls", written, 8);
  session.load_state(folder / "c");
  CHECK(calls() == 3);
}

TEST_CASE("variables that share a buffer are its slices") {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("parameters", fb::BufferKind::state, 24));
  plan.buffers.back()->has_initial = true;
  for (int i = 0; i < 3; ++i) {
    auto v = std::make_unique<fb::VariableT>();
    v->name = std::string(1, static_cast<char>('a' + i));
    v->offset = std::vector<std::int64_t>{4, 0, 1}[static_cast<std::size_t>(i)];
    if (i != 1) v->shape.push_back(E(2).ptr());
    plan.variables.push_back(std::move(v));
  }
  plan.entries.push_back(entry("predict"));
  const rt::Plan loaded = load(finish(plan, {1, 2, 3, 4, 5, 6}));
  CHECK(loaded.variable_shape(0) == std::vector<std::int64_t>{2});
  CHECK(loaded.variable_shape(1).empty());
  rt::Session session(loaded, rt::Context());
  float pair[2] = {};
  float one = 0;
  session.read_variable("a", pair, 8);
  CHECK(pair[0] == 5);
  CHECK(pair[1] == 6);
  pair[0] = 20, pair[1] = 30;
  session.write_variable("c", pair, 8);
  session.read_variable("b", &one, 4);
  CHECK(one == 1);
  session.read_variable("a", pair, 8);
  CHECK(pair[0] == 5);
  session.read_variable("c", pair, 8);
  CHECK(pair[1] == 30);
  CHECK(error_of([&] { session.read_variable("c", pair, 24); }, OCLC_E_ARGUMENT) == "variable 'c' has 8 bytes, found 24");
}

TEST_CASE("information about a plan") {
  const rt::Plan plan = load(info_plan_bytes());
  CHECK(std::string(plan.info().precision) == "fp32");
  CHECK(plan.info().entry_count == 1);
  CHECK(plan.info().constant_bytes == 0);
  CHECK(std::string(plan.inputs(0)[0].shape_text) == "[N, 2*N + 1, (N + 1)/2, max(N, 3), N%4, 7, N - 1]");
  CHECK(std::string(oclc_plan_dimension_text(plan.get(), 0, OCLC_INPUT, 0, 1)) == "2*N + 1");
  CHECK(oclc_plan_dimension_text(plan.get(), 0, OCLC_INPUT, 0, 7) == nullptr);
  CHECK(oclc_plan_dimension_text(plan.get(), 0, OCLC_INPUT, 1, 0) == nullptr);
  CHECK(plan.symbols().size() == 1);
  CHECK(std::string(plan.symbols()[0].name) == "N");
  CHECK(error_of([&] { plan.entry("train"); }, OCLC_E_ARGUMENT) == "the plan has no entry point 'train'; it has: predict");

  const rt::Plan vector = load(vector_plan_bytes());
  const auto memory = vector.memory(0, {{"N", 1000}});
  CHECK(memory.arena_bytes == 4096);
  CHECK(memory.live_bytes == 4000);
  CHECK(memory.constant_bytes == 16);
  CHECK(memory.input_bytes == 8000);
  CHECK(memory.output_bytes == 4000);
  CHECK(error_of([&] { vector.memory(0); }) == "dimension 'N' has no value");
  CHECK(error_of([&] { vector.memory(0, {{"M", 1}}); }, OCLC_E_ARGUMENT) == "the plan has no dimension 'M'");
  CHECK(error_of([&] { vector.memory(3, {{"N", 1}}); }, OCLC_E_ARGUMENT) == "the plan has no entry point 3");
  CHECK(vector.entry_info(0).launch_count == 3);
  const char* source = nullptr;
  CHECK(oclc_plan_get_program(vector.get(), 0, nullptr, &source) == OCLC_OK);
  CHECK(std::string(source).find("kernel void scale") != std::string::npos);
  CHECK(oclc_plan_get_program(vector.get(), 1, nullptr, &source) == OCLC_E_ARGUMENT);
}
