// Nodes of the user's operators in ONNX models and in networks written in C++.
#include "frontends/cpp/network.h"
#include "tests/custom_ops/custom_ops.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::test {
namespace {

const std::string kSwoosh = head(R"(name = "k2.SwooshL"
in = ["x: T[...]"]
out = ["y: T[...]"]
attr = { offset = 4.0, slope = 0.08, shift = 0.035 }
formula = "y = softplus(x - offset) - slope * x - shift")");

ImportOptions with_ops(const std::string& text) {
  ImportOptions options;
  auto ops = std::make_shared<CustomOps>();
  ops->add(parse_ops(text, "op.cl"));
  options.ops = ops;
  return options;
}

// y = SwooshL(conv(x, w)).
Writer swoosh_model(const std::string& op = "SwooshL") {
  Writer w;
  w.input("x", {"N", 2, 4, 4}).output("y", {"N", 3, 4, 4});
  w.floats("w", {3, 2, 1, 1}, {0.5f, -1, 2, 0.25f, 1, -0.5f});
  w.node("Conv", {"x", "w"}, {"c"}, "conv1");
  w.node(op, {"c"}, {"y"}, "act").set_domain("k2");
  auto* opset = w.model.add_opset_import();
  opset->set_domain("k2");
  opset->set_version(1);
  return w;
}

std::string import_error(const Writer& writer, const ImportOptions& options) {
  try {
    writer.import(options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("An operator behind a convolution is computed in the convolution's kernel") {
  std::shared_ptr<Module> module = swoosh_model().import(with_ops(kSwoosh));
  const HostTensor x = random_tensor(DType::f32, {2, 2, 4, 4}, 1);
  const std::vector<HostTensor> wanted = evaluate(*module->entries[0], std::vector<HostTensor>{x});
  PlanRunner runner(module, default_options());
  CHECK(runner.compiled().plan.launches == 1);
  CHECK(difference(runner.run(std::vector<HostTensor>{x}), wanted).max_rel < 1e-6);
}

TEST_CASE("Attributes of the node take the place of the defaults, and must have their types") {
  Writer w = swoosh_model();
  auto* attribute = w.model.mutable_graph()->mutable_node(1)->add_attribute();
  attribute->set_name("offset");
  attribute->set_type(AttributeProto::FLOAT);
  attribute->set_f(0);
  const std::shared_ptr<Module> module = w.import(with_ops(kSwoosh));
  HostTensor x(DType::f32, {1, 2, 4, 4});
  CHECK(evaluate(*module->entries[0], std::vector<HostTensor>{x})[0].at(0) == doctest::Approx(0.6931472 - 0.035));
  attribute->set_type(AttributeProto::INT);
  attribute->clear_f();
  attribute->set_i(1);
  CHECK(import_error(w, with_ops(kSwoosh)) ==
        "node 'act' (k2.SwooshL): wanted attribute 'offset' as a real number, found an integer");
  attribute->set_name("offsett");
  CHECK(import_error(w, with_ops(kSwoosh)).find("found 'offsett'") != std::string::npos);
}

TEST_CASE("An unknown operator of another domain names --op, one of ONNX's does not") {
  CHECK(
      import_error(swoosh_model(), {}) ==
      "wanted supported operators only, found k2.SwooshL (opset 1): 1 node: 'act'; `oclc --list-ops` lists all operators of a "
      "model; `--op FILE` gives what an operator outside of ONNX computes (`oclc new-op` writes such a file)");
  CHECK(import_error(swoosh_model("SwooshR"), with_ops(kSwoosh)).find("k2.SwooshR") != std::string::npos);
  Writer w = swoosh_model();
  w.model.mutable_graph()->mutable_node(1)->clear_domain();
  CHECK(import_error(w, {}).find("--op") == std::string::npos);
}

TEST_CASE("What does not fit is told with the node and the place in the file") {
  const std::string matrix = head(R"(name = "k2.SwooshL"
in = ["x: T[M, N]"]
out = ["y: T[M, N]"]
formula = "y[i, j] = x[i, j]")");
  CHECK(import_error(swoosh_model(), with_ops(matrix)) ==
        "node 'act' (k2.SwooshL): op.cl:3:8: wanted 2 dimensions as 'x', found f32[N, 3, 4, 4]; give the sizes: --dim N=..");
}

TEST_CASE("Networks in C++ call operators of files by name") {
  nn::Network net("net", nn::initial_parameters());
  net.add_ops(parse_ops(kSwoosh, "op.cl"));
  const nn::Tensor x = net.input("x", DType::f32, {net.symbol("N"), 4});
  net.output("y", net.call("k2.SwooshL", {x}, {{"offset", 1.0}}));
  CHECK(error_of([&] { net.call("k2.SwooshL", {x, x}); }) == "op.cl:1:14: wanted 1 input of k2.SwooshL, found 2");
  std::string unknown;
  try {
    net.call("k2.Swoosh", {x});
  } catch (const CompileError& error) {
    unknown = error.what();
  }
  CHECK(unknown == "(call): wanted an operator that was added (k2.SwooshL), found 'k2.Swoosh'; did you mean 'k2.SwooshL'?");
  CHECK(error_of([&] { net.add_ops(parse_ops(kSwoosh, "again.cl")); }) ==
        "again.cl:1:14: wanted one operator of a name, found 'k2.SwooshL' in op.cl:1 as well");
  const std::shared_ptr<Module> module = net.finish();
  CHECK(compare_with_reference(*module->entries[0], std::vector<HostTensor>{random_tensor(DType::f32, {3, 4}, 1)}).max_rel <
        1e-6);
}

}  // namespace oclc::test
