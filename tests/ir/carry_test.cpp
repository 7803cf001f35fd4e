#include "compiler/ir/carry.h"

#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

using namespace oclc;

namespace {

constexpr const char* kCell = R"(module "cell"
graph predict(%x: f32[1, 4], %h: f32[1, 4], %c: f32[1, 4]) {
  %0 = add(%x, %h)
  %1 = tanh(%0)
  %2 = add(%1, %c)
  return y=%2, h_next=%1, c_next=%2
}
)";

Module carried(const std::string& text, const std::vector<Carry>& carries) {
  Module module = parse_module(text, find_op);
  carry_outputs(module, carries);
  return module;
}

std::string refused(const std::string& text, const std::vector<Carry>& carries) {
  try {
    carried(text, carries);
  } catch (const CompileError& error) {
    CHECK(error.parts().exit_code == ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an output that is carried is the state of its input's name, and stays an output unless it is state alone") {
  const std::string wanted = R"(module "cell"
state "h" : f32[1, 4] from "h_next"
state "c" : f32[1, 4] from "c_next"
graph predict(%x: f32[1, 4], %h: f32[1, 4], %c: f32[1, 4]) {
  %0 = add(%x, %h) : f32[1, 4]
  %1 = tanh(%0) : f32[1, 4]
  %2 = add(%1, %c) : f32[1, 4]
  return y=%2, h_next=%1, c=%2, h=%1
}
)";
  const Module module = carried(kCell, {{"h_next", "h"}, {"c_next", "c", false}});
  CHECK(print_module(module) == wanted);
  CHECK(print_module(parse_module(wanted, find_op)) == wanted);
  CHECK(!trains(module));
}

TEST_CASE("a module with state that an entry changes trains, one whose state stays can be refitted") {
  const auto module = [](const std::string& output) {
    return parse_module("module \"m\"\nstate \"w\" : f32[1]\ngraph g(%w: f32[1]) {\n  return " + output + "=%w\n}\n", find_op);
  };
  CHECK(trains(module("w")));
  CHECK(!is_refittable(module("w")));
  CHECK(!trains(module("y")));
  CHECK(is_refittable(module("y")));
  const Module none = parse_module("module \"m\"\n", find_op);
  CHECK(!trains(none));
  CHECK(!is_refittable(none));
}

TEST_CASE("what cannot be carried is refused with both names, what was found and what to do") {
  CHECK(
      refused(kCell, {{"h_nxt", "h"}}) ==
      "wanted an output 'h_nxt' of the model for --carry h_nxt=h, found none of that name; it has: y, h_next, c_next; did you "
      "mean 'h_next'?");
  CHECK(refused(kCell, {{"h_next", "state"}}) ==
        "wanted an input 'state' of the model for --carry h_next=state, found none of that name; it has: x, h, c");
  CHECK(refused(kCell, {{"h_next", "h"}, {"h_next", "c"}}) ==
        "wanted each output once for --carry h_next=c, found 'h_next' before as 'h_next=h'; carry an Identity of it for the "
        "second "
        "input");
  CHECK(refused(kCell, {{"h_next", "h"}, {"y", "h"}}) ==
        "wanted each input once for --carry y=h, found 'h' before as 'h_next=h'");
  const std::string typed =
      "module \"m\"\nsymbol N\nsymbol M\ngraph predict(%x: f32[N, 4], %a: i64[N, 4], %b: f32[M, 4], %c: f32[N, 5], "
      "%h: f32[N, 4]) {\n  %0 = relu(%x)\n  return y=%0\n}\n";
  CHECK(refused(typed, {{"y", "a"}})
            .find("an output and an input of one type and shape for --carry y=a, found output f32[N, 4], input "
                  "i64[N, 4]") != std::string::npos);
  CHECK(refused(typed, {{"y", "b"}}) ==
        "wanted an output and an input of one type and shape for --carry y=b, found output f32[N, 4], input f32[M, 4]; --dim "
        "gives "
        "both the same sizes, if they are meant to be");
  CHECK(refused(typed, {{"y", "c"}}).find("found output f32[N, 4], input f32[N, 5]") != std::string::npos);
  CHECK(refused(typed, {{"y", "h"}}) ==
        "wanted sizes that are known when compiling, as state is laid out once for --carry y=h, found f32[N, 4]; --dim N=SIZE");
  CHECK(
      refused("module \"m\"\ngraph g(%h: f32[2], %x: f32[2]) {\n  %0 = add(%h, %x)\n  return h=%x, y=%0\n}\n", {{"y", "h"}}) ==
      "wanted an input whose name no output has for --carry y=h, found output 'h'; rename that output");
  CHECK(refused("module \"m\"\nstate \"w\" : f32[1]\ngraph g(%h: f32[2], %w: f32[1]) {\n  return y=%h, w=%w\n}\n",
                {{"y", "h"}}) ==
        "wanted a model with one entry point and no training for --carry y=h, found 1 entry points and 1 states; a step of "
        "training carries its parameters by itself");
}
