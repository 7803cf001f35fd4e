#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"
#include "tests/passes/check.h"

using namespace oclc;

namespace {

// An exporter's linear layer and batch norm behind a flattening, with shape arithmetic.
constexpr std::string_view kExported = R"(
    graph g(%x: f32[N, 2, 2]) {
      %n = exprs() {values=(N), shape=[1], dtype=i64}
      %four = constant i64[1] [4]
      %dead = concat(%n, %four) {axis=0}
      %w = constant f32[2, 4] [1, 2, 3, 4, 5, 6, 7, 8]
      %variance = constant f32[2] [3, 0]
      %one = constant f32[] 1
      %0 = reshape(%x) {shape=(N, 4)}
      %1 = transpose(%w) {perm=[1, 0]}
      %2 = matmul(%0, %1) {trans_a=0, trans_b=0}
      %3 = add(%variance, %one)
      %4 = sqrt(%3)
      %5 = div(%one, %4)
      %6 = mul(%2, %5)
      return y=%6
    })";

PassContext context_without(std::vector<std::string> disabled) {
  PassContext context;
  context.disabled = std::move(disabled);
  context.verify_each = true;
  return context;
}

// The graph's text after all passes but the disabled ones.
std::string after_passes(std::string_view text, std::vector<std::string> disabled = {}) {
  const auto graph = parse_graph(text, find_op);
  run_passes(*graph, context_without(std::move(disabled)));
  return print_graph(*graph, {.max_elements = 256});
}

bool all_passes(Graph& graph, const PassContext&) { return run_passes(graph, context_without({})); }

}  // namespace

TEST_CASE("the pipeline brings exported arithmetic to its core") {
  becomes(all_passes, kExported, R"(
    symbol N
    graph g(%x: f32[N, 2, 2]) {
      %0 = reshape(%x) {shape=(N, 4)} : f32[N, 4]
      %w = constant f32[2, 4] [0.5, 1, 1.5, 2, 5, 6, 7, 8]
      %1 = matmul(%0, %w) {trans_a=0, trans_b=1} : f32[N, 2]
      return y=%1
    }
    )");
}

TEST_CASE("passes reach the bodies of loops") {
  becomes(all_passes, R"(
    symbol T
    axis t < T
    graph g(%h: f32[1, 4], %x: f32[T, 4]) {
      %0, %1 = loop(%h, %x) {carried=1, counter="t", trip=(T)} : f32[1, 4], f32[T, 4]
        body step(%h: f32[1, 4], %x: f32[T, 4]) {
          %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
          %1 = reshape(%0) {shape=(4)} : f32[4]
          %2 = reshape(%1) {shape=(1, 4)} : f32[1, 4]
          %3 = neg(%2) : f32[1, 4]
          %4 = add(%h, %3) : f32[1, 4]
          %5 = reshape(%4) {shape=(4)} : f32[4]
          return next=%4, result=%5
        }
      return last=%0, all=%1
    })",
          R"(
    symbol T
    axis t < T
    graph g(%h: f32[1, 4], %x: f32[T, 4]) {
      %0, %1 = loop(%h, %x) {carried=1, counter="t", trip=(T)} : f32[1, 4], f32[T, 4]
        body step(%h: f32[1, 4], %x: f32[T, 4]) {
          %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
          %1 = sub(%h, %0) : f32[1, 4]
          %2 = reshape(%1) {shape=(4)} : f32[4]
          return next=%1, result=%2
        }
      return last=%0, all=%1
    }
    )");
}

TEST_CASE("a graph in simplest form stays") {
  stays(all_passes, R"(
    graph g(%x: f32[N, 4], %b: f32[4]) {
      %0 = softmax(%x) {axis=1}
      %1 = add(%0, %b)
      return y=%1
    })");
}

TEST_CASE("each pass can be switched off by name, and only that pass") {
  const std::string all = after_passes(kExported);
  CHECK(all.find("transpose") == std::string::npos);
  CHECK(all.find("trans_b=1") != std::string::npos);
  CHECK(after_passes(kExported, {"simplify_movement"}).find("trans_b=1") == std::string::npos);
  CHECK(after_passes(kExported, {"fold_constants"}).find("sqrt") != std::string::npos);
  CHECK(after_passes(kExported, {"cse"}) == all);
}

TEST_CASE("a pass that is switched off never runs") {
  for (const PassRow& row : pipeline()) {
    CAPTURE(std::string(row.name));
    const auto graph = parse_graph(kExported, find_op);
    std::set<std::string> ran;
    PassContext context = context_without({std::string(row.name)});
    context.after = [&](std::string_view pass, const Graph&) { ran.emplace(pass); };
    run_passes(*graph, context);
    CHECK(ran.count(std::string(row.name)) == 0);
    CHECK_FALSE(ran.empty());
  }
}

TEST_CASE("every pass has a name of its own and says why it stands where it stands") {
  std::set<std::string_view> names;
  for (const PassRow& row : pipeline()) {
    CHECK(names.insert(row.name).second);
    CHECK(row.reason.size() > 20);
  }
}

TEST_CASE("an unknown pass is a usage error that lists the known ones") {
  check_pass_names({"cse", "fuse"}, {"fuse"});
  try {
    check_pass_names({"cse", "csee"}, {"fuse"});
    FAIL("no error");
  } catch (const CompileError& error) {
    CHECK(std::string(error.what()) ==
          "wanted the name of a pass (canonicalize, cse, dce, expand_gradients, fold_batchnorm, fold_constants, fold_ramps, "
          "fold_shapes, "
          "fuse, join_products, look_up_products, multiply_integers, simplify_concat, simplify_indexing, simplify_movement, "
          "sink_movement, "
          "sink_scalars), found "
          "'csee'; did you mean 'cse'?");
    CHECK(error.parts().exit_code == ExitCode::usage);
  }
}
