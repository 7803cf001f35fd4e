// Models in the shapes of bombs: each compiles fast, or ends with one error that names node and limit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <functional>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::hostile_models_test {
namespace {

using test::AttributeProto;
using test::GraphProto;
using test::NodeProto;
using test::TensorProto;
using test::Writer;

// With room for a loaded machine and for builds with sanitizers; what these models took before were minutes, or no end.
constexpr double kSeconds = 20;

struct Compilation {
  std::string error;     // empty: it compiled
  std::string warnings;  // a line each
  std::size_t kernels = 0, most_operands = 0;
};

Compilation compiled(const Writer& w) {
  Compilation result;
  const std::clock_t begin = std::clock();
  try {
    CompileOptions options;
    options.target = find_target("cpu");
    ImportOptions reading;
    reading.warn = [&](const std::string& text) { result.warnings += text + "\n"; };
    const Compiled made = compile(std::shared_ptr<Module>(w.import(reading)), options);
    result.kernels = made.schedule.kernels.size();
    for (const Kernel& kernel : made.schedule.kernels)
      result.most_operands = std::max(result.most_operands, kernel.operands.size());
  } catch (const CompileError& error) {
    result.error = error.what();
  }
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < kSeconds);
  return result;
}

GraphProto& graph_attribute(NodeProto& node, const std::string& name) {
  return *test::attribute(node, name, AttributeProto::GRAPH).mutable_g();
}

void concat(Writer& w, const std::vector<std::string>& inputs) {
  test::set_int(w.node("Concat", inputs, {"y"}, "join"), "axis", 0);
}

// Ifs of the model's data within each other.
void add_ifs(GraphProto& graph, int depth, const std::string& result) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, "If", {"c"}, {result}, fmt::format("if{}", depth));
  for (const char* branch : {"then_branch", "else_branch"}) {
    GraphProto& body = graph_attribute(node, branch);
    const std::string inner = fmt::format("{}{}", branch, depth);
    body.add_output()->set_name(inner);
    if (depth > 1 && std::string(branch) == "then_branch") {
      add_ifs(body, depth - 1, inner);
    } else {
      Writer::fill(*body.add_node(), std::string(branch) == "then_branch" ? "Sin" : "Cos", {"x"}, {inner});
    }
  }
}

Writer ifs(int depth) {
  Writer w;
  w.input("x", {4}).input("c", {}, TensorProto::BOOL).output("y");
  add_ifs(w.graph(), depth, "y");
  return w;
}

}  // namespace

TEST_CASE("M1: a concatenation of 20,000 operands compiles") {
  Writer w;
  w.input("x", {2}).output("y");
  concat(w, std::vector<std::string>(20'000, "x"));
  const Compilation made = compiled(w);
  CHECK(made.error == "");
  CHECK(made.kernels > 300);  // of 64 pieces each
}

TEST_CASE("M2: a concatenation of 3,000 inputs is cut into kernels that devices take") {
  Writer w;
  w.output("y");
  std::vector<std::string> inputs;
  for (int i = 0; i < 3000; ++i) w.input(inputs.emplace_back(fmt::format("x{}", i)), {2});
  concat(w, inputs);
  const Compilation made = compiled(w);
  CHECK(made.error == "");
  CHECK(made.most_operands <= 65);  // 64 pieces and the result: 16 bytes each
}

TEST_CASE("M2: a sum of 3,000 inputs is cut into kernels that devices take") {
  Writer w;
  w.output("y");
  std::vector<std::string> inputs;
  for (int i = 0; i < 3000; ++i) w.input(inputs.emplace_back(fmt::format("x{}", i)), {2});
  w.node("Sum", inputs, {"y"}, "sum");
  const Compilation made = compiled(w);
  CHECK(made.error == "");
  CHECK(made.most_operands <= 130);
}

TEST_CASE("M3: slices of 1,024 parts become the whole in one step") {
  Writer w;
  w.input("x", {1024}).output("y");
  test::set_int(w.node("SplitToSequence", {"x"}, {"s"}, "split"), "axis", 0);
  test::set_int(w.node("ConcatFromSequence", {"s"}, {"y"}, "join"), "axis", 0);
  CHECK(compiled(w).error == "");
}

TEST_CASE("M6: texts are not doubled while compiling") {
  Writer w;
  w.output("t0");
  auto& seed = *w.graph().add_initializer();
  seed.set_name("s");
  seed.set_data_type(TensorProto::STRING);
  seed.add_dims(1);
  seed.add_string_data(std::string(64, 'x'));
  std::string last = "s";
  for (int i = 40; i-- > 0; last = fmt::format("t{}", i)) w.node("StringConcat", {last, last}, {fmt::format("t{}", i)});
  w.model.mutable_opset_import(0)->set_version(20);
  CHECK(compiled(w).error == "");
}

TEST_CASE("M7: sequences and unrolled loops have a limit") {
  Writer w;
  w.input("x", {std::int64_t{1} << 40}).output("y");
  w.node("SplitToSequence", {"x"}, {"s"}, "split");
  w.ints("at", {}, {0}).node("SequenceAt", {"s", "at"}, {"y"}, "first");
  CHECK(compiled(w).error ==
        "node 'split' (SplitToSequence): wanted at most 100000 nodes from sequences and from loops that are unrolled, found "
        "more; "
        "the model needs shorter sequences or fewer trips");
}

TEST_CASE("M8: a product of large weights is left to the device") {
  Writer w;
  const std::vector<float> ones(512 * 512, 0.001F);
  w.input("x", {2, 512}).output("y").floats("a", {512, 512}, ones).floats("b", {512, 512}, ones);
  w.node("MatMul", {"a", "b"}, {"w"}, "weights");
  w.node("MatMul", {"x", "w"}, {"y"}, "product");
  const Compilation made = compiled(w);
  CHECK(made.error == "");
  CHECK(made.kernels >= 2);
}

TEST_CASE("M9: choices of the data within each other have a limit, and compile below it") {
  CHECK(compiled(ifs(7)).warnings == "");
  for (const int depth : {10, 28}) {
    const Compilation made = compiled(ifs(depth));
    CHECK(made.error == "");
    CHECK(made.warnings.find("(If): the plan refuses to run where the then_branch is taken: node") != std::string::npos);
    CHECK(made.warnings.find("(If): wanted at most 8 loops and choices of the model's data within each other, found more; "
                             "give the inputs that the conditions need when compiling, or nest less") != std::string::npos);
  }
}

TEST_CASE("M10: extents that are large primes are no loops of the compiler") {
  Writer w;
  w.input("x", {3, 2147483647, 5}).output("y");
  test::set_int(w.node("Softmax", {"x"}, {"y"}, "rows"), "axis", 1);
  CHECK(compiled(w).error == "");
}

TEST_CASE("M11: tensors of very many dimensions, and shapes of very many numbers, are refused") {
  Writer shape;
  shape.input("x", {4}).input("s", {std::int64_t{1} << 40}, TensorProto::INT64).output("y");
  shape.node("Reshape", {"x", "s"}, {"y"}, "view");
  CHECK(compiled(shape).error ==
        "node 'view' (Reshape): wanted at most 65536 numbers as the new shape, found i64[1099511627776]");
  Writer rank;
  rank.input("x", {1}).output("y").ints("s", {1000}, std::vector<std::int64_t>(1000, 1));
  rank.node("Reshape", {"x", "s"}, {"y"}, "view");
  CHECK(compiled(rank).error == "node 'view' (Reshape): wanted tensors of at most 32 dimensions, found 1000");
}

TEST_CASE("M12: an average over a large plane has no constant of its size") {
  Writer w;
  w.input("x", {1, 1, 5, std::int64_t{1} << 31}).output("y");
  NodeProto& pool = w.node("AveragePool", {"x"}, {"y"}, "pool");
  test::set_list(pool, "kernel_shape", {3, 3});
  test::set_list(pool, "pads", {1, 1, 1, 1});
  CHECK(compiled(w).error == "");
}

}  // namespace oclc::hostile_models_test
