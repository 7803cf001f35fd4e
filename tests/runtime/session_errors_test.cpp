#include <doctest/doctest.h>

#include <cstring>

#include "oclc/oclc.hpp"
#include "tests/runtime/driver_standin.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// y[i] = w[i] + v[i], where the kernel finds v in the memory object of w.
fb::PlanT shared_constants_plan(std::int64_t offset_of_v) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(constant("w", 0, 16));
  plan.buffers.push_back(constant("v", offset_of_v, 16));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 16));
  plan.programs.push_back(program("add", R"(
kernel void add(global const float* w, long w0, long v0, global float* y, long y0) {
  size_t i = get_global_id(0);
  y[y0 + i] = w[w0 + i] + w[v0 + i];
})"));
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 2, {4}));
  auto v = reads(1);
  v->shared = true;
  e->steps.push_back(launch("add", 0, {4}, {1}, reads(0), std::move(v), writes(2)));
  plan.entries.push_back(std::move(e));
  return plan;
}

}  // namespace

TEST_CASE("constants in one memory object are passed as one, and those that are not are refused") {
  const rt::Context context;
  std::vector<float> y(4);
  rt::Session session(load(finish(shared_constants_plan(0), {1, 2, 3, 4})), context);
  session.set_output<float>(0, "y", y.data(), {4});
  session.run(0);
  CHECK(y == std::vector<float>{2, 4, 6, 8});
  const cl_ulong most = 128;
  driver.says[CL_DEVICE_MAX_MEM_ALLOC_SIZE] = std::string(reinterpret_cast<const char*>(&most), sizeof most);
  const rt::Context small;
  driver.says.clear();
  rt::Session apart(load(finish(shared_constants_plan(128), std::vector<float>(36, 1.0f))), small);
  apart.set_output<float>(0, "y", y.data(), {4});
  CHECK(error_of([&] { apart.run(0); }, OCLC_E_UNSUPPORTED) ==
        "kernel 'add' (nodes add_node) wants all constants in one memory object, device '" + std::string(small.device().name) +
            "' allows at most 128 bytes in one; compile the model with --disable=merge_arguments");
}

TEST_CASE("an empty constant may be the first of those in one memory object, or a later one") {
  for (const std::size_t empty : {0, 1}) {
    CAPTURE(empty);
    fb::PlanT plan = shared_constants_plan(0);
    plan.buffers[empty] = constant("empty", 0, 0);
    auto& source = plan.programs[0]->source;
    const std::string used = empty == 0 ? "w[v0 + i]" : "w[w0 + i]", sum = "w[w0 + i] + w[v0 + i]";
    source.replace(source.find(sum), sum.size(), used);
    std::vector<float> y(4);
    rt::Session session(load(finish(std::move(plan), {1, 2, 3, 4})), rt::Context());
    session.set_output<float>(0, "y", y.data(), {4});
    session.run(0);
    CHECK(y == std::vector<float>{1, 2, 3, 4});
  }
}

TEST_CASE("case 97: inputs and outputs that do not fit are named and nothing runs") {
  const rt::Plan plan = load(vector_plan_bytes());
  rt::Session session(plan, rt::Context());
  const std::vector<float> data(16);
  std::vector<float> y(16);
  const std::vector<double> doubles(16);
  CHECK(error_of([&] { session.set_input(0, "c", data.data(), {4}); }, OCLC_E_ARGUMENT) ==
        "entry point 'predict' has no input 'c'; it has: a, b");
  CHECK(error_of([&] { session.set_output(0, "a", y.data(), {4}); }, OCLC_E_ARGUMENT) ==
        "entry point 'predict' has no output 'a'; it has: y");
  CHECK(error_of([&] { session.set_input(1, "a", data.data(), {4}); }, OCLC_E_ARGUMENT) == "entry point 1 of 1");
  CHECK(error_of([&] { session.set_input(0, "a", doubles.data(), {4}); }) == "input 'a': wanted float32, found float64");
  CHECK(error_of([&] { session.set_input(0, "a", data.data(), {2, 2}); }) == "input 'a': wanted shape [N], found rank 2");
  CHECK(error_of([&] { session.set_input(0, "a", data.data(), {-4}); }) ==
        "input 'a': its shape [-4] has a negative dimension");
  CHECK(error_of([&] { session.set_input<float>(0, "a", nullptr, {4}); }) ==
        "input 'a': both its host pointer and its cl_mem are NULL");
  CHECK(error_of([&] { session.set_input(0, "a", data.data(), {INT64_MAX}); }) ==
        "input 'a': its shape [9223372036854775807] has too many elements");
  oclc_tensor t = OCLC_INIT(oclc_tensor);
  const std::int64_t four = 4;
  t.rank = 1;
  t.shape = &four;
  t.host = y.data();
  t.bytes = 12;
  CHECK(error_of([&] { session.set_input(0, "a", t); }) == "input 'a': shape [4] needs 16 bytes, found 12");
  t.shape = nullptr;
  CHECK(error_of([&] { session.set_input(0, "a", t); }) == "input 'a': its shape is NULL");
  t.size = 0;
  CHECK(error_of([&] { session.set_input(0, "a", t); }, OCLC_E_ARGUMENT) == "tensor: its size is not set");

  CHECK(error_of([&] { session.run(0); }) ==
        "dimension 'N' has no value: bind the inputs of entry point 'predict' first, or the dimension itself");
  session.set_input(0, "a", data.data(), {4});
  CHECK(error_of([&] { session.run(0); }) == "input 'b' of entry point 'predict' is not bound");
  session.set_input(0, "b", data.data(), {5});
  CHECK(error_of([&] { session.run(0); }) ==
        "dimension 'N' is inconsistent: input 'a' dimension 0 is 4, but input 'b' dimension 0 is 5");
  session.bind_dim("N", 3);
  CHECK(error_of([&] { session.run(0); }) == "dimension 'N' is inconsistent: bound to 3, but input 'a' dimension 0 is 4");
  session.bind_dim("N", -1);
  session.set_input(0, "b", data.data(), {4});
  session.set_output(0, "y", y.data(), {3});
  CHECK(error_of([&] { session.run(0); }) == "output 'y': wanted shape [N] = [4], found [3]");
  t = OCLC_INIT(oclc_tensor);
  t.host = y.data();
  t.bytes = 15;
  session.set_output(0, "y", t);
  CHECK(error_of([&] { session.run(0); }) == "output 'y': shape [4] needs 16 bytes, found 15");
  t.bytes = 16;
  session.set_output(0, "y", t);
  session.run(0);
  CHECK(error_of([&] { session.bind_dim("M", 3); }, OCLC_E_ARGUMENT) == "the plan has no dimension 'M'; it has: N");
  CHECK(error_of([&] { session.bind_dim("N", std::int64_t{1} << 40); }) ==
        "dimension 'N' = 1099511627776 is outside the range 0 to 16777216 that the plan was compiled for");

  // Misaligned host memory is legal: it is copied.
  std::vector<char> raw(4 * 4 + 1);
  std::vector<char> result(4 * 4 + 1);
  const std::vector<float> values = {1, 2, 3, 4};
  std::memcpy(raw.data() + 1, values.data(), 16);
  oclc_tensor odd = OCLC_INIT(oclc_tensor);
  odd.rank = 1;
  odd.shape = &four;
  odd.bytes = 16;
  odd.host = raw.data() + 1;
  session.set_input(0, "a", odd);
  odd.host = result.data() + 1;
  session.set_output(0, "y", odd);
  session.run(0);
  std::memcpy(y.data(), result.data() + 1, 16);
  check_vector_result(values, {0, 0, 0, 0}, {y.begin(), y.begin() + 4});
}

TEST_CASE("case 92: a kernel with more local memory than the device has is named before anything runs") {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.programs.push_back(program("greedy", R"(
kernel void greedy(global float* y, long y0) {
  local float space[1 << 26];
  space[get_global_id(0) * 1000] = y0;
  barrier(CLK_LOCAL_MEM_FENCE);
  y[y0 + get_global_id(0)] = space[(get_global_id(0) + 1) % 2];
})"));
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 0, {1}));
  e->steps.push_back(launch("greedy", 0, {1}, {1}, writes(0)));
  plan.entries.push_back(std::move(e));
  const rt::Context context;
  const std::string text = error_of([&] { rt::Session(load(finish(plan)), context); }, OCLC_E_UNSUPPORTED);
  CHECK(text.find("kernel 'greedy' wants 268435456 bytes of local memory, device '") != std::string::npos);
  CHECK(text.find("; compile the model for it: oclc --device") != std::string::npos);
}
