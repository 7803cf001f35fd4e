// Launches whose groups share terms ask for weights that a product of one row reads soon, where these are many.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A convolution, pointwise kernels and a product of one row with `results` results.
struct Layers {
  PlanCheck check;
  CompileOptions options = default_options();

  explicit Layers(std::int64_t results) {
    options.target = find_target("h200");
    options.target.has.fp64 = true;
    options.precision = "tf32";
    options.disabled = {"small_gemm"};
    Builder& b = check.b;
    Value* x = b.transpose(check.input({1, 14, 14, 512}), {0, 3, 1, 2});
    Value* y =
        b.conv(x, b.constant(random_tensor(DType::f32, {128, 512, 3, 3}, 3, -0.1, 0.1)), nullptr, {.pads = {1, 1, 1, 1}});
    Value* row = b.reshape(b.transpose(y, {0, 2, 3, 1}), {Expr(1), Expr(196 * 128)});
    check.out("row", b.matmul(row, b.constant(random_tensor(DType::f32, {196 * 128, results}, 9))));
  }

  std::string asked() const {
    const std::string source = PlanRunner(module_of(copy_graph(*check.graph)), options).source();
    const std::size_t at = source.find("oclc_ask_for(later");
    return at == std::string::npos ? "" : source.substr(at, source.find(';', at) - at);
  }
};

}  // namespace

TEST_CASE("groups that share terms ask for weights of a row's product, which is right where there is no such unit") {
  const Layers many(512);
  CHECK(many.asked().starts_with("oclc_ask_for(later, 6291456, ticket, "));
  PlanRunner runner(module_of(copy_graph(*many.check.graph)), many.options);
  const auto wanted = evaluate(*many.check.graph, many.check.inputs, many.check.symbols);
  CHECK(oclc::difference(runner.run(many.check.inputs, many.check.symbols), wanted, 2e-3) == "");
}

TEST_CASE("few weights, or those of single precision, are not asked for") {
  CHECK(Layers(256).asked().empty());
  Layers single(512);
  single.options.precision = "fp32";
  CHECK(single.asked().empty());
}
