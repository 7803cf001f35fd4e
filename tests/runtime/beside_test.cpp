// Contexts beside each other: queues of one device that share what plans need.
#include <CL/cl.h>
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/failing_driver.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

rt::Context context_with(const rt::Context& beside, const std::function<void(oclc_context_options&)>& change) {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.beside = beside.get();
  change(options);
  return rt::Context(options);
}

}  // namespace

TEST_CASE("contexts beside each other have one cl_context, a queue each, and one copy of programs and constants") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context first;
  const rt::Context second = rt::Context::beside(first), third = rt::Context::beside(second);
  CHECK(second.cl_context() == first.cl_context());
  CHECK(third.cl_context() == first.cl_context());
  CHECK(second.cl_queue() != first.cl_queue());
  CHECK(third.cl_queue() != second.cl_queue());
  CHECK(std::string(second.device().name) == first.device().name);
  rt::Session a(plan, first);
  const long before = failing.objects;
  rt::Session b(plan, second);
  const long of_second = failing.objects - before;
  rt::Session c(plan, first);
  CHECK(failing.objects - before == 2 * of_second);  // as a second session of one context
  CHECK(b.stats().build_ns == a.stats().build_ns);   // one building and one upload, timed once
  CHECK(b.stats().upload_ns == a.stats().upload_ns);
  const std::vector<float> wanted = {3, 9, 19, 33};
  CHECK(run_vector(a) == wanted);
  CHECK(run_vector(b) == wanted);
}

TEST_CASE("contexts made apart share nothing") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context first, second;
  CHECK(second.cl_context() != first.cl_context());
  const rt::Session a(plan, first);
  const long before = failing.objects;
  const rt::Session b(plan, first);
  const long shared = failing.objects - before;
  const rt::Session c(plan, second);
  CHECK(failing.objects - before > 2 * shared);  // its own program and constants
}

TEST_CASE("threads with a context each, beside each other, compute the right numbers, and the first context may go first") {
  const rt::Plan plan = load(vector_plan_bytes());
  std::optional<rt::Context> first(std::in_place);
  std::vector<rt::Context> contexts;
  for (int i = 0; i < 4; ++i) contexts.push_back(rt::Context::beside(*first));
  rt::Session made_first(plan, *first);
  first.reset();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (const rt::Context& context : contexts)
    threads.emplace_back([&] {
      rt::Session session(plan, context);
      for (int run = 0; run < 100; ++run) wrong += run_vector(session) != std::vector<float>{3, 9, 19, 33};
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("notes and limits are those of each context, not of the one beside it") {
  const rt::Plan plan = load(loop_plan_bytes());
  const rt::Context first;
  const rt::Context second = context_with(first, [](oclc_context_options& o) { o.max_host_steps = 3; });
  for (const rt::Context* context : {&first, &second}) {
    rt::Session session(plan, *context);
    session.bind_dim("T", 10);
    const std::vector<float> x = {0, 0, 0};
    session.set_input(0, "x", x.data(), {3});
    const std::string message = error_of([&] { session.run(0); });
    CHECK((message.find("more than 3 steps") != message.npos) == (context == &second));
    CHECK(message.empty() == (context == &first));
  }
}

TEST_CASE("the caller's own queue on the cl_context of the one beside is taken, that of another is not") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context first, other;
  const auto device = first.device().id;
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(first.cl_context(), device, 0, &code);
  REQUIRE(code == CL_SUCCESS);
  {
    const rt::Context own = context_with(first, [&](oclc_context_options& o) {
      o.cl_context = first.cl_context();
      o.cl_queue = queue;
    });
    CHECK(own.cl_queue() == queue);
    rt::Session a(plan, first), b(plan, own);
    CHECK(b.stats().upload_ns == a.stats().upload_ns);
    CHECK(run_vector(b) == std::vector<float>{3, 9, 19, 33});
  }
  clReleaseCommandQueue(queue);
  CHECK(error_of(
            [&] {
              context_with(first, [&](oclc_context_options& o) {
                o.cl_context = other.cl_context();
                o.cl_queue = other.cl_queue();
              });
            },
            OCLC_E_ARGUMENT) == "beside: cl_context is another one than that context's");
}

TEST_CASE("a device of its own, or other binaries, do not go with a context beside") {
  const rt::Context first;
  CHECK(error_of([&] { context_with(first, [](oclc_context_options& o) { o.device = "cpu"; }); }, OCLC_E_ARGUMENT) ==
        "give either a device or a context beside this one");
  CHECK(error_of([&] { context_with(first, [](oclc_context_options& o) { o.use_binaries = 1; }); }, OCLC_E_ARGUMENT) ==
        "beside: wanted use_binaries and for_binaries as that context has them, whose programs are shared");
}
