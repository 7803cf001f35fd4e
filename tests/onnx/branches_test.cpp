// Branches that are read while sizes are open: each holds for the sizes that it fits, and for what only a run knows.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::branches_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;

GraphProto& branch_of(NodeProto& node, const char* name) { return *attribute(node, name, AttributeProto::GRAPH).mutable_g(); }

NodeProto& add(GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, op, inputs, outputs, op + " of " + outputs[0]);
  return node;
}

HostTensor numbers(DType dtype, const Sizes& shape, const std::vector<double>& values) {
  HostTensor t(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    is_float(dtype) ? t.set(at, values[i]) : t.set_int(at, static_cast<std::int64_t>(values[i]));
  }
  return t;
}

// The sum of a window of 4 elements at a rate of 16000, else of 2: x holds one window.
Writer one_window(bool second_fits = true) {
  Writer w;
  w.input("x", {"batch", "n"}).input("rate", {}, TensorProto::INT64).output("y").ints("fast", {}, {16000});
  w.ints("one", {1}, {1}).ints("four", {3}, {1, -1, 4}).ints("two", {3}, {1, -1, 2});
  w.floats("w4", {4, 1}, {1, 1, 1, 1}).floats("w2", {2, 1}, {10, 10}).floats("w3", {3, 1}, {1, 1, 1});
  w.node("Equal", {"rate", "fast"}, {"is_fast"});
  NodeProto& choice = w.node("If", {"is_fast"}, {"y"}, "choose");
  const auto fill = [&](const char* name, const char* sizes, const char* weights) {
    GraphProto& g = branch_of(choice, name);
    const std::string n = name;
    add(g, "Reshape", {"x", sizes}, {n + "_windows"});
    add(g, "Squeeze", {n + "_windows", "one"}, {n + "_row"});
    add(g, "MatMul", {n + "_row", weights}, {n + "_y"});
    g.add_output()->set_name(n + "_y");
  };
  fill("then_branch", "four", "w4");
  fill("else_branch", "two", second_fits ? "w2" : "w3");
  return w;
}

std::string failure(PlanRunner& runner, const std::vector<HostTensor>& inputs) {
  try {
    runner.run(inputs);
  } catch (const rt::Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("Each branch asks for sizes of its own, and only where it is taken") {
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  PlanRunner runner(std::shared_ptr<Module>(one_window().import(options)), default_options());
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
    return text.find("are taken for equal where the then_branch is taken, and compared when the plan runs") != text.npos;
  }));
  const HostTensor fast = HostTensor::scalar(DType::i64, 16000), slow = HostTensor::scalar(DType::i64, 8000);
  const HostTensor four = numbers(DType::f32, {1, 4}, {1, 2, 3, 4}), two = numbers(DType::f32, {1, 2}, {5, 6});
  const auto y = runner.run(std::vector<HostTensor>{four, fast});
  CHECK(y[0].shape() == Sizes{1, 1});
  CHECK(y[0].at(0) == 10);
  CHECK(runner.run(std::vector<HostTensor>{two, slow})[0].at(0) == 110);
  // As rows of a batch: what counts is the number of elements.
  CHECK(runner.run(std::vector<HostTensor>{numbers(DType::f32, {2, 2}, {1, 2, 3, 5}), fast})[0].at(0) == 11);
  CHECK(failure(runner, {four, slow}).find("sizes_that_do_not_fit_the_else_branch_") != std::string::npos);
  CHECK(failure(runner, {two, fast}).find("sizes_that_do_not_fit_the_then_branch_") != std::string::npos);
  CHECK(runner.run(std::vector<HostTensor>{four, fast})[0].at(0) == 10);  // the session goes on
}

TEST_CASE("A branch that fits no sizes is refused where it is taken, the other one keeps its own") {
  PlanRunner runner(std::shared_ptr<Module>(one_window(false).import()), default_options());
  const HostTensor fast = HostTensor::scalar(DType::i64, 16000), slow = HostTensor::scalar(DType::i64, 8000);
  const HostTensor four = numbers(DType::f32, {1, 4}, {1, 2, 3, 4}), two = numbers(DType::f32, {1, 2}, {5, 6});
  CHECK(runner.run(std::vector<HostTensor>{four, fast})[0].at(0) == 10);
  CHECK(failure(runner, {two, slow}).find("else_branch_that_does_not_fit_") != std::string::npos);
  CHECK(failure(runner, {two, fast}).find("sizes_that_do_not_fit_the_then_branch_") != std::string::npos);
}

// What torch makes of x.squeeze(1), and a vector of it.
TEST_CASE("A condition on a size that decides the rank is compared when the plan runs") {
  Writer w;
  w.input("x", {"n", "m"}).output("y").ints("one", {1}, {1}).ints("at", {}, {1}).ints("unit", {}, {1});
  w.node("Shape", {"x"}, {"sizes"});
  w.node("Gather", {"sizes", "at"}, {"m"});
  w.node("Equal", {"m", "unit"}, {"is_one"});
  NodeProto& choice = w.node("If", {"is_one"}, {"row"}, "squeeze");
  GraphProto& then = branch_of(choice, "then_branch");
  add(then, "Squeeze", {"x", "one"}, {"squeezed"});
  then.add_output()->set_name("squeezed");
  GraphProto& otherwise = branch_of(choice, "else_branch");
  add(otherwise, "Identity", {"x"}, {"same"});
  otherwise.add_output()->set_name("same");
  w.node("Neg", {"row"}, {"y"});
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  PlanRunner runner(std::shared_ptr<Module>(w.import(options)), default_options());
  CHECK(std::count(warnings.begin(), warnings.end(),
                   "node 'squeeze': m and 1 are taken for equal, and compared when the plan runs") == 1);
  const auto y = runner.run(std::vector<HostTensor>{numbers(DType::f32, {3, 1}, {1, 2, 3})});
  CHECK(y[0].shape() == Sizes{3});
  CHECK(y[0].at(2) == -3);
  CHECK(
      failure(runner, {numbers(DType::f32, {1, 2}, {1, 2})}).find("wanted the dimensions m and 1 to be equal, found 2 and 1") !=
      std::string::npos);
  // A size that is given decides it.
  options.shapes["x"] = {3, 2};
  CHECK(w.import(options)->entries[0]->outputs()[0].second->type.rank() == 2);
}

// Of the boxes whose score is above 0.3 those that non-maximum suppression keeps, if there are any.
Writer kept_boxes() {
  Writer w;
  w.input("boxes", {"n", 4}).input("scores", {"n"}).output("kept");
  w.floats("least", {}, {0.3F}).ints("zero", {}, {0}).ints("first", {1}, {0}).ints("both", {2}, {0, 1}).ints("last", {1}, {1});
  w.ints("most", {1}, {100}).floats("overlap", {1}, {0.5F}).ints("two", {}, {2}).ints("none", {1}, {0});
  w.node("Greater", {"scores", "least"}, {"good"});
  w.node("NonZero", {"good"}, {"places"});
  w.node("Squeeze", {"places", "first"}, {"k"});
  w.node("Gather", {"boxes", "k"}, {"b"});
  w.node("Gather", {"scores", "k"}, {"s"});
  w.node("Size", {"b"}, {"count"});
  w.node("Equal", {"count", "zero"}, {"is_empty"});
  NodeProto& choice = w.node("If", {"is_empty"}, {"kept"}, "any_boxes");
  GraphProto& then = branch_of(choice, "then_branch");
  NodeProto& nothing = add(then, "ConstantOfShape", {"none"}, {"no_boxes"});
  set_ints(*attribute(nothing, "value", AttributeProto::TENSOR).mutable_t(), "", {1}, {0});
  then.add_output()->set_name("no_boxes");
  GraphProto& otherwise = branch_of(choice, "else_branch");
  add(otherwise, "Unsqueeze", {"b", "first"}, {"b3"});
  add(otherwise, "Unsqueeze", {"s", "both"}, {"s3"});
  add(otherwise, "NonMaxSuppression", {"b3", "s3", "most", "overlap"}, {"triples"});
  set_int(add(otherwise, "Gather", {"triples", "two"}, {"chosen"}), "axis", 1);
  otherwise.add_output()->set_name("chosen");
  return w;
}

TEST_CASE("Non-maximum suppression inside of a branch, of boxes that the data choose") {
  for (const char* disabled : {"", "fuse"}) {
    CompileOptions options = default_options();
    if (*disabled) options.disabled.emplace_back(disabled);
    PlanRunner runner(std::shared_ptr<Module>(kept_boxes().import()), options);
    // The second lies on the first, the fourth is not good enough.
    const HostTensor boxes = numbers(DType::f32, {4, 4}, {0, 0, 4, 4, 0, 0, 4, 4.5, 9, 9, 12, 12, 20, 20, 25, 25});
    const auto keep = [&](const std::vector<double>& scores) {
      std::vector<std::int64_t> kept;
      const auto y = runner.run(std::vector<HostTensor>{boxes, numbers(DType::f32, {4}, scores)});
      for (std::int64_t i = 0; i < y[0].elements(); ++i) kept.push_back(y[0].int_at(i));
      return kept;
    };
    CHECK(keep({0.9, 0.8, 0.95, 0.1}) == std::vector<std::int64_t>{2, 0});
    CHECK(keep({0.1, 0.2, 0.3, 0.1}).empty());
    CHECK(keep({0.5, 0.8, 0.1, 0.9}) == std::vector<std::int64_t>{2, 1});
  }
}

}  // namespace oclc::test::branches_test
