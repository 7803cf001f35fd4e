// Operators of the domain ai.onnx.preview.training as plans.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/ops/reference/evaluate.h"
#include "tests/errors/import_error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/onnx/test_data.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace training_domain_test {

namespace fs = std::filesystem;

struct TrainingWriter : Writer {
  TrainingWriter() {
    auto* domain = model.add_opset_import();
    domain->set_domain("ai.onnx.preview.training");
    domain->set_version(1);
  }
  NodeProto& training(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    NodeProto& n = node(op, inputs, outputs, "n");
    n.set_domain("ai.onnx.preview.training");
    return n;
  }
  NodeProto& gradient(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                      const std::vector<std::string>& xs, const std::string& y, const std::vector<std::string>& zs = {}) {
    NodeProto& n = training("Gradient", inputs, outputs);
    AttributeProto& list = attribute(n, "xs", AttributeProto::STRINGS);
    for (const auto& x : xs) list.add_strings(x);
    if (!zs.empty()) {
      AttributeProto& fixed = attribute(n, "zs", AttributeProto::STRINGS);
      for (const auto& z : zs) fixed.add_strings(z);
    }
    set_text(n, "y", y);
    return n;
  }
};

HostTensor numbers(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// The results of the device, fused and unfused, which must agree with the reference.
std::vector<HostTensor> run(const std::shared_ptr<Module>& module, const std::vector<HostTensor>& inputs) {
  const std::vector<HostTensor> reference = evaluate(*module->entries.at(0), inputs);
  CompileOptions unfused = default_options();
  unfused.disabled = {"fuse"};
  CHECK(compare_with_reference(*module->entries[0], inputs, unfused).max_rel < 1e-5);
  CHECK(compare_with_reference(*module->entries[0], inputs).max_rel < 1e-5);
  return PlanRunner(module, default_options()).run(inputs);
}

std::vector<double> values(const HostTensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.at(i));
  return out;
}

TEST_CASE("ONNX's examples of optimizers and gradients run as plans") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(OCLC_SOURCE_DIR) / "tests/onnx/training_domain")) {
    CAPTURE(entry.path().filename().string());
    const fs::path set = entry.path() / "test_data_set_0";
    const std::vector<HostTensor> wanted = read_all(set, "output");
    ModelProto model;
    std::ifstream in(entry.path() / "model.onnx", std::ios::binary);
    REQUIRE(model.ParseFromIstream(&in));
    // Its results were computed with an epsilon that the model does not carry.
    if (entry.path().filename() == "test_adam_multiple") set_float(*model.mutable_graph()->mutable_node(0), "epsilon", 0.01f);
    const std::vector<HostTensor> found = run(Writer::import_bytes(model.SerializeAsString()), read_all(set, "input"));
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].type() == wanted[i].type());
      CHECK(difference(found[i], wanted[i]).max_rel < 1e-5);
    }
    ++count;
  }
  CHECK(count == 9);
}

TEST_CASE("a gradient through matrices, constants and a node that stands behind it in the file") {
  TrainingWriter w;
  w.input("x", {2, 3}).floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}).output("dx").output("dw");
  w.gradient({"x", "w"}, {"dx", "dw"}, {"x", "w"}, "y");
  w.node("MatMul", {"x", "w"}, {"p"});
  w.node("Mul", {"p", "p"}, {"y"});
  const auto found = run(w.import(), {numbers({2, 3}, {1, 0, -1, 2, 1, 0})});
  // p = x w = [[-4, -4], [5, 8]]; dp = 2 p; dx = dp w^T; dw = x^T dp
  CHECK(values(found.at(0)) == std::vector<double>{-24, -56, -88, 42, 94, 146});
  CHECK(values(found.at(1)) == std::vector<double>{12, 24, 10, 16, 8, 8});
}

TEST_CASE("gradients are taken at the inputs, and with what zs names held fixed") {
  TrainingWriter w;
  w.input("x", {}).input("at", {}).output("here").output("there").output("partial").output("total");
  w.node("Mul", {"x", "x"}, {"z"});
  w.node("Mul", {"x", "z"}, {"y"});
  w.gradient({"x"}, {"here"}, {"x"}, "y");
  w.gradient({"at"}, {"there"}, {"x"}, "y");
  w.gradient({"x", "z"}, {"partial"}, {"x"}, "y", {"z"});
  w.gradient({"here"}, {"total"}, {"here"}, "y");  // y does not depend on it
  const auto found = run(w.import(), {numbers({}, {3}), numbers({}, {5})});
  CHECK(found.at(0).at(0) == 27);
  CHECK(found.at(1).at(0) == 75);
  CHECK(found.at(2).at(0) == 9);
  CHECK(found.at(3).at(0) == 0);
}

TEST_CASE("a gradient of a gradient") {
  TrainingWriter w;
  w.input("x", {4}).output("second");
  w.node("Tanh", {"x"}, {"y"});
  w.gradient({"x"}, {"first"}, {"x"}, "y");
  w.gradient({"x"}, {"second"}, {"x"}, "first");
  const auto found = run(w.import(), {numbers({4}, {-1, 0, 0.5, 2})});
  for (std::int64_t i = 0; i < 4; ++i) {
    const double t = std::tanh(std::vector<double>{-1, 0, 0.5, 2}.at(static_cast<std::size_t>(i)));
    CHECK(found.at(0).at(i) == doctest::Approx(-2 * t * (1 - t * t)).epsilon(1e-5));
  }
}

TEST_CASE("a training step of Gradient and Momentum descends") {
  TrainingWriter w;
  w.input("w", {2}).input("v", {2}).input("t", {}, TensorProto::INT64);
  w.floats("rate", {}, {0.1f}).output("w_new").output("v_new");
  w.node("Mul", {"w", "w"}, {"y"});
  w.gradient({"w"}, {"g"}, {"w"}, "y");
  NodeProto& n = w.training("Momentum", {"rate", "t", "w", "g", "v"}, {"w_new", "v_new"});
  set_float(n, "alpha", 0.5f);
  set_float(n, "beta", 0.25f);
  set_float(n, "norm_coefficient", 0);
  set_text(n, "mode", "standard");
  HostTensor first(DType::i64, {}), later(DType::i64, {});
  later.set_int(0, 3);
  const std::vector<HostTensor> state{numbers({2}, {1, -2}), numbers({2}, {2, 0})};
  // v = v / 2 + share * 2 w; the first update takes the whole gradient.
  const auto at_first = run(w.import(), {state[0], state[1], first});
  CHECK(values(at_first.at(1)) == std::vector<double>{3, -4});
  CHECK(difference(at_first.at(0), numbers({2}, {0.7, -1.6})).max_rel < 1e-6);
  const auto at_later = run(w.import(), {state[0], state[1], later});
  CHECK(values(at_later.at(1)) == std::vector<double>{1.5, -1});
}

TEST_CASE("what is wrong with an operator of the training domain is said") {
  const auto gradient = [](const std::vector<std::string>& xs, const std::string& y, const std::vector<std::string>& inputs) {
    TrainingWriter w;
    w.input("x", {3}).input("n", {3}, TensorProto::INT64).output("g");
    w.node("Mul", {"x", "x"}, {"y"});
    w.gradient(inputs, {"g"}, xs, y);
    return failure_of(w);
  };
  const std::string head = "node 'n' (ai.onnx.preview.training.Gradient): ";
  const auto says = [](const Failure& f, const std::string& text) {
    CAPTURE(f.text);
    CHECK(f.text.find(text) != f.text.npos);
    CHECK(f.code == ExitCode::bad_model);
  };
  says(gradient({"nowhere"}, "y", {"x"}), head + "wanted names of tensors, found 'nowhere', which nothing defines");
  says(gradient({"x"}, "nowhere", {"x"}), head + "wanted names of tensors, found 'nowhere', which nothing defines");
  says(gradient({"x"}, "y", {"x", "x"}), head + "wanted one input for each of 1 xs and 0 zs, found 2");
  says(gradient({"n"}, "y", {"n"}), head + "wanted xs of floating-point numbers, found i64[3]");
  says(gradient({"x"}, "n", {"x"}), head + "wanted a floating-point y, found i64[3]");
}

TEST_CASE("optimizers count their inputs") {
  TrainingWriter w;
  w.input("r", {}).input("t", {}, TensorProto::INT64).input("x", {3}).input("g", {3}).output("out");
  w.training("Adagrad", {"r", "t", "x", "g"}, {"out", ""});
  const Failure f = failure_of(w);
  CHECK(f.text.find("wanted R, T and 3 inputs for each tensor, found 4 inputs") != f.text.npos);
}

}  // namespace training_domain_test
