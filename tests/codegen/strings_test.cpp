// Strings in plans: kernels move and compare their numbers, the host computes with their texts.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/ops/read_dims.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

HostTensor texts(std::vector<std::int64_t> shape, const std::vector<std::string>& values) {
  return HostTensor::from_texts(values, std::move(shape));
}

TEST_CASE("kernels move, choose and compare strings") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input(texts({2, 3}, {"a", "", "b", "a", "längere Wörter, die nicht in ein Wort passen", "c"}), {"N"});
  Value* y = check.input(texts({2, 3}, {"a", "x", "b", "", "y", "c"}), {"N"});
  check.out("transposed", b.transpose(x, {1, 0}));
  check.out("equal", b.call("equal", {x, y}));
  check.out("equal to one", b.call("equal", {x, b.constant(texts({}, {"a"}))}));
  check.out("not empty", b.call("not", {b.call("equal", {x, b.constant(texts({}, {""}))})}));
  check.out("chosen", b.where(b.call("equal", {x, y}), x, b.constant(texts({3}, {"other", "a", ""}))));
  check.out("one constant for all", b.where(b.call("equal", {x, y}), b.constant(texts({}, {"same"})), y));
  check.out("joined", b.concat({x, y, b.constant(texts({1, 3}, {"p", "q", "p"}))}, 0));
  check.out("picked", b.gather(x, b.ints({2, 0, 2}), 1));
  check.out("padded", b.pad(x, exprs({0, 1}), exprs({1, 0})));
  check.out("constant", b.constant(texts({2}, {"only", "moved"})));
  check.out("itself", x);
  check.check();
}

TEST_CASE("the host computes between launches") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input(texts({4}, {"1.5", "-2", "1e3", " 7 "}), {"N"});
  Value* z = check.input(DType::f32, {4}, -1, 1, {"N"});
  Value* numbers = b.cast(x, DType::f32);
  check.out("numbers", numbers);
  check.out("arithmetic", b.cast(b.mul(b.add(numbers, 1), 2), DType::string));
  check.out("joined", b.call("string_concat", {b.cast(numbers, DType::string), b.constant(texts({}, {" m"}))}));
  check.out("matched", b.call("regex_full_match", {b.cast(b.cast(numbers, DType::i64), DType::string)},
                              {{"pattern", std::vector<std::string>{"-?[0-9]{1,2}"}}}));
  check.out(
      "of what a kernel placed apart",
      b.cast(b.slice_axis(
                 b.concat({b.reshape(numbers, {Expr::symbol("N"), Expr(1)}), b.reshape(z, {Expr::symbol("N"), Expr(1)})}, 1), 1,
                 Expr(0), Expr(1)),
             DType::string));
  check.out("transposed", b.cast(b.transpose(b.mul(b.reshape(numbers, {Expr::symbol("N"), Expr(1)}), b.constant([] {
    HostTensor t(DType::f32, {1, 3});
    for (int i = 0; i < 3; ++i) t.set(i, i);
    return t;
  }())),
                                             {1, 0}),
                                 DType::string));
  check.check();
}

TEST_CASE("strings that values decide the number of") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"stop", "a", "STOP", "b"}, {"stop", "stop", "stop", "stop"}, {"a", "b", "c", "d"}}) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input(texts({4}, words), {"N"});
    const Node* node = b.node(
        "string_normalize", {x},
        {{"case_sensitive", std::int64_t{1}}, {"change", std::int64_t{2}}, {"stopwords", std::vector<std::string>{"stop"}}});
    const Expr kept = b.read_dims(node->output(1), "kept", {node->output(0)->type.shape[0]}).at(0);
    Value* left = b.slice_axis(node->output(0), 0, Expr(0), kept);
    check.out("left", left);
    check.out("equal to each other", b.call("equal", {b.reshape(left, {kept, Expr(1)}), left}));
    check.out("joined", b.call("string_concat", {left, left}));
    nest_read_dims(*check.graph);
    check.check();
  }
}

TEST_CASE("loops carry strings and the host computes in every trip") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input(texts({2}, {"a", "b"}));
  auto body = std::make_unique<Graph>();
  body->name = "body";
  Value* carried = body->add_input("carried", x->type);
  Value* captured = body->add_input("captured", x->type);
  Builder in(*body, "inner");
  Value* next = in.call("string_concat", {carried, captured});
  body->add_output("next", next);
  body->add_output("each", next);
  const Node* loop = b.loop(Expr(3), "i", {x}, {x}, std::move(body));
  check.out("last", loop->output(0));
  check.out("all", loop->output(1));
  check.check();
}

TEST_CASE("plans number their strings by themselves: equal models give equal plans") {
  const auto bytes = [] {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->add_input("x", {DType::string, {Expr(2)}});
    Builder b(*graph, "node");
    graph->add_output("y", b.concat({x, b.constant(texts({2}, {"zebra of this test", "ape of this test"}))}, 0));
    return compile(module_of(std::move(graph)), default_options()).plan;
  };
  const BuiltPlan first = bytes();
  texts({1}, {"another string between"});
  const BuiltPlan second = bytes();
  CHECK(first.metadata == second.metadata);
  REQUIRE(first.owned.size() == second.owned.size());
  for (std::size_t i = 0; i < first.owned.size(); ++i)
    CHECK(std::equal(first.owned[i]->data(), first.owned[i]->data() + first.owned[i]->bytes(), second.owned[i]->data()));
}

}  // namespace
}  // namespace oclc::test
