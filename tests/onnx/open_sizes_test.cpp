// Models whose sizes stay open: one plan for several sizes gives what the model read for each size gives, and refuses sizes
// that an operator cannot take.
#include <doctest/doctest.h>

#include "compiler/ir/typical.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "frontends/onnx/dim_expression.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::open_sizes_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;

// Compiled once, with open sizes.
class OpenPlan {
 public:
  explicit OpenPlan(const Writer& w, const ImportOptions& options = {})
      : writer_(w), runner_(std::shared_ptr<Module>(w.import(options)), default_options()) {}

  // For inputs of these shapes the plan gives what the model read for them gives.
  void check(const std::vector<Sizes>& shapes) {
    ImportOptions fixed;
    std::vector<HostTensor> inputs;
    const auto& declared = writer_.model.graph().input();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto& input = declared[static_cast<int>(i)];
      const bool whole = input.type().tensor_type().elem_type() == TensorProto::INT64;
      fixed.shapes[input.name()] = shapes[i];
      inputs.push_back(random_tensor(whole ? DType::i64 : DType::f32, shapes[i], static_cast<unsigned>(i + 1), whole ? 0 : -1,
                                     whole ? 4 : 1));
    }
    const auto module = writer_.import(fixed);
    const auto wanted = evaluate(*module->entries[0], inputs);
    const auto found = runner_.run(inputs);
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(found[i].shape() == wanted[i].shape());
      CHECK(difference(found[i], wanted[i]).max_rel < 1e-5);
    }
  }

  std::string failure(const std::vector<Sizes>& shapes) {
    std::vector<HostTensor> inputs;
    for (const Sizes& shape : shapes) inputs.emplace_back(DType::f32, shape);
    try {
      runner_.run(inputs);
    } catch (const rt::Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  Writer writer_;
  PlanRunner runner_;
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

std::string refusal(const Writer& w, const ImportOptions& options = {}) {
  try {
    w.import(options);
  } catch (const CompileError& error) {
    return std::to_string(static_cast<int>(error.parts().exit_code)) + " " + error.what();
  }
  return {};
}

// Down by a convolution, up by Resize, and joined with what skips both.
Writer pyramid(const char* join, const char* height = "h", const char* width = "w") {
  Writer w;
  w.input("x", {"n", 2, height, width}).output("y");
  w.floats("k", {2, 2, 3, 3}, std::vector<float>(36, 0.1F)).floats("s", {4}, {1, 1, 2, 2});
  NodeProto& down = w.node("Conv", {"x", "k"}, {"d"}, "down");
  set_list(down, "strides", {2, 2});
  set_list(down, "pads", {1, 1, 1, 1});
  NodeProto& up = w.node("Resize", {"d", "", "s"}, {"u"}, "up");
  set_text(up, "mode", "nearest");
  set_text(up, "coordinate_transformation_mode", "asymmetric");
  set_text(up, "nearest_mode", "floor");
  NodeProto& both = w.node(join, {"u", "x"}, {"y"}, "join");
  if (std::string(join) == "Concat") set_int(both, "axis", 1);
  return w;
}

TEST_CASE("What comes up again joins what skipped it, for sizes that fit") {
  for (const char* join : {"Add", "Concat"}) {
    OpenPlan plan(pyramid(join));
    plan.check({{1, 2, 6, 4}});
    plan.check({{2, 2, 10, 8}});
    const std::string why = plan.failure({{1, 2, 5, 4}});
    CHECK(has(why, "node 'join': wanted the dimensions"));
    CHECK(has(why, "to be equal, found 6 and 5"));
    plan.check({{1, 2, 2, 2}});  // the session goes on
  }
}

TEST_CASE("Sizes whose names are expressions fit without a question") {
  const auto module = pyramid("Concat", "2*h", "2*w").import();
  CHECK(module->assumptions.empty());
  OpenPlan plan(pyramid("Concat", "2*h", "2*w"));
  plan.check({{1, 2, 6, 4}});
  plan.check({{2, 2, 8, 10}});
  CHECK(has(plan.failure({{1, 2, 5, 4}}), "found [1, 2, 5, 4]"));
}

TEST_CASE("Which names are expressions") {
  const auto text = [](const char* name) {
    const auto e = onnx::dim_expression(name);
    return e ? e->text : std::string("a name");
  };
  CHECK(text("2*h") == "2*h");
  CHECK(text("past_sequence_length + sequence_length") == "past_sequence_length + sequence_length");
  CHECK(text("(s0//2) + 1") == "(s0 / 2) + 1");
  CHECK(text("floor(s0/2)") == "(s0 / 2)");
  CHECK(text("Max(1, s0 - 1)") == "max(1, s0 - 1)");
  for (const char* name : {"batch", "batch size", "batch-size", "N/A", "?", "", "*", "3", "unk__12", "dim.1", "2h + 1", "a +"})
    CHECK(text(name) == "a name");
}

TEST_CASE("A mask of its own length, behind what a cache holds") {
  for (const char* total : {"total", "past + seq"}) {
    Writer w;
    w.input("ids", {"batch", "seq"}, TensorProto::INT64).input("mask", {"batch", total}, TensorProto::INT64);
    w.input("keys", {"batch", "past", 4}).output("y");
    w.floats("e", {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).ints("most", {1}, {INT64_MAX}).ints("one", {1}, {1});
    w.node("Gather", {"e", "ids"}, {"a"});
    NodeProto& shape = w.node("Shape", {"keys"}, {"p"});
    set_int(shape, "start", 1);
    set_int(shape, "end", 2);
    w.node("Slice", {"mask", "p", "most", "one"}, {"places"});
    w.node("Gather", {"e", "places"}, {"b"});
    w.node("Add", {"a", "b"}, {"y"}, "sum");
    OpenPlan plan(w);
    plan.check({{1, 3}, {1, 8}, {1, 5, 4}});
    plan.check({{2, 1}, {2, 3}, {2, 2, 4}});
  }
}

TEST_CASE("States of a fixed batch, or of one with another name") {
  for (const bool fixed : {true, false}) {
    Writer w;
    w.input("x", {"steps", "batch", 2}).input("h", {1, fixed ? Dim(1) : Dim("rows"), 3}).output("y").output("last");
    w.floats("w", {1, 9, 2}, std::vector<float>(18, 0.1F)).floats("r", {1, 9, 3}, std::vector<float>(27, 0.2F));
    set_int(w.node("GRU", {"x", "w", "r", "", "", "h"}, {"y", "last"}, "gru"), "hidden_size", 3);
    OpenPlan plan(w);
    plan.check({{4, 1, 2}, {1, 1, 3}});
    plan.check({{2, 1, 2}, {1, 1, 3}});
    if (!fixed) plan.check({{2, 5, 2}, {1, 5, 3}});
    const std::string why = plan.failure({{2, 3, 2}, {1, fixed ? 1 : 2, 3}});
    CHECK(has(why, fixed ? "found 3 and 1" : "found 2 and 3"));
  }
}

TEST_CASE("An axis that Squeeze takes away has one element") {
  Writer w;
  w.input("x", {"n", 3, "l"}).output("y").ints("axes", {1}, {2});
  NodeProto& pool = w.node("MaxPool", {"x"}, {"a"}, "pool");
  set_list(pool, "kernel_shape", {4});
  set_list(pool, "strides", {4});
  w.node("Squeeze", {"a", "axes"}, {"y"}, "squeeze");
  OpenPlan plan(w);
  plan.check({{2, 3, 5}});
  plan.check({{1, 3, 7}});
  CHECK(has(plan.failure({{2, 3, 9}}), "node 'squeeze': wanted the dimensions"));
}

TEST_CASE("A slice to an end that is far away is the whole axis") {
  Writer w(15);
  w.input("x", {"n"}).output("y").ints("zero", {1}, {0}).ints("end", {1}, {1000000000}).ints("one", {1}, {1});
  w.node("Slice", {"x", "zero", "end", "zero"}, {"a"});
  w.node("Shape", {"x"}, {"s"});
  w.node("Concat", {"s", "one"}, {"t"});
  set_int(*w.graph().mutable_node(2), "axis", 0);
  w.node("Reshape", {"a", "t"}, {"y"});
  OpenPlan plan(w);
  plan.check({{5}});
  plan.check({{70}});
}

TEST_CASE("Windows whose padding depends on an open size") {
  for (const char* op : {"MaxPool", "AveragePool", "Conv"}) {
    for (const char* way : {"SAME_UPPER", "SAME_LOWER"}) {
      Writer w;
      w.input("x", {"n", 2, "h", "w"}).output("y");
      const bool conv = std::string(op) == "Conv";
      if (conv) w.floats("k", {2, 2, 3, 3}, std::vector<float>(36, 0.25F));
      NodeProto& node = w.node(op, conv ? std::vector<std::string>{"x", "k"} : std::vector<std::string>{"x"}, {"y"}, "window");
      set_list(node, "kernel_shape", {3, 3});
      set_list(node, "strides", {2, 2});
      set_text(node, "auto_pad", way);
      OpenPlan plan(w);
      plan.check({{1, 2, 6, 7}});
      plan.check({{2, 2, 9, 4}});
    }
  }
}

TEST_CASE("Lengths that a convolution and a Range say each in their way") {
  Writer w;
  w.input("x", {"batch", 1, "seq"}).output("y");
  w.floats("k", {4, 1, 10}, std::vector<float>(40, 0.1F)).ints("zero", {}, {0}).ints("one", {}, {1});
  set_list(w.node("Conv", {"x", "k"}, {"c"}, "conv"), "strides", {5});
  NodeProto& shape = w.node("Shape", {"c"}, {"l"});
  set_int(shape, "start", 2);
  set_int(shape, "end", 3);
  w.node("Squeeze", {"l"}, {"count"});
  w.node("Range", {"zero", "count", "one"}, {"r"});
  set_int(w.node("Cast", {"r"}, {"f"}), "to", TensorProto::FLOAT);
  w.node("Add", {"c", "f"}, {"y"}, "sum");
  OpenPlan plan(w);
  plan.check({{1, 1, 10}});
  plan.check({{2, 1, 43}});
}

TEST_CASE("-1 and names that name nothing are sizes of their own") {
  Writer w;
  w.input("x", {-1, 3}).input("z", {"?", "?"}).output("y").output("v");
  w.node("Relu", {"x"}, {"y"});
  w.node("Relu", {"z"}, {"v"});
  CHECK(w.import()->symbols.size() == 3);
  OpenPlan plan(w);
  plan.check({{2, 3}, {4, 5}});
  plan.check({{7, 3}, {1, 2}});
  ImportOptions fixed;
  fixed.dims["z_d1"] = 6;
  CHECK(w.import(fixed)->entries[0]->inputs()[1]->type.shape[1] == Expr(6));
}

TEST_CASE("A size may be 0 when the plan runs") {
  Writer w;
  w.input("x", {"edges", 3}).input("past", {1, "past", 4}).input("now", {1, 2, 4}).output("sum").output("all").output("rows");
  w.ints("axes", {1}, {0}).floats("k", {3, 5}, std::vector<float>(15, 0.5F));
  set_int(w.node("ReduceSum", {"x", "axes"}, {"sum"}), "keepdims", 0);
  set_int(w.node("Concat", {"past", "now"}, {"all"}), "axis", 1);
  w.node("MatMul", {"x", "k"}, {"rows"});
  OpenPlan plan(w);
  plan.check({{4, 3}, {1, 3, 4}, {1, 2, 4}});
  plan.check({{0, 3}, {1, 0, 4}, {1, 2, 4}});
  plan.check({{1, 3}, {1, 0, 4}, {1, 2, 4}});
}

TEST_CASE("Costs are reckoned at sizes that are usual, or that are said to be") {
  const auto typical_of = [](const std::vector<Dim>& shape, std::size_t axis, const ImportOptions& options = {}) {
    Writer w;
    w.input("x", shape).output("y");
    w.node("Relu", {"x"}, {"y"});
    return typical_extent(w.import(options)->entries[0]->inputs()[0]->type.shape[axis]);
  };
  CHECK(typical_of({"n", 3, "h", "w"}, 0) == kTypicalDim);
  CHECK(typical_of({"n", 3, "h", "w"}, 2) == 224);
  CHECK(typical_of({"n", "l", 16}, 1) == 128);
  CHECK(typical_of({"l", "batch_size", 16}, 1) == kTypicalDim);
  ImportOptions given;
  given.typical["h"] = 640;
  CHECK(typical_of({"n", 3, "h", "w"}, 2, given) == 640);
}

TEST_CASE("What cannot be read with open sizes says how to give them") {
  Writer w;
  w.input("x", {"batch size", "len"}).input("z", {3, 4}).output("y");
  w.node("Einsum", {"x"}, {"y"}, "diagonal");
  set_text(*w.graph().mutable_node(0), "equation", "ii->i");
  const std::string why = refusal(w);
  CHECK(has(why, "4 node 'diagonal' (Einsum)"));
  CHECK(has(why, "give the sizes: --dim 'batch size'=.. --dim len=.."));
  ImportOptions fixed;
  fixed.dims = {{"batch size", 3}, {"len", 3}};
  CHECK(refusal(w, fixed).empty());
}

TEST_CASE("Sizes that are never equal are an error of the model") {
  Writer w;
  w.input("x", {"n", 3}).output("y").floats("c", {4}, {1, 2, 3, 4});
  w.node("Add", {"x", "c"}, {"y"}, "sum");
  CHECK(has(refusal(w), "node 'sum' (Add): wanted shapes that broadcast"));
}

TEST_CASE("Values that are known when compiling decide a branch") {
  Writer w;
  w.input("x", {1, 4}).input("rate", {}, TensorProto::INT64).output("y").ints("fast", {}, {16000});
  w.node("Equal", {"rate", "fast"}, {"is_fast"});
  NodeProto& branch = w.node("If", {"is_fast"}, {"y"}, "choose");
  const auto fill = [&](const char* name, const char* op, const std::vector<std::string>& inputs) {
    AttributeProto& a = attribute(branch, name, AttributeProto::GRAPH);
    a.mutable_g()->set_name(name);
    Writer::fill(*a.mutable_g()->add_node(), op, inputs, {std::string(name) + "_y"}, std::string(name) + " node");
    a.mutable_g()->add_output()->set_name(std::string(name) + "_y");
  };
  fill("then_branch", "Relu", {"x"});
  SUBCASE("that fits in both ways") {
    fill("else_branch", "Neg", {"x"});
    ImportOptions known;
    known.values["rate"] = {"16000"};
    const auto module = w.import(known);
    REQUIRE(module->entries[0]->inputs().size() == 1);
    CHECK(module->entries[0]->nodes().size() == 1);
    known.values["rate"] = {"fast"};
    CHECK(has(refusal(w, known), "2 wanted a number of i64 in the value of input 'rate', found 'fast'"));
    known.values = {{"rat", {"1"}}};
    CHECK(has(refusal(w, known), "wanted an input of the model, found 'rat'; is it 'rate'?"));
  }
  SUBCASE("one of which does not fit: an error only where it is taken") {
    w.ints("shape", {2}, {3, 2});
    fill("else_branch", "Reshape", {"x", "shape"});
    std::vector<std::string> warnings;
    ImportOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    PlanRunner runner(std::shared_ptr<Module>(w.import(options)), default_options());
    REQUIRE(warnings.size() == 1);
    CHECK(has(warnings[0], "the plan refuses to run where the else_branch is taken"));
    const HostTensor x = random_tensor(DType::f32, {1, 4}, 1);
    const auto y = runner.run(std::vector<HostTensor>{x, HostTensor::scalar(DType::i64, 16000)});
    for (std::int64_t i = 0; i < 4; ++i) CHECK(y[0].at(i) == std::max(x.at(i), 0.0));
    CHECK_THROWS_AS(runner.run(std::vector<HostTensor>{x, HostTensor::scalar(DType::i64, 8000)}), rt::Error);
  }
}

TEST_CASE("A range of real numbers up to a size has a length that is known before") {
  for (const float step : {1.0F, 0.5F}) {
    Writer w;
    w.input("x", {"n"}).output("y").floats("zero", {}, {0}).floats("step", {}, {step}).ints("first", {1}, {0});
    w.node("Shape", {"x"}, {"sizes"});
    w.node("Squeeze", {"sizes", "first"}, {"n"});
    set_int(w.node("Cast", {"n"}, {"limit"}), "to", TensorProto::FLOAT);
    w.node("Range", {"zero", "limit", "step"}, {"y"});
    const auto module = w.import();
    const Shape& shape = module->entries[0]->outputs()[0].second->type.shape;
    CHECK((shape[0] == Expr::symbol("n")) == (step == 1));  // half steps are counted when the plan runs
    OpenPlan plan(w);
    plan.check({{5}});
    plan.check({{1}});
  }
}

TEST_CASE("A convolution says how long its data must be") {
  Writer w;
  w.input("x", {"n", 1, "length"}).output("y").floats("k", {1, 1, 3}, {1, 2, 3});
  set_list(w.node("Conv", {"x", "k"}, {"c"}, "down"), "strides", {2});
  w.node("GlobalAveragePool", {"c"}, {"y"});
  OpenPlan plan(w);
  plan.check({{1, 1, 3}});
  plan.check({{2, 1, 8}});
  CHECK(has(plan.failure({{1, 1, 2}}), "node 'down': wanted a dimension length of at least 3, found 2"));
}

TEST_CASE("Branches of different sizes") {
  Writer w;
  w.input("x", {3, 2}).input("flag", {}, TensorProto::BOOL).output("y").ints("zero", {1}, {0}).ints("two", {1}, {2});
  NodeProto& branch = w.node("If", {"flag"}, {"y"}, "choose");
  const auto fill = [&](const char* name, const char* op, const std::vector<std::string>& inputs) {
    AttributeProto& a = attribute(branch, name, AttributeProto::GRAPH);
    Writer::fill(*a.mutable_g()->add_node(), op, inputs, {std::string(name) + "_y"});
    a.mutable_g()->add_output()->set_name(std::string(name) + "_y");
    return a.mutable_g()->mutable_node(0);
  };
  fill("then_branch", "Slice", {"x", "zero", "two", "zero"});
  SUBCASE("known before") { fill("else_branch", "Neg", {"x"}); }
  SUBCASE("that the branch computes") { fill("else_branch", "Compress", {"x", "keep"})->clear_name(); }
  const bool computed = w.model.graph().node(0).attribute(1).g().node(0).op_type() == "Compress";
  if (computed) {
    w.input("keep", {3}, TensorProto::BOOL);
    set_int(*w.graph().mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0), "axis", 0);
  }
  PlanRunner runner(std::shared_ptr<Module>(w.import()), default_options());
  const HostTensor x = random_tensor(DType::f32, {3, 2}, 1);
  const auto run = [&](bool flag, int kept) {
    std::vector<HostTensor> inputs{x, HostTensor::scalar(DType::boolean, flag)};
    if (computed) {
      inputs.emplace_back(DType::boolean, Sizes{3});
      for (int i = 0; i < kept; ++i) inputs[2].set_int(i, 1);
    }
    return runner.run(inputs)[0];
  };
  const HostTensor then = run(true, 1);
  CHECK(then.shape() == Sizes{2, 2});
  for (std::int64_t i = 0; i < 4; ++i) CHECK(then.at(i) == x.at(i));
  const HostTensor otherwise = run(false, 1);
  CHECK(otherwise.shape() == (computed ? Sizes{1, 2} : Sizes{3, 2}));
  for (std::int64_t i = 0; i < otherwise.elements(); ++i) CHECK(otherwise.at(i) == (computed ? x.at(i) : -x.at(i)));
}

}  // namespace oclc::test::open_sizes_test
