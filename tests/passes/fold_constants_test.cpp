#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"
#include "tests/passes/check.h"

using namespace oclc;

namespace {

// The defaults but for one of the budgets.
PassContext budget(std::int64_t PassContext::*which, std::int64_t bytes) {
  PassContext context;
  context.*which = bytes;
  return context;
}

// Whether the pass changes the graph under these budgets.
bool folds(std::string_view text, const PassContext& context) {
  const auto graph = parse_graph(text, find_op);
  return fold_constants(*graph, context);
}

constexpr std::string_view kTwoSums = R"(
    graph g(%x: f32[8]) {
      %a = constant f32[8] splat 1
      %b = constant f32[8] splat 2
      %0 = add(%a, %b)
      %1 = sub(%a, %b)
      %2 = fma(%x, %0, %1)
      return y=%2
    })";

}  // namespace

TEST_CASE("arithmetic on constants is done at compile time") {
  becomes(fold_constants, R"(
    graph g(%x: f32[N, 2]) {
      %variance = constant f32[2] [3.75, 0]
      %epsilon = constant f32[] 0.25
      %gamma = constant f32[2] [4, 1]
      %0 = add(%variance, %epsilon)
      %1 = sqrt(%0)
      %2 = div(%gamma, %1)
      %3 = mul(%x, %2)
      return y=%3
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2]) {
      %0 = constant f32[2] splat 2
      %1 = mul(%x, %0) : f32[N, 2]
      return y=%1
    }
    )");
}

TEST_CASE("a constant part of a chain is folded, the rest stays") {
  becomes(fold_constants, R"(
    graph g(%x: f32[2, 2]) {
      %w = constant f32[2, 2] [1, 2, 3, 4]
      %0 = transpose(%w) {perm=[1, 0]}
      %1 = matmul(%x, %0) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    graph g(%x: f32[2, 2]) {
      %0 = constant f32[2, 2] [1, 3, 2, 4]
      %1 = matmul(%x, %0) {trans_a=0, trans_b=0} : f32[2, 2]
      return y=%1
    }
    )");
}

TEST_CASE("integer constants fold with wrapping of their type") {
  becomes(fold_constants, R"(
    graph g(%x: u8[2]) {
      %a = constant u8[2] [250, 3]
      %b = constant u8[] 10
      %0 = add(%a, %b)
      %1 = max(%x, %0)
      return y=%1
    })",
          R"(
    graph g(%x: u8[2]) {
      %0 = constant u8[2] [4, 13]
      %1 = max(%x, %0) : u8[2]
      return y=%1
    }
    )");
}

TEST_CASE("a constant that is also used elsewhere stays for that use") {
  becomes(fold_constants, R"(
    graph g(%x: f32[2]) {
      %a = constant f32[2] [1, -1]
      %0 = neg(%a)
      %1 = add(%x, %0)
      %2 = mul(%1, %a)
      return y=%2
    })",
          R"(
    graph g(%x: f32[2]) {
      %a = constant f32[2] [1, -1]
      %0 = constant f32[2] [-1, 1]
      %1 = add(%x, %0) : f32[2]
      %2 = mul(%1, %a) : f32[2]
      return y=%2
    }
    )");
}

TEST_CASE("an operand that is no constant keeps the node") {
  stays(fold_constants, R"(
    graph g(%x: f32[2]) {
      %a = constant f32[2] [1, 2]
      %0 = add(%x, %a)
      return y=%0
    })");
}

TEST_CASE("results of symbolic shape stay") {
  stays(fold_constants, R"(
    graph g(%x: f32[N]) {
      %a = constant f32[1] [1]
      %0 = expand(%a) {shape=(N)}
      %1 = exp(%0)
      %2 = add(%x, %1)
      return y=%2
    })");
}

TEST_CASE("slices of constants at symbolic positions stay") {
  stays(fold_constants, R"(
    symbol P in [0, 3]
    graph g(%x: f32[P, 2]) {
      %table = constant f32[4, 2] [1, 2, 3, 4, 5, 6, 7, 8]
      %0 = slice(%table) {starts=(P, 0), sizes=(1, 2), steps=[1, 1]}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("expand of a constant is left to the kernels, reshape to movement simplification") {
  stays(fold_constants, R"(
    graph g(%x: f32[3, 2]) {
      %a = constant f32[1, 2] [1, 2]
      %0 = expand(%a) {shape=(3, 2)}
      %1 = reshape(%a) {shape=(2)}
      return y=%0, z=%1
    })");
}

TEST_CASE("generators without operands are no constants to fold") {
  stays(fold_constants, R"(
    graph g(%x: i64[4]) {
      %0 = iota() {shape=(4), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("results over the budget of one result stay") {
  CHECK(folds(kTwoSums, budget(&PassContext::fold_result_bytes, 32)));
  CHECK_FALSE(folds(kTwoSums, budget(&PassContext::fold_result_bytes, 31)));
}

TEST_CASE("folding stops where the budget of all results ends") {
  const auto graph = parse_graph(kTwoSums, find_op);
  CHECK(fold_constants(*graph, budget(&PassContext::fold_total_bytes, 32)));
  const std::string text = print_graph(*graph);
  CHECK(text.find("add(") == std::string::npos);
  CHECK(text.find("sub(%a, %b)") != std::string::npos);
}

TEST_CASE("large results that are much larger than their operands stay") {
  // An outer sum: 2 x 32 bytes of operands, 256 bytes of results.
  constexpr std::string_view kOuter = R"(
    graph g(%x: f32[8, 8]) {
      %a = constant f32[8, 1] splat 1
      %b = constant f32[1, 8] splat 2
      %0 = add(%a, %b)
      %1 = mul(%x, %0)
      return y=%1
    })";
  CHECK(folds(kOuter, {}));
  CHECK(folds(kOuter, budget(&PassContext::fold_growth_bytes, 256)));
  CHECK_FALSE(folds(kOuter, budget(&PassContext::fold_growth_bytes, 255)));
  // Twice the operands is not much larger.
  CHECK(folds(kTwoSums, budget(&PassContext::fold_growth_bytes, 0)));
}

TEST_CASE("a constant position outside its data is an error that names the node") {
  const auto graph = parse_graph(R"(
    graph g(%x: f32[1]) {
      %table = constant f32[3] [1, 2, 3]
      %at = constant i64[1] [3]
      %0 = gather(%table, %at) {axis=0}  // lookup
      %1 = add(%x, %0)
      return y=%1
    })",
                                 find_op);
  CHECK_THROWS_WITH_AS(fold_constants(*graph, {}), "node 'lookup' (gather): wanted indices from -3 to 2, found 3",
                       CompileError);
}

TEST_CASE("weights of few bits become floats where a product packs them, however large") {
  const PassContext context = budget(&PassContext::fold_growth_bytes, 16);
  CHECK(folds(R"(
    graph g(%x: f32[N, 8]) {
      %q = constant i8[8, 4] splat 3
      %0 = cast(%q) {dtype=f32}
      %s = constant f32[] 0.5
      %1 = mul(%0, %s)
      %2 = matmul(%x, %1) {trans_a=0, trans_b=0}
      return y=%2
    })",
              context));
}

// A loop whose trips multiply what they carry by %w of the outer graph, given as `captured`.
std::string loop_of(std::string_view used) {
  return fmt::format(R"(
    graph g(%x: f32[8, 8]) {{
      %q = constant i8[8, 8] splat 3
      %0 = cast(%q) {{dtype=f32}}
      %1 = loop(%x, %0) {{carried=1, counter="t", trip=(4)}}
      body step(%s: f32[8, 8], %w: f32[8, 8]) {{
        %0 = {}
        return s=%0
      }}
      return y=%1
    }})",
                     used);
}

TEST_CASE("weights of few bits become floats where a product of a loop packs them") {
  CHECK(folds(loop_of("matmul(%s, %w) {trans_a=0, trans_b=0}"), budget(&PassContext::fold_growth_bytes, 16)));
}

TEST_CASE("what a loop adds is widened where it is loaded") {
  CHECK_FALSE(folds(loop_of("add(%s, %w)"), budget(&PassContext::fold_growth_bytes, 16)));
}

TEST_CASE("what else reads numbers of few bits widens them where it loads them") {
  const PassContext context = budget(&PassContext::fold_growth_bytes, 16);
  CHECK_FALSE(folds(R"(
    graph g(%x: f32[8, 4]) {
      %q = constant i8[8, 4] splat 3
      %0 = cast(%q) {dtype=f32}
      %1 = add(%x, %0)
      return y=%1
    })",
                    context));
}
