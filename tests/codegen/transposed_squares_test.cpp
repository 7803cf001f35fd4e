// Copies between layouts whose fastest axes differ: in squares of vectors where sizes allow it, and right everywhere.
#include <fmt/format.h>

#include "compiler/codegen/codegen.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

std::string source_of(Value* (*build)(PlanCheck& check), const char* target) {
  PlanCheck check;
  check.out("y", build(check));
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = {"megakernel", "loop_kernel"};
  std::string all;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) all += file.source;
  return all;
}

bool has_squares(Value* (*build)(PlanCheck& check), const char* target) {
  return source_of(build, target).find("oclc_transpose(square);") != std::string::npos;
}

Value* transposed(PlanCheck& check, std::int64_t rows, std::int64_t columns) {
  return check.b.transpose(check.input({3, rows, columns}), {0, 2, 1});
}

}  // namespace

TEST_CASE("squares lie side by side where results go past the caches: their lines are written whole") {
  const auto is_transposed = [](Value* (*build)(PlanCheck & check), const char* target) {
    const std::string source = source_of(build, target);
    return source.find("oclc_transpose(square[s]);") != std::string::npos &&
           source.find("oclc_transpose(square[s]);") < source.find("oclc_stream(v0");
  };
  for (const char* target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(is_transposed([](PlanCheck& c) { return transposed(c, 64, 65536); }, target));
    CHECK_FALSE(is_transposed([](PlanCheck& c) { return transposed(c, 64, 56); }, target));
  }
}

TEST_CASE("a copy whose sizes are whole squares is transposed in vectors") {
  for (const char* target : {"cpu", "cpu-256", "cpu-128"})
    CHECK(has_squares([](PlanCheck& c) { return transposed(c, 64, 56); }, target));
  CHECK_FALSE(has_squares([](PlanCheck& c) { return transposed(c, 64, 49); }, "cpu"));
  CHECK_FALSE(has_squares([](PlanCheck& c) { return transposed(c, 60, 56); }, "cpu"));
  CHECK(has_squares([](PlanCheck& c) { return transposed(c, 64, 52); }, "cpu-128"));
  CHECK_FALSE(has_squares([](PlanCheck& c) { return transposed(c, 64, 52); }, "cpu-256"));
  CHECK_FALSE(has_squares([](PlanCheck& c) { return transposed(c, 64, 56); }, "gpu"));
}

TEST_CASE("taps between channels are read with the channels' lines, on CPUs") {
  const auto build = [](PlanCheck& c) { return c.b.transpose(c.input({16, 32, 9}), {2, 0, 1}); };
  CHECK(source_of(build, "cpu-256").find("_block") != std::string::npos);
  CHECK(source_of(build, "gpu").find("_block") == std::string::npos);
  PlanCheck check;
  check.out("turned", build(check));
  check.check(0, false);
}

TEST_CASE("what is computed on a transposed value is computed on its squares") {
  CHECK(has_squares([](PlanCheck& c) { return c.b.relu(c.b.add(transposed(c, 64, 56), c.input({3, 56, 64}))); }, "cpu-256"));
  // Numbers of 8 bytes have no vectors.
  CHECK_FALSE(has_squares(
      [](PlanCheck& c) {
        return c.b.transpose(c.input(ints_of(DType::i64, {32, 32}, Ints(1024, 3))), {1, 0});
      },
      "cpu-256"));
}

TEST_CASE("transposed copies are right at every size, with what is computed on them") {
  PlanCheck check;
  Builder& b = check.b;
  for (const std::int64_t rows : {16, 32, 48, 50}) {
    for (const std::int64_t columns : {4, 8, 12, 49, 64}) {
      const std::string name = fmt::format("{} x {}: ", rows, columns);
      const auto turned = [&] { return b.transpose(check.input({3, rows, columns}), {0, 2, 1}); };
      check.out(name + "copy", turned());
      check.out(name + "with a row and a column",
                b.mul(b.add(turned(), check.input({rows})), b.sigmoid(check.input({columns, 1}))));
      check.out(name + "with its like", b.sub(turned(), b.tanh(turned())));
      check.out(name + "padded", b.pad(turned(), {0, 1, 16}, {0, 2, 16}, 0.5));
    }
  }
  check.out("images", b.relu(b.transpose(check.input({2, 32, 6, 16}), {0, 2, 3, 1})));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 2e-6, wanted) == "");
    CHECK(check.problem(target, false, 2e-6, wanted) == "");
  }
}

TEST_CASE("taps of neighbouring channels are transposed together, also beside a margin of whole blocks") {
  const auto taps = [](PlanCheck& c) { return c.b.transpose(c.input({16, 32, 9}), {2, 1, 0}); };
  const auto margin = [](PlanCheck& c) {
    return c.b.pad(c.b.transpose(c.input({32, 24, 9}), {2, 1, 0}), {0, 0, 0}, {0, 0, 16}, 0);
  };
  CHECK(has_squares(margin, "cpu-256"));
  CHECK(has_squares([](PlanCheck& c) { return c.b.transpose(c.input({32, 24, 9}), {2, 1, 0}); }, "cpu"));
  PlanCheck check;
  check.out("taps", taps(check));
  check.out("beside a margin", margin(check));
  check.out("a sum", check.b.add(check.b.transpose(check.input({32, 24, 9}), {2, 1, 0}), check.input({9, 24, 32})));
  check.out("no whole squares", check.b.transpose(check.input({32, 5, 9}), {2, 1, 0}));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) CHECK(check.problem(target, true, 1e-7, wanted) == "");
}
