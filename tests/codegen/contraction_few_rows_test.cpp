// Products of few rows on CPUs whose right operand is given at run time: which templates read it, and the numbers.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

int count_in_sources(const PlanCheck& check, const std::string& target, const std::string& text) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  int kernels = 0;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
    for (std::size_t at = 0; (at = file.source.find(text, at)) != std::string::npos; ++at) ++kernels;
  }
  return kernels;
}

}  // namespace

TEST_CASE("few rows read a right operand of run time once, along its rows") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("whole tiles", b.matmul(check.input({8, 600}), check.input({600, 1024})));
  check.out("one row, ragged columns, a ragged chain", b.matmul(check.input({1, 131}), check.input({131, 5003})));
  check.out("surplus rows, a computed operand and an epilogue",
            b.relu(b.add(b.matmul(b.relu(check.input({7, 450})), check.input({450, 1200})), check.input({1200}))));
  check.out("batches", b.matmul(check.input({3, 5, 257}), check.input({3, 257, 2048})));
  check.out("the left operand transposed", b.matmul(check.input({520, 47}), check.input({520, 1056}), true, false));
  check.out("a 1x1 convolution, whose terms have axes of one tap",
            b.conv(check.input({1, 600, 3, 5}), check.input({1024, 600, 1, 1}), nullptr, {}));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CHECK(count_in_sources(check, target, "template contraction_rows_cpu") == 6);
  }
}

TEST_CASE("few rows read a right operand of run time once, along its columns") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("whole tiles", b.matmul(check.input({8, 1040}), check.input({256, 1040}), false, true));
  check.out("one row, ragged columns", b.matmul(check.input({1, 4112}), check.input({131, 4112}), false, true));
  check.out("many chains, a computed operand and an epilogue",
            b.relu(b.add(b.matmul(b.relu(check.input({33, 9216})), check.input({77, 9216}), false, true), check.input({77}))));
  check.out("batches", b.matmul(check.input({2, 5, 512}), check.input({2, 140, 512}), false, true));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CHECK(count_in_sources(check, target, "template contraction_dots_cpu") == 4);
  }
}

TEST_CASE("more rows, small right operands and constants have other templates") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("many rows", b.matmul(check.input({49, 600}), check.input({600, 1024})));
  check.out("ragged columns of more than one tile", b.matmul(check.input({17, 129}), check.input({129, 4099})));
  check.out("a small operand by rows", b.matmul(check.input({8, 256}), check.input({256, 1024})));
  check.out("a small operand by columns", b.matmul(check.input({8, 256}), check.input({64, 256}), false, true));
  check.out("terms that fill no vector", b.matmul(check.input({8, 1001}), check.input({256, 1001}), false, true));
  check.out("constant", b.matmul(check.input({8, 600}), b.constant(random_tensor(DType::f32, {600, 1024}, 3, -1, 1))));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "gpu"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CHECK(count_in_sources(check, target, "template contraction_rows_cpu") == 0);
    CHECK(count_in_sources(check, target, "template contraction_dots_cpu") == 0);
  }
}
