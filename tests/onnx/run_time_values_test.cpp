// Values that the model computes decide shapes, branches and trips: the reference and a device agree, for one plan and several
// inputs.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/ir/copy.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::run_time_values_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;

HostTensor tensor(DType dtype, Sizes shape, const std::vector<double>& values) {
  HostTensor t(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_float(dtype))
      t.set(static_cast<std::int64_t>(i), values[i]);
    else
      t.set_int(static_cast<std::int64_t>(i), static_cast<std::int64_t>(values[i]));
  }
  return t;
}

std::vector<double> elements(const HostTensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.at(i));
  return out;
}

// Imported once; every run is checked against the reference.
class Both {
 public:
  explicit Both(const Writer& w, const std::string& disabled = {})
      : module_(w.import()), runner_(module_of(copy_graph(*module_->entries[0])), options(disabled)) {
    REQUIRE(verify(*module_->entries[0]) == "");
  }

  std::vector<HostTensor> operator()(const std::vector<HostTensor>& inputs) {
    const auto wanted = evaluate(*module_->entries[0], inputs);
    auto found = runner_.run(inputs);
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].shape() == wanted[i].shape());
      CHECK(elements(found[i]) == elements(wanted[i]));
    }
    return found;
  }

 private:
  static CompileOptions options(const std::string& disabled) {
    CompileOptions o = default_options();
    if (!disabled.empty()) o.disabled.push_back(disabled);
    return o;
  }
  std::unique_ptr<Module> module_;
  PlanRunner runner_;
};

GraphProto& graph_of(NodeProto& node, const std::string& name) {
  return *attribute(node, name, AttributeProto::GRAPH).mutable_g();
}

NodeProto& add(GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, op, inputs, outputs);
  return node;
}

// y = x * x if the sum of x is positive, else x - 1; `same` is given by both branches.
Writer branches() {
  Writer w;
  w.input("x", {"N"}).output("y").output("same");
  w.floats("zero", {}, {0}).floats("one", {}, {1});
  NodeProto& sum = w.node("ReduceSum", {"x"}, {"sum"}, "sum");
  set_int(sum, "keepdims", 0);
  w.node("Greater", {"sum", "zero"}, {"positive"}, "positive");
  NodeProto& node = w.node("If", {"positive"}, {"y", "same"}, "choose");
  GraphProto& then = graph_of(node, "then_branch");
  add(then, "Mul", {"x", "x"}, {"squares"});
  add(then, "Identity", {"sum"}, {"s1"});
  for (const char* name : {"squares", "s1"}) then.add_output()->set_name(name);
  GraphProto& otherwise = graph_of(node, "else_branch");
  add(otherwise, "Sub", {"x", "one"}, {"less"});
  add(otherwise, "Neg", {"sum"}, {"s2"});
  for (const char* name : {"less", "s2"}) otherwise.add_output()->set_name(name);
  return w;
}

TEST_CASE("one plan takes the branch that its data choose") {
  for (const char* disabled : {"", "fuse", "megakernel"}) {
    Both both(branches(), disabled);
    CHECK(elements(both({tensor(DType::f32, {3}, {1, 2, -1})})[0]) == std::vector<double>{1, 4, 1});
    CHECK(elements(both({tensor(DType::f32, {2}, {-4, 2})})[0]) == std::vector<double>{-5, 1});
    CHECK(elements(both({tensor(DType::f32, {1}, {3})})[1]) == std::vector<double>{3});
  }
}

// Doubles x while its first element is below `limit`: gives the last x, and with `collects` all of them.
Writer doubling(bool collects, bool with_trips) {
  Writer w;
  w.input("x", {2}).input("limit", {});
  if (with_trips) w.ints("trips", {}, {20});
  w.output("y");
  if (collects) w.output("all");
  w.input("go0", {}, TensorProto::BOOL);
  std::vector<std::string> outputs{"y"};
  if (collects) outputs.push_back("all");
  GraphProto& body = graph_of(w.node("Loop", {with_trips ? "trips" : "", "go0", "x"}, outputs, "repeat"), "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("now");
  add(body, "Add", {"now", "now"}, {"next"});
  add(body, "ReduceMin", {"next"}, {"least"});
  set_int(*body.mutable_node(1), "keepdims", 0);
  add(body, "Less", {"least", "limit"}, {"goes_on"});
  add(body, "Identity", {"next"}, {"result"});
  for (const char* name : {"goes_on", "next"}) body.add_output()->set_name(name);
  if (collects) body.add_output()->set_name("result");
  return w;
}

TEST_CASE("a loop ends when the data say so, or never begins") {
  for (const bool collects : {false, true}) {
    for (const char* disabled : {"", "fuse"}) {
      CAPTURE(collects);
      Both both(doubling(collects, true), disabled);
      const auto run = [&](double limit, bool go) {
        return both(
            {tensor(DType::f32, {2}, {1, 3}), tensor(DType::f32, {}, {limit}), tensor(DType::boolean, {}, {go ? 1.0 : 0.0})});
      };
      CHECK(elements(run(30, true)[0]) == std::vector<double>{32, 96});
      CHECK(elements(run(0, true)[0]) == std::vector<double>{2, 6});
      CHECK(elements(run(30, false)[0]) == std::vector<double>{1, 3});
      CHECK(elements(run(1e9, true)[0])[0] == 1 << 20);  // the trip count ends it
      if (collects) {
        CHECK(run(5, true)[1].shape() == Sizes{3, 2});
        CHECK(run(5, false)[1].shape() == Sizes{0, 2});
      }
    }
  }
}

TEST_CASE("a loop without trip count runs until the data end it") {
  Both both(doubling(false, false));
  const auto y = both({tensor(DType::f32, {2}, {1, 3}), tensor(DType::f32, {}, {5000}), tensor(DType::boolean, {}, {1})});
  CHECK(elements(y[0]) == std::vector<double>{8192, 3 * 8192});
  Both collecting(doubling(true, false));
  const auto all =
      collecting({tensor(DType::f32, {2}, {1, 3}), tensor(DType::f32, {}, {5000}), tensor(DType::boolean, {}, {1})})[1];
  CHECK(all.shape() == Sizes{13, 2});
}

TEST_CASE("a trip count that the model computes") {
  Writer w;
  w.input("x", {3}).input("n", {}, TensorProto::INT64).output("y");
  GraphProto& body = graph_of(w.node("Loop", {"n", "", "x"}, {"y"}, "repeat"), "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("now");
  add(body, "Add", {"now", "x"}, {"next"});
  for (const char* name : {"go", "next"}) body.add_output()->set_name(name);
  Both both(w);
  for (const double trips : {0.0, 1.0, 7.0, -2.0}) {
    const auto y = both({tensor(DType::f32, {3}, {1, 2, 3}), tensor(DType::i64, {}, {trips})});
    CHECK(elements(y[0])[2] == 3 * (1 + std::max(trips, 0.0)));
  }
}

TEST_CASE("branches inside of loops read their own condition in each trip") {
  Writer w;
  w.input("x", {4}).output("y");
  w.ints("trips", {}, {100}).floats("one", {}, {1}).floats("ten", {}, {10});
  GraphProto& body = graph_of(w.node("Loop", {"trips", "", "x"}, {"y"}, "repeat"), "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("now");
  set_int(add(body, "ReduceMax", {"now"}, {"most"}), "keepdims", 0);
  add(body, "Less", {"most", "ten"}, {"small"});
  NodeProto& choice = add(body, "If", {"small"}, {"next"});
  GraphProto& then = graph_of(choice, "then_branch");
  add(then, "Add", {"now", "one"}, {"more"});
  then.add_output()->set_name("more");
  GraphProto& otherwise = graph_of(choice, "else_branch");
  add(otherwise, "Sub", {"now", "ten"}, {"fewer"});
  otherwise.add_output()->set_name("fewer");
  for (const char* name : {"go", "next"}) body.add_output()->set_name(name);
  Both both(w);
  both({tensor(DType::f32, {4}, {0, 1, 2, 3})});
  both({tensor(DType::f32, {4}, {-7, 50, 2, 3})});
}

TEST_CASE("NonZero of long and of empty results") {
  Writer w;
  w.input("x", {"N", 3}).output("at");
  w.node("NonZero", {"x"}, {"at"}, "where");
  Both both(w);
  for (const std::int64_t n : {1, 5, 700}) {
    HostTensor x(DType::f32, {n, 3});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, (i * i) % 7 == 2 ? 1 : 0);
    both({x});
    both({HostTensor(DType::f32, {n, 3})});
  }
}

TEST_CASE("Unique with ties, of rows, in order of appearance") {
  Writer w;
  w.input("x", {"N", 2}).output("flat").output("first").output("inverse").output("counts").output("rows").output("unsorted");
  w.node("Unique", {"x"}, {"flat", "first", "inverse", "counts"}, "of elements");
  set_int(w.node("Unique", {"x"}, {"rows"}, "of rows"), "axis", 0);
  set_int(w.node("Unique", {"x"}, {"unsorted"}, "as they come"), "sorted", 0);
  Both both(w);
  const auto y = both({tensor(DType::f32, {4, 2}, {3, 1, 3, 0, 3, 1, 2, 2})});
  CHECK(elements(y[0]) == std::vector<double>{0, 1, 2, 3});
  CHECK(elements(y[1]) == std::vector<double>{3, 1, 6, 0});
  CHECK(elements(y[2]) == std::vector<double>{3, 1, 3, 0, 3, 1, 2, 2});
  CHECK(elements(y[3]) == std::vector<double>{1, 2, 2, 3});
  CHECK(elements(y[4]) == std::vector<double>{2, 2, 3, 0, 3, 1});
  CHECK(elements(y[5]) == std::vector<double>{3, 1, 0, 2});
  both({tensor(DType::f32, {1, 2}, {5, 5})});
}

TEST_CASE("NonMaxSuppression with a limit known only at run time") {
  Writer w;
  w.input("boxes", {2, "N", 4}).input("scores", {2, 3, "N"}).input("most", {1}, TensorProto::INT64).output("chosen");
  w.floats("overlap", {1}, {0.4f}).floats("score", {1}, {0.2f});
  w.node("NonMaxSuppression", {"boxes", "scores", "most", "overlap", "score"}, {"chosen"}, "nms");
  Both both(w);
  for (const double most : {0.0, 2.0, 100.0}) {
    for (const std::int64_t n : {1, 13}) {
      HostTensor boxes(DType::f32, {2, n, 4});
      for (std::int64_t i = 0; i < 2 * n; ++i) {
        const double y = static_cast<double>(i * 5 % 11), x = static_cast<double>(i * 3 % 7);
        for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, k == 0 ? y : k == 1 ? x : k == 2 ? y + 4 : x + 3);
      }
      const HostTensor scores = random_tensor(DType::f32, {2, 3, n}, 5, 0, 1);
      const auto chosen = both({boxes, scores, tensor(DType::i64, {1}, {most})});
      CHECK((chosen[0].shape()[0] == 0) == (most == 0));
    }
  }
}

}  // namespace oclc::test::run_time_values_test
