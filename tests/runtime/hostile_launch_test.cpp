// Plans with right checksums whose launches, outputs and products say what is not so: each is refused where it says it, or
// runs within its buffers.
#include <doctest/doctest.h>

#include "oclc/oclc.hpp"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/hostile_plans.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace hostile_launch_test {

namespace {

// What a vector plan that `change` has changed fails with.
std::string vector_error(const std::function<void(fb::LaunchT& plus, fb::PlanT& plan)>& change,
                         oclc_status status = OCLC_E_PLAN) {
  fb::PlanT plan = vector_plan();
  change(*plan.entries[0]->steps[2]->body.AsLaunch(), plan);
  const auto bytes = finish(plan, {1, 2, 3, 4});
  return error_of(
      [&] {
        rt::Session session(load(bytes), rt::Context());
        const std::vector<float> x(8, 1);
        std::vector<float> y(8);
        session.set_input(0, "a", x.data(), {8});
        session.set_input(0, "b", x.data(), {8});
        session.set_output(0, "y", y.data(), {8});
        session.run(0);
      },
      status);
}

// A product of one element of c, and a and b of 16 elements each.
fb::PlanT gemm_plan(std::int64_t c_elements) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("a", fb::BufferKind::input, 64));
  plan.buffers.push_back(buffer("b", fb::BufferKind::input, 64));
  plan.buffers.push_back(buffer("c", fb::BufferKind::output, c_elements * 4));
  auto e = entry("predict");
  e->inputs.push_back(binding("a", 0, {16}));
  e->inputs.push_back(binding("b", 1, {16}));
  e->outputs.push_back(binding("c", 2, {c_elements}));
  fb::BlasGemmT g;
  g.a = reads(0), g.b = reads(1), g.c = writes(2);
  g.m = E(4).ptr(), g.n = E(4).ptr(), g.k = E(4).ptr();
  g.lda = E(4).ptr(), g.ldb = E(4).ptr(), g.ldc = E(4).ptr();
  g.name = "gemm";
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(g));
  e->steps.push_back(std::move(step));
  plan.entries.push_back(std::move(e));
  return plan;
}

std::string gemm_error(const std::function<void(fb::BlasGemmT& gemm)>& change, std::int64_t c_elements = 16) {
  fb::PlanT plan = gemm_plan(c_elements);
  change(*plan.entries[0]->steps[0]->body.AsBlasGemm());
  return error_of(
      [&] {
        rt::Session session(load(finish(plan)), rt::Context());
        const std::vector<float> x(16, 1);
        std::vector<float> y(static_cast<std::size_t>(c_elements), 7);
        session.set_input(0, "a", x.data(), {16});
        session.set_input(0, "b", x.data(), {16});
        session.set_output(0, "c", y.data(), {c_elements});
        session.run(0);
      },
      OCLC_E_PLAN);
}

}  // namespace

TEST_CASE("launches are recorded once they have run as they are bound") {
  const rt::Context context;
  if (!context.device().command_buffer) return;
  const Setting recorded("OCLC_COMMAND_BUFFER", "1");
  const auto bytes = vector_plan_bytes();
  rt::Session session(load(bytes), context);
  std::vector<float> x(8, 1), y(8);
  for (const std::int64_t n : {8, 4, 8}) {
    session.set_input(0, "a", x.data(), {n});
    session.set_input(0, "b", x.data(), {n});
    session.set_output(0, "y", y.data(), {n});
    for (int round = 0; round < 3; ++round) {
      session.run(0);
      CHECK(session.stats().command_buffer == (round > 0 ? 1 : 0));
    }
  }
}

TEST_CASE("P4: the search for NaN stays within a buffer whose pieces lie beyond what its size is now") {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 1, 1 << 20));
  const E n = E::symbol(0);
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, n * 4));
  plan.buffers.push_back(arena_buffer("small", n * 4, 0, 0, 1));
  plan.buffers.push_back(arena_buffer("large", 1 << 20, 0, 0, 1));
  for (const std::int64_t offset : {0, 128, 1 << 20}) plan.buffers[1]->pieces.push_back(fb::Piece(offset, 0));
  plan.programs.push_back(program("p", R"(
kernel void fill(global float* s, long s0, global float* l, long l0, long n) {
  for (long i = 0; i < n; ++i) s[s0 + i] = 1;
  for (int i = 0; i < (1 << 18); ++i) l[l0 + i] = 1.5f;
}
kernel void copy(global const float* s, long s0, global float* y, long y0) { y[y0 + get_global_id(0)] = s[s0 + get_global_id(0)]; }
)"));
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 0, {n}));
  e->steps.push_back(launch("fill", 0, {1}, {1}, writes(1), writes(2), value(fb::ArgKind::int64, n)));
  e->steps.push_back(launch("copy", 0, {n}, {1}, reads(1), writes(0)));
  plan.entries.push_back(std::move(e));
  rt::Session session(load(finish(plan)), rt::Context());
  oclc_session_enable_nan_check(session.get(), 1);
  session.bind_dim("N", 4);
  std::vector<float> y(4);
  session.set_output(0, "y", y.data(), {4});
  session.run(0);
  CHECK(y == std::vector<float>(4, 1.0f));
}

TEST_CASE("P5: an output whose size has a divisor below 0 is not written") {
  fb::PlanT plan = string_plan();
  plan.symbols[1]->upper = E(5).ptr();
  const E n = E::symbol(0), kept = E::symbol(1);
  const E size = n * 4 + (E(-2000).then(kept + E(-3), ExprOp::floor_div) + E(1000));  // 4 n at most, by positive divisors
  plan.buffers.push_back(buffer("z", fb::BufferKind::output, size, fb::DType::u8));
  plan.entries[0]->outputs.push_back(binding("z", 4, {size}, fb::DType::u8));
  rt::Session session(load(finish(plan)), rt::Context());
  std::vector<std::uint8_t> z(12 + 4096, 0xaa);
  session.set_output(0, "z", z.data(), {12});
  std::vector<const char*> y;
  CHECK(text_run_error(session, y, {"a", "b", "stop"}, OCLC_E_BINDING) ==
        "the size of an output: its value overflows, or it divides by 0 or less, with these dimensions");
  for (std::size_t i = 12; i < z.size(); ++i) REQUIRE(z[i] == 0xaa);
}

TEST_CASE("P5: an output's size that the model computes is compared with what was laid out") {
  // u8 output of 8 * kept bytes, where kept is at most 5: legal for what is found.
  fb::PlanT plan = string_plan();
  plan.symbols[1]->upper = E(5).ptr();
  const E kept = E::symbol(1);
  plan.buffers.push_back(buffer("z", fb::BufferKind::output, kept * 8 + E(-9), fb::DType::u8));
  plan.entries[0]->outputs.push_back(binding("z", 4, {kept * 8 + E(-9)}, fb::DType::u8));
  rt::Session session(load(finish(plan)), rt::Context());
  std::vector<const char*> y;
  std::vector<std::uint8_t> z(31 + 64, 0xaa);
  session.set_output(0, "z", z.data(), {31});
  CHECK(text_run_error(session, y, {"a", "b"}, OCLC_E_BINDING).empty());
  CHECK(text_run_error(session, y, {"a"}, OCLC_E_PLAN) == "plan: invalid plan: output 'z' takes -1 bytes, its buffer has 31");
  for (std::size_t i = 31; i < z.size(); ++i) REQUIRE(z[i] == 0xaa);
}

TEST_CASE("P6: arguments of another kind than the kernel's parameters are refused by name") {
  const std::string kernel = "plan: invalid plan: kernel 'plus' (nodes plus_node) takes ";
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) {
          plus.args.clear();
          for (int i = 0; i < 4; ++i) plus.args.push_back(value(fb::ArgKind::int64, 0x4141414141414141));
          plus.args.push_back(value(fb::ArgKind::int32, 1));
        }) == kernel + "global 'float*' as argument 0, the plan gives 'long'");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) {
          plus.args.erase(plus.args.begin());
          plus.args.insert(plus.args.begin(), value(fb::ArgKind::local, 64));
          plus.args.insert(plus.args.begin() + 1, value(fb::ArgKind::int64, 8));
        }) == kernel + "global 'float*' as argument 0, the plan gives local memory");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args[2] = value(fb::ArgKind::int64, 1); }) ==
        kernel + "private 'int' as argument 4, the plan gives 'long'");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args[2] = value(fb::ArgKind::local, 64); }) ==
        kernel + "private 'int' as argument 4, the plan gives local memory");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT& plan) {
          plan.programs[0]->source = "typedef struct { float x; } wide;\n" + plan.programs[0]->source;
          const auto at = plan.programs[0]->source.find("int addend");
          plan.programs[0]->source.replace(at, 10, "long addend");
          (void)plus;
        }) == kernel + "private 'long' as argument 4, the plan gives 'int'");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args.pop_back(); }) ==
        "plan: invalid plan: kernel 'plus' (nodes plus_node) has 5 arguments, the plan gives 4");
}

TEST_CASE("P7: element types, offsets and global sizes are compared with buffers and kernels") {
  const std::string uses = "plan: invalid plan: kernel 'plus' (nodes plus_node) uses buffer 5 from element ";
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args[1] = writes(5, 1 << 30); }) ==
        uses + "1073741824 on, which has 8");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args[1] = writes(5, -1); }) == uses + "-1 on, which has 8");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.args[1] = writes(5, INT64_MIN); }) ==
        uses + "-9223372036854775808 on, which has 8");
  CHECK(vector_error([](fb::LaunchT&, fb::PlanT& plan) { plan.buffers[4]->dtype = fb::DType::u8; }) ==
        "plan: invalid plan: kernel 'scale' (nodes scale_node) takes 'float*' as argument 4, the plan gives buffer 4 of u8");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.global[0] = E(std::int64_t{1} << 40).ptr(); }) ==
        "plan: invalid plan: kernel 'plus' (nodes plus_node) has global size 1099511627776 and local size 1 in dimension 0");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) { plus.global[0] = E(1 << 24).ptr(); }) ==
        "plan: invalid plan: kernel 'plus' (nodes plus_node) has 16777216 work-items for buffers of 64 bytes");
  CHECK(vector_error([](fb::LaunchT& plus, fb::PlanT&) {
          for (int d = 1; d < 3; ++d) plus.global.push_back(E((std::int64_t{1} << 31) - 1).ptr());
          plus.global[0] = E((std::int64_t{1} << 31) - 1).ptr();
          plus.local = {1, 1, 1};
        }).find("work-items for buffers of 64 bytes") != std::string::npos);
  // Dimensions are read from within their buffer.
  fb::PlanT plan = string_plan();
  plan.entries[0]->steps.back()->body.AsRead()->from = reads(2, 1);
  rt::Session session(load(finish(plan)), rt::Context());
  std::vector<const char*> y;
  CHECK(text_run_error(session, y, {"a"}, OCLC_E_PLAN) ==
        "plan: invalid plan: dimensions are read from element 1 of buffer 2 on, which has 1");
}

TEST_CASE("P8: products are compared with their buffers") {
  CHECK(gemm_error([](fb::BlasGemmT&) {}).empty());
  const std::string takes = "plan: invalid plan: kernel 'gemm' takes from buffer ";
  CHECK(gemm_error([](fb::BlasGemmT& g) { g.m = E(4096).ptr(), g.lda = E(4096).ptr(); }) ==
        takes + "0 of 16 elements 1 matrices of 4096 x 4, rows 4096 and matrices 0 elements apart, from element 0 on");
  CHECK(gemm_error([](fb::BlasGemmT& g) { g.b = reads(1, 1); }) ==
        takes + "1 of 16 elements 1 matrices of 4 x 4, rows 4 and matrices 0 elements apart, from element 1 on");
  CHECK(gemm_error([](fb::BlasGemmT& g) { g.batch = E(std::int64_t{1} << 50).ptr(); }) ==
        takes + "2 of 16 elements 1125899906842624 matrices of 4 x 4, rows 4 and matrices 0 elements apart, from element 0 on");
  // Of nothing: cleared, and not row by row for ever.
  const auto nothing = [](fb::BlasGemmT& g) { g.k = E(0).ptr(), g.lda = E(0).ptr(); };
  CHECK(gemm_error(nothing).empty());
  CHECK(gemm_error([&](fb::BlasGemmT& g) {
          nothing(g), g.m = E(std::int64_t{1} << 50).ptr(), g.n = E(1).ptr(), g.ldc = E(0).ptr();
        }) ==
        takes + "2 of 16 elements 1 matrices of 1125899906842624 x 1, rows 0 and matrices 0 elements apart, from element 0 on");
}

}  // namespace hostile_launch_test
