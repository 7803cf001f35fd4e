#include "compiler/passes/expand_gradients.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("numbers scattered one by one are picked by their indices, without a product") {
  becomes(expand_gradients, R"(
    graph g(%places: i64[3], %x: f32[3]) {
      %0 = scatter_add(%places, %x) {axis=0, size=(8)}
      return y=%0
    })",
          R"(
    graph g(%places: i64[3], %x: f32[3]) {
      %0 = transpose(%x) {perm=[0]} : f32[3]
      %1 = reshape(%0) {shape=(3, 1)} : f32[3, 1]
      %2 = reshape(%places) {shape=(3, 1)} : i64[3, 1]
      %3 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %4 = add(%2, %3) : i64[3, 1]
      %5 = constant i64[] 0
      %6 = less(%2, %5) : bool[3, 1]
      %7 = where(%6, %4, %2) : i64[3, 1]
      %8 = iota() {axis=1, dtype=i64, shape=(1, 8), start=(0), step=(1)} : i64[1, 8]
      %9 = equal(%7, %8) : bool[3, 8]
      %10 = constant f32[] 0
      %11 = where(%9, %1, %10) : f32[3, 8]
      %12 = reduce_sum(%11) {axes=[0], keepdims=0} : f32[8]
      %13 = reshape(%12) {shape=(8)} : f32[8]
      %14 = transpose(%13) {perm=[0]} : f32[8]
      return y=%14
    }
    )");
}

TEST_CASE("rows are scattered by a product with the matrix of what lies where") {
  becomes(expand_gradients, R"(
    graph g(%rows: i64[N], %x: f32[N, 4]) {
      %0 = scatter_add(%rows, %x) {axis=0, size=(8)}
      return y=%0
    })",
          R"(
    symbol N
    graph g(%rows: i64[N], %x: f32[N, 4]) {
      %0 = transpose(%x) {perm=[0, 1]} : f32[N, 4]
      %1 = reshape(%0) {shape=(N, 4)} : f32[N, 4]
      %2 = reshape(%rows) {shape=(N, 1)} : i64[N, 1]
      %3 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %4 = add(%2, %3) : i64[N, 1]
      %5 = constant i64[] 0
      %6 = less(%2, %5) : bool[N, 1]
      %7 = where(%6, %4, %2) : i64[N, 1]
      %8 = iota() {axis=1, dtype=i64, shape=(1, 8), start=(0), step=(1)} : i64[1, 8]
      %9 = equal(%7, %8) : bool[N, 8]
      %10 = cast(%9) {dtype=f32} : f32[N, 8]
      %11 = matmul(%10, %1) {trans_a=1, trans_b=0} : f32[8, 4]
      %12 = reshape(%11) {shape=(8, 4)} : f32[8, 4]
      %13 = transpose(%12) {perm=[0, 1]} : f32[8, 4]
      return y=%13
    }
    )");
}

TEST_CASE("rows for few of many places: those of one place are added up, and each place reads its own") {
  becomes(expand_gradients, R"(
    graph g(%rows: i64[3], %x: f32[3, 4]) {
      %0 = scatter_add(%rows, %x) {axis=0, size=(8)}
      return y=%0
    })",
          R"(
    graph g(%rows: i64[3], %x: f32[3, 4]) {
      %0 = transpose(%x) {perm=[0, 1]} : f32[3, 4]
      %1 = reshape(%0) {shape=(3, 4)} : f32[3, 4]
      %2 = reshape(%rows) {shape=(3, 1)} : i64[3, 1]
      %3 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %4 = add(%2, %3) : i64[3, 1]
      %5 = constant i64[] 0
      %6 = less(%2, %5) : bool[3, 1]
      %7 = where(%6, %4, %2) : i64[3, 1]
      %8 = iota() {axis=1, dtype=i64, shape=(1, 8), start=(0), step=(1)} : i64[1, 8]
      %9 = equal(%7, %8) : bool[3, 8]
      %10 = reshape(%7) {shape=(1, 3)} : i64[1, 3]
      %11 = equal(%7, %10) : bool[3, 3]
      %12 = cast(%11) {dtype=f32} : f32[3, 3]
      %13 = matmul(%12, %1) {trans_a=0, trans_b=0} : f32[3, 4]
      %14 = iota() {axis=0, dtype=i32, shape=(3, 1), start=(0), step=(1)} : i32[3, 1]
      %15 = constant i32[] -1
      %16 = where(%9, %14, %15) : i32[3, 8]
      %17 = reduce_max(%16) {axes=[0], keepdims=0} : i32[8]
      %18 = reshape(%17) {shape=(8, 1)} : i32[8, 1]
      %19 = constant i32[] 0
      %20 = less(%18, %19) : bool[8, 1]
      %21 = gather(%13, %17) {axis=0} : f32[8, 4]
      %22 = constant f32[] 0
      %23 = where(%20, %22, %21) : f32[8, 4]
      %24 = reshape(%23) {shape=(8, 4)} : f32[8, 4]
      %25 = transpose(%24) {perm=[0, 1]} : f32[8, 4]
      return y=%25
    }
    )");
}

TEST_CASE("rows whose number is none, not known or not small against the places are scattered by the product of all") {
  const auto gathers = [](std::string_view rows, std::string_view places) {
    const auto graph = parse_graph(fmt::format("graph g(%rows: i64[{0}], %x: f32[{0}, 4]) {{\n"
                                               "  %0 = scatter_add(%rows, %x) {{axis=0, size=({1})}}\n  return y=%0\n}}\n",
                                               rows, places),
                                   find_op);
    CHECK(expand_gradients(*graph, {}));
    const std::vector<Node*> nodes = graph->nodes();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->op->name == "gather"; });
  };
  CHECK(gathers("500", "1000"));
  CHECK_FALSE(gathers("501", "1000"));
  CHECK_FALSE(gathers("0", "1000"));
  CHECK_FALSE(gathers("N", "1000"));
  CHECK(gathers("N", "50257"));
}
