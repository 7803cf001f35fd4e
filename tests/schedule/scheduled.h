// Schedules of modules given as text, before and behind the passes of the stage.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/schedule/verify_schedule.h"
#include "compiler/schedule_passes.h"
#include "tests/support/run_plan.h"

namespace oclc::test {

// A layer of 32 rows: its product, bias and softmax are two kernels.
inline const std::string kLayer =
    "graph g(%x: f32[32, 64]) {\n  %w = constant f32[64, 48] random 1\n  %0 = matmul(%x, %w) {trans_a=0, trans_b=0}\n"
    "  %1 = softmax(%0) {axis=1}\n  return y=%1\n}\n";

inline const std::string kConvolutions =
    "symbol N\ngraph g(%x: f32[N, 16, 32, 32]) {\n  %w = constant f32[32, 16, 3, 3] random 1\n"
    "  %v = constant f32[16, 32, 1, 1] random 2\n"
    "  %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n  %1 = relu(%0)\n"
    "  %2 = conv(%1, %v) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}\n  %3 = add(%2, %x)\n"
    "  return y=%3\n}\n";

inline const std::string kLoop = R"(axis t < 5
graph g(%x: f32[5, 4], %h: f32[4], %w: f32[4, 4]) {
  %a = relu(%h)
  %0, %1 = loop(%a, %x, %w) {carried=1, counter="t", trip=(5)} : f32[4], f32[5, 4]
    body step(%h: f32[4], %x: f32[5, 4], %w: f32[4, 4]) {
      %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0} : f32[1, 4]
      %2 = reshape(%1) {shape=(4)} : f32[4]
      %3 = add(%h, %2) : f32[4]
      %4 = tanh(%3) : f32[4]
      return next=%4, result=%3
    }
  %2 = exp(%1)
  return last=%0, all=%2
}
)";

// A loop that carries so many values, each of which needs its neighbour's.
inline std::string wide_loop(int values) {
  std::string operands, types, results, returned, outputs, body;
  for (int i = 0; i < values; ++i) {
    const std::string n = std::to_string(i), next = std::to_string((i + 1) % values), comma = i > 0 ? ", " : "";
    operands += comma + "%h" + n;
    types += comma + "%h" + n + ": f32[" + std::to_string(3 + i) + "]";
    results += comma + "f32[" + std::to_string(3 + i) + "]";
    outputs += comma + "%o" + n;
    body += "      %s" + n + " = slice(%h" + next + ") {sizes=(1), starts=(0), steps=[1]} : f32[1]\n      %a" + n +
            " = add(%h" + n + ", %s" + n + ")\n      %t" + n + " = tanh(%a" + n + ")\n";
    returned += comma + "r" + n + "=%t" + n;
  }
  std::string last;
  for (int i = 0; i < values; ++i) last += (i > 0 ? ", y" : "y") + std::to_string(i) + "=%o" + std::to_string(i);
  return "axis t < 5\ngraph g(" + types + ") {\n  " + outputs + " = loop(" + operands + ") {carried=" + std::to_string(values) +
         ", counter=\"t\", trip=(5)} : " + results + "\n    body step(" + types + ") {\n" + body + "      return " + returned +
         "\n    }\n  return " + last + "\n}\n";
}

// As the stage `stage` leaves it.
inline Compiled compiled_up_to(const std::string& stage, const std::string& graph, const std::string& target,
                               std::vector<std::string> disabled = {}) {
  CompileOptions options;
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  options.stop_after = stage;
  return compile(module_of(parse_graph(graph, find_op)), options);
}

// The steps of the first entry as text, a line each.
inline std::string steps_text(const Schedule& schedule) {
  const std::string text = schedule.text();
  return text.substr(text.find("entry "));
}

}  // namespace oclc::test
