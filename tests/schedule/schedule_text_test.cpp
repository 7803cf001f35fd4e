// The text of a schedule, and what parse_schedule() makes of it.
#include <algorithm>

#include "compiler/codegen/launches/launches.h"
#include "compiler/kernels/parse_schedule.h"
#include "tests/schedule/scheduled.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// What a text leaves out of a schedule, from the schedule that it is the text of.
void take_values(Schedule& parsed, const Schedule& from) {
  REQUIRE(parsed.buffers.size() == from.buffers.size());
  for (std::size_t i = 0; i < parsed.buffers.size(); ++i) parsed.buffers[i].constant = from.buffers[i].constant;
}

std::vector<std::string> sources_of(const std::vector<GeneratedLaunch>& launches) {
  std::vector<std::string> all;
  for (const GeneratedLaunch& launch : launches) all.push_back(launch.kernel().head + launch.kernel().source);
  return all;
}

const std::string kAttention =
    "graph g(%q: f32[4, 64, 32], %k: f32[4, 32, 64], %v: f32[4, 64, 32]) {\n  %0 = matmul(%q, %k) {trans_a=0, trans_b=0}\n"
    "  %1 = softmax(%0) {axis=2}\n  %2 = matmul(%1, %v) {trans_a=0, trans_b=0}\n  return y=%2\n}\n";

const std::string kGather =
    "symbol N in [0, 64]\ngraph g(%x: f32[N, 6], %at: i64[5]) {\n  %0 = gather(%x, %at) {axis=0}\n"
    "  %1 = pad(%0) {after=(1, 0), before=(2, 1), mode=\"constant\", value=-inf}\n  %2 = argmax(%1) {axis=1, keepdims=0, "
    "select_last_index=0}\n"
    "  return y=%1, z=%2\n}\n";

// A schedule of one kernel, from its lines on.
std::string with_kernel(const std::string& lines) {
  return "symbol N\nbuffer 0 input \"x\": f32[N]\nbuffer 1 output \"y\": f32[N]\nkernel pointwise k {\n  symbol N\n" + lines;
}

std::string message(const std::string& text) {
  try {
    parse_schedule(text, find_op);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

const std::string kKernel =
    "  axis i < N\n  read x0: f32 buffer 0\n  write y0: f32 buffer 1\n  %0: f32 = x0[i]\n  %1: f32 = exp(%0)\n  y0[i] = "
    "%1\n}\n";
const std::string kEntry = "entry g {\n  input \"x\": f32[N] buffer 0\n  output \"y\": f32[N] buffer 1\n  k\n}\n";

}  // namespace

TEST_CASE("a schedule's text parses back, and all later stages make the same of it") {
  for (const char* target : {"cpu", "cpu-amx", "cpu-256", "gpu", "h200"}) {
    for (const std::string& graph : {kLayer, kConvolutions, kLoop, kAttention}) {
      CAPTURE(target);
      CAPTURE(graph);
      Compiled c = compiled_up_to("kernels", graph, target);
      const std::string text = c.schedule.text();
      Schedule parsed = parse_schedule(text, find_op);
      REQUIRE(parsed.text() == text);
      CHECK(verify(parsed) == "");
      take_values(parsed, c.schedule);
      ScheduleContext context{.target = find_target(target), .error_budget = 5e-6, .rounds_weights = true};
      for (Schedule* one : {&parsed, &c.schedule}) {
        run_schedule_passes(*one, schedule_passes(), context);
        choose_contractions(*one, context.target, nullptr);
      }
      REQUIRE(parsed.text() == c.schedule.text());
      CHECK(sources_of(generate_launches(parsed, context.target, true)) ==
            sources_of(generate_launches(c.schedule, context.target, true)));
      Schedule again = parse_schedule(c.schedule.text(), find_op);
      take_values(again, c.schedule);
      choose_contractions(again, context.target, nullptr);
      CHECK(again.text() == c.schedule.text());
    }
  }
}

TEST_CASE("indices by values, padding, sizes of a range and positions of extremes parse back") {
  const std::string text = compiled_up_to("kernels", kGather, "cpu").schedule.text();
  CHECK(text.find("symbol N in [0, 64]") != std::string::npos);
  CHECK(text.find("else -inf") != std::string::npos);
  CHECK(parse_schedule(text, find_op).text() == text);
}

TEST_CASE("steps of every form parse back") {
  const std::string text = with_kernel(kKernel) +
                           "gemm product of \"a\" {\n  a 0[0] ld 8 stride 0 transposed\n  b 0[4] ld N stride 1\n"
                           "  c 1[0] ld 8 stride 2\n  m N\n  n 8\n  k 8\n  batch 1\n  flops 2*N\n  bytes 3*N\n}\n"
                           "entry \"with blanks\" {\n  input \"x\": f32[N] buffer 0\n  output \"y\": f32[N] buffer 1\n"
                           "  k\n  beside k prefetches k from byte 4096\n  library product\n"
                           "  read [N] <= [8] from 0[3] of \"shape\", \"other\"\n"
                           "  host unique(0[0][N, 4], write 1[N][2]) integers [1, -2] texts [\"a\\\"b\"] of \"u\"\n"
                           "  loop t < N + 1 while t_goes_on in 4 slots t_slot {\n    k\n  }\n"
                           "  loop_kernel {\n    loop t < 3 {\n      k\n    }\n  }\n"
                           "  parallel_loops < N {\n    loop t < N {\n      k\n    }\n  }\n"
                           "  work_group t < 2 {\n    k\n  }\n  attention {\n    k\n    k\n    k\n  }\n"
                           "  ragged {\n    k\n    k\n  }\n  megakernel {\n    k\n  }\n}\n";
  const Schedule parsed = parse_schedule(text, find_op);
  CHECK(parsed.text() == text);
  const std::vector<Step>& steps = parsed.entries[0].steps;
  REQUIRE(steps.size() == 12);
  CHECK(steps[1].is_beside());
  CHECK(steps[1].as<KernelStep>()->prefetch->from_byte == 4096);
  CHECK(parsed.gemms[0].trans_a);
  CHECK(parsed.hosts[0].texts == std::vector<std::string>{"a\"b"});
  CHECK(steps[5].as<LoopStep>()->slots == 4);
  CHECK(steps[5].as<LoopStep>()->condition == "t_goes_on");
}

TEST_CASE("constants are the printed values, zeros where there are none, or random") {
  const auto constant = [](const std::string& value) {
    return parse_schedule("buffer 0 constant \"w\": f32[20] = " + value + "\n", find_op).buffers[0].constant;
  };
  CHECK(constant("f32[4, 5]").at(19) == 0);
  CHECK(constant("f32[4, 5]").shape() == std::vector<std::int64_t>{4, 5});
  CHECK(constant("f32[20] splat 2.5").at(19) == 2.5);
  CHECK(constant("f32[20] random 7").at(0) != constant("f32[20] random 8").at(0));
  CHECK(message("buffer 0 constant \"w\": f32[20] = f32[20] [1, 2]\n") == "line 1: wanted 20 elements, found 2");
}

TEST_CASE("what is wrong with a text is said with its line, what was wanted and what was found") {
  CHECK(message(with_kernel(kKernel) + kEntry) == "");
  const auto kernel = [](const std::string& lines) { return message(with_kernel(lines)); };
  CHECK(message("buffer 0 heap \"x\": f32[4]\n") == "line 1: wanted arena, constant, input, output or state, found 'heap'");
  CHECK(message("buffer 1 arena \"x\": f32[4]\n") == "line 1: wanted buffer 0, found another number");
  CHECK(message("buffer 0 arena \"x\": f32[M]\n") == "line 1: wanted a symbol or axis defined before, found 'M'");
  CHECK(message("tensor 0\n") ==
        "line 1: wanted schedule, symbol, local, state, buffer, kernel, gemm or entry, found 'tensor 0'");
  CHECK(message("kernel product k {\n}\n") == "line 1: wanted an anchor, found 'product'");
  CHECK(kernel("  axis i < N\n  axis i < 2\n}\n") == "line 7: wanted a new axis, found a second i");
  CHECK(kernel("  %0: f32 = x0[0]\n}\n") == "line 6: wanted an operand, found 'x0'");
  CHECK(kernel("  %1: f32 = 0\n}\n") == "line 6: wanted node %0, found '1'");
  CHECK(kernel("  %0: f33 = 0\n}\n") == "line 6: wanted an element type, found 'f33'");
  CHECK(kernel("  %0: f32 = exp(%0)\n}\n") == "line 6: wanted a node defined before, found '%0'");
  CHECK(kernel("  %0: f32 = 1\n  %1: f32 = flop(%0)\n}\n") == "line 7: wanted an operator on scalars, found 'flop'");
  CHECK(kernel("  %0: f32 = 1\n  %1: f32 = %0\n}\n") == "line 7: wanted ' if ' behind a node, found '%0'");
  CHECK(kernel("  %0: f32 = 1\n  %1: f32 = %0 if N > 0 else 1\n}\n") == "line 7: wanted a condition '.. >= 0', found 'N > 0'");
  CHECK(kernel("  %0: f32 = 1\n  %1: f32 = %0 if N >= 0\n}\n") ==
        "line 7: wanted ' else ' behind a condition, found '%0 if N >= 0'");
  CHECK(kernel("  %0: f32 = one\n}\n") == "line 6: wanted a number, found 'one'");
  CHECK(kernel("  %0: f32 = 1\n  stage 0: f32 = sum over i of %0\n}\n") == "line 7: wanted an axis, found 'i'");
  CHECK(kernel("  %0: f32 = 1\n  stage 0: f32 = mean over i of %0\n}\n") ==
        "line 7: wanted what a stage combines by, found 'mean'");
  CHECK(kernel("  terms shared by 4 work-groups\n}\n") ==
        "line 6: wanted the factors of a contraction first, found 'work-groups'");
  CHECK(kernel("  gemm: %0 x %1\n}\n") == "line 6: wanted a node defined before, found '%0'");
  CHECK(message("schedule \"s\"\nbuffer 0 constant \"c\": f32[4] = f32[4294967296, 4294967296]\n") ==
        "line 2: wanted a tensor of at most 268435456 elements, found f32[4294967296, 4294967296]");
  CHECK(kernel("  somehow\n}\n") == "line 6: wanted a line of a kernel, found 'somehow'");
  const std::string all = with_kernel(kKernel);
  const std::string two = all + all.substr(all.find("kernel"));
  CHECK(message(two + "entry g {\n  k #1\n}\n") == "");
  CHECK(message(two + "entry g {\n  k\n}\n") ==
        "line 23: wanted '#' and the number of one of 2 kernels k, found the end of the line");
  CHECK(message(two + "entry g {\n  k #2\n}\n") == "line 23: wanted the number of a kernel k, found 2");
  CHECK(message(all + "entry g {\n  kk\n}\n") == "line 14: wanted a kernel defined before, or a form of steps, found 'kk'");
  CHECK(message(all + "entry g {\n  beside loop t < 2 {\n  }\n}\n") ==
        "line 14: wanted a kernel beside the one before, found 'loop'");
  CHECK(message(all + "entry g {\n  loop t < 2\n}\n") == "line 14: wanted ' {' at the end of the line, found '2'");
  CHECK(message(all + "entry g {\n  library l\n}\n") == "line 14: wanted a gemm defined before, found 'l'");
  CHECK(message(all + "entry g {\n  input \"x\": f32[N] buffer 7\n}\n") == "line 14: wanted a buffer defined before, found 7");
  CHECK(message(all + "entry g {\n  megakernel {\n    k\n") == "line 16: wanted a step, found the end of the text");
}
