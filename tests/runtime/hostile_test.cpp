// Plans with right checksums that say what is not so: each is refused where it says it, or runs within its buffers.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

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

// `depth` loops within each other of `trips` each, the innermost empty or with a launch.
fb::PlanT nested_loops(int depth, std::int64_t trips, bool launches) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.programs.push_back(program("p", "kernel void k(global float* y, long y0) { y[y0] = 1; }"));
  std::vector<std::unique_ptr<fb::StepT>> body;
  if (launches) body.push_back(launch("k", 0, {1}, {1}, writes(0)));
  for (int d = 0; d < depth; ++d) {
    plan.symbols.push_back(symbol("i" + std::to_string(d), 0, 1 << 24, true));
    auto step = loop(trips, d, std::move(body));
    body.clear();
    body.push_back(std::move(step));
  }
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 0, {1}));
  e->steps = std::move(body);
  plan.entries.push_back(std::move(e));
  return plan;
}

// y = x + x as texts, then y = y + y so often.
fb::PlanT doubling_plan(int trips) {
  fb::PlanT plan = new_plan();
  plan.strings = {""};
  plan.symbols.push_back(symbol("i", 0, 1 << 24, true));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 4, fb::DType::string_));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4, fb::DType::string_));
  const auto concat = [](int from, int to) {
    fb::HostT host;
    host.op = "string_concat";
    host.inputs.push_back(operand(reads(from), {1}));
    host.inputs.push_back(operand(reads(from), {1}));
    host.outputs.push_back(operand(writes(to), {1}));
    auto step = std::make_unique<fb::StepT>();
    step->body.Set(std::move(host));
    return step;
  };
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {1}, fb::DType::string_));
  e->outputs.push_back(binding("y", 1, {1}, fb::DType::string_));
  e->steps.push_back(concat(0, 1));
  std::vector<std::unique_ptr<fb::StepT>> body;
  body.push_back(concat(1, 1));
  e->steps.push_back(loop(trips, 0, std::move(body)));
  plan.entries.push_back(std::move(e));
  return plan;
}

std::string text_run_error(rt::Session& session, std::vector<const char*>& y, const std::vector<std::string>& x,
                           oclc_status status) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<const char*> texts;
  for (const std::string& text : x) texts.push_back(text.c_str());
  oclc_session_set_output(session.get(), 0, "y", nullptr);
  session.set_strings(0, "x", texts, {n});
  y.assign(x.size(), nullptr);
  session.set_output(0, "y", y.data(), {n});
  return error_of([&] { session.run(0); }, status);
}

}  // namespace

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

TEST_CASE("P8: a run has a limit of steps of the host, which a context can set") {
  const rt::Plan plan = load(finish(nested_loops(8, 1 << 24, false)));
  const auto begin = std::chrono::steady_clock::now();
  rt::Session session(plan, rt::Context());
  CHECK(
      error_of([&] { session.run(0); }) ==
      "a run would take more than 16777216 steps (launches, trips of loops, what the host does); give inputs that need fewer, "
      "or allow more: max_host_steps of the context");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.max_host_steps = 9;
  const rt::Context context(options);
  rt::Session four(load(finish(nested_loops(1, 4, true))), context);  // a loop, four trips, four launches
  four.run(0);
  rt::Session five(load(finish(nested_loops(1, 5, true))), context);
  CHECK(error_of([&] { five.run(0); }).starts_with("a run would take more than 9 steps"));
}

TEST_CASE("P8: a run is cancelled from another thread, and the next one runs") {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.max_host_steps = std::uint64_t{1} << 40;
  const rt::Context context(options);
  rt::Session session(load(finish(nested_loops(2, 1 << 20, true))), context);
  oclc_session_cancel(session.get());  // nothing runs: nothing happens
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      oclc_session_cancel(session.get());
    }
  });
  CHECK(error_of([&] { session.run(0); }, OCLC_E_CANCELLED) == "the run was cancelled");
  done = true;
  other.join();
  oclc_session_cancel(nullptr);
  rt::Session small(load(finish(nested_loops(2, 3, true))), context);
  small.run(0);
  CHECK(small.stats().launches == 9);
}

TEST_CASE("launches beyond what a queue should hold are all made") {
  rt::Session session(load(finish(nested_loops(1, 40000, true))), rt::Context());
  session.run(0);
  CHECK(session.stats().launches == 40000);
}

TEST_CASE("P9: texts that the host makes have a limit") {
  std::vector<const char*> y;
  rt::Session few(load(finish(doubling_plan(10))), rt::Context());
  CHECK(text_run_error(few, y, {"0123456789abcdef"}, OCLC_E_MEMORY).empty());
  CHECK(std::string(y[0]).size() == 16 << 11);
  rt::Session many(load(finish(doubling_plan(40))), rt::Context());
  CHECK(text_run_error(many, y, {"0123456789abcdef"}, OCLC_E_MEMORY) == "a run makes strings of more than 67108864 bytes");
}

TEST_CASE("P11: a host step's operand has what its buffer's size is now, and none if that is negative") {
  fb::PlanT plan = string_plan();
  plan.symbols[1]->upper = E(5).ptr();
  const E n = E::symbol(0), kept = E::symbol(1);
  plan.buffers.push_back(arena_buffer("w", n * 4 + kept * -1000000, 0, 0, 2));
  plan.buffers.back()->dtype = fb::DType::string_;
  fb::HostT host;
  host.op = "string_normalize";
  host.integers = {1, 2};
  host.texts = {"stop"};
  host.inputs.push_back(operand(reads(0), {n}));
  host.outputs.push_back(operand(writes(4), {std::int64_t{1} << 40}));
  host.outputs.push_back(operand(writes(3), {1}));
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(host));
  plan.entries[0]->steps.push_back(std::move(step));
  rt::Session session(load(finish(plan)), rt::Context());
  std::vector<const char*> y;
  CHECK(text_run_error(session, y, {"a", "b"}, OCLC_E_PLAN) ==
        "plan: invalid plan: operator 'string_normalize' of the host uses 1099511627776 elements from 0 on of buffer 4, which "
        "has 0");
}

TEST_CASE("P3: long texts of dimensions are cut") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->name = std::string(8000, 'N');
  std::vector<std::int64_t>& code = plan.entries[0]->outputs[0]->shape[0]->code;
  while (code.size() + 3 <= 16384) code.insert(code.end(), {1, 0, 3});
  const rt::Plan loaded = load(finish(plan, {1, 2, 3, 4}));
  const std::string text = loaded.outputs(0)[0].shape_text;
  CHECK(text.size() == 4096 + 2);
  CHECK(text.ends_with("NNN...]"));
}

TEST_CASE("R1: memory that cannot be had is an error with its size and what needs it") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->hi = std::int64_t{1} << 40;
  rt::Session session(load(finish(plan, {1, 2, 3, 4})), rt::Context());
  const std::int64_t n = std::int64_t{1} << 28;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  float never_read = 0;
  tensor.rank = 1;
  tensor.shape = &n;
  tensor.host = &never_read;
  tensor.bytes = static_cast<std::uint64_t>(n) * 4;
  session.set_input(0, "a", tensor);
  session.set_input(0, "b", tensor);
  // The process gets half of what the arena takes beside what it has.
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit small = before;
  small.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (std::uint64_t{1} << 29);
  REQUIRE(::setrlimit(RLIMIT_AS, &small) == 0);
  const std::string message = error_of([&] { session.prepare(0); }, OCLC_E_MEMORY);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(message == "the arena takes 1073741824 bytes, which the system refuses: Cannot allocate memory; use a smaller batch");
}

TEST_CASE("a context's limit of memory is kept before anything is allocated, and said by plan and run alike") {
  const rt::Plan plan = load(vector_plan_bytes());
  const oclc_dim n{"N", 1000};
  oclc_memory_info info = plan.memory(0, {n});
  const std::uint64_t needed = info.arena_bytes + info.input_bytes + info.output_bytes + info.constant_bytes + info.state_bytes;
  const auto run = [&](std::uint64_t limit) {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.memory_limit = limit;
    const rt::Context context(options);
    rt::Session session(plan, context);
    const std::vector<float> x(1000, 1);
    std::vector<float> y(1000);
    session.set_input(0, "a", x.data(), {1000});
    session.set_input(0, "b", x.data(), {1000});
    session.set_output(0, "y", y.data(), {1000});
    session.run(0);
    check_vector_result(x, x, y);
  };
  run(needed);
  CHECK(error_of([&] { run(needed - 1); }, OCLC_E_MEMORY) ==
        "entry point 'predict' takes " + std::to_string(needed) + " bytes with these dimensions (arena " +
            std::to_string(info.arena_bytes) + ", inputs and outputs " + std::to_string(info.input_bytes + info.output_bytes) +
            ", state 0, constants " + std::to_string(info.constant_bytes) + "), the context's limit is " +
            std::to_string(needed - 1) + "; use a smaller batch");
  CHECK(error_of([&] { run(8); }, OCLC_E_MEMORY) == "plan: the plan's constants take 16 bytes, the context's limit is 8");
}

TEST_CASE("sizes that no device has are refused by plan and run alike") {
  fb::PlanT made = vector_plan();
  made.symbols[0]->hi = INT64_MAX;
  const rt::Plan plan = load(finish(made, {1, 2, 3, 4}));
  const std::int64_t n = (std::int64_t{1} << 30) + 1;
  const oclc_dim dim{"N", n};
  const std::string said = error_of([&] { plan.memory(0, {dim}); });
  CHECK(said ==
        "buffer 'a' of entry point 'predict' has 1073741825 elements with these dimensions; a plan for any size has at most "
        "1073741824 in one: compile the model for this size with --dim");
  rt::Session session(plan, rt::Context());
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  float never_read = 0;
  tensor.rank = 1;
  tensor.shape = &n;
  tensor.host = &never_read;
  tensor.bytes = static_cast<std::uint64_t>(n) * 4;
  session.set_input(0, "a", tensor);
  session.set_input(0, "b", tensor);
  CHECK(error_of([&] { session.run(0); }) == said);
}
