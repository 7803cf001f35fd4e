#include "compiler/passes/gradients/expand_gradients.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
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
      %8 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %9 = constant i64[] -1
      %10 = max(%7, %9) : i64[3, 1]
      %11 = min(%10, %8) : i64[3, 1]
      %12 = cast(%11) {dtype=i32} : i32[3, 1]
      %13 = iota() {axis=1, dtype=i32, shape=(1, 8), start=(0), step=(1)} : i32[1, 8]
      %14 = equal(%12, %13) : bool[3, 8]
      %15 = constant f32[] 0
      %16 = where(%14, %1, %15) : f32[3, 8]
      %17 = reduce_sum(%16) {axes=[0], keepdims=0} : f32[8]
      %18 = reshape(%17) {shape=(8)} : f32[8]
      %19 = transpose(%18) {perm=[0]} : f32[8]
      return y=%19
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
      %8 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %9 = constant i64[] -1
      %10 = max(%7, %9) : i64[N, 1]
      %11 = min(%10, %8) : i64[N, 1]
      %12 = cast(%11) {dtype=i32} : i32[N, 1]
      %13 = iota() {axis=1, dtype=i32, shape=(1, 8), start=(0), step=(1)} : i32[1, 8]
      %14 = equal(%12, %13) : bool[N, 8]
      %15 = cast(%14) {dtype=f32} : f32[N, 8]
      %16 = matmul(%15, %1) {trans_a=1, trans_b=0} : f32[8, 4]
      %17 = reshape(%16) {shape=(8, 4)} : f32[8, 4]
      %18 = transpose(%17) {perm=[0, 1]} : f32[8, 4]
      return y=%18
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
      %8 = exprs() {dtype=i64, shape=[], values=(8)} : i64[]
      %9 = constant i64[] -1
      %10 = max(%7, %9) : i64[3, 1]
      %11 = min(%10, %8) : i64[3, 1]
      %12 = cast(%11) {dtype=i32} : i32[3, 1]
      %13 = iota() {axis=1, dtype=i32, shape=(1, 8), start=(0), step=(1)} : i32[1, 8]
      %14 = equal(%12, %13) : bool[3, 8]
      %15 = reshape(%12) {shape=(1, 3)} : i32[1, 3]
      %16 = equal(%12, %15) : bool[3, 3]
      %17 = cast(%16) {dtype=f32} : f32[3, 3]
      %18 = matmul(%17, %1) {trans_a=0, trans_b=0} : f32[3, 4]
      %19 = iota() {axis=0, dtype=i32, shape=(3, 1), start=(0), step=(1)} : i32[3, 1]
      %20 = constant i32[] -1
      %21 = where(%14, %19, %20) : i32[3, 8]
      %22 = reduce_max(%21) {axes=[0], keepdims=0} : i32[8]
      %23 = reshape(%22) {shape=(8, 1)} : i32[8, 1]
      %24 = constant i32[] 0
      %25 = less(%23, %24) : bool[8, 1]
      %26 = gather(%18, %22) {axis=0} : f32[8, 4]
      %27 = constant f32[] 0
      %28 = where(%25, %27, %26) : f32[8, 4]
      %29 = reshape(%28) {shape=(8, 4)} : f32[8, 4]
      %30 = transpose(%29) {perm=[0, 1]} : f32[8, 4]
      return y=%30
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

TEST_CASE("indices whose low 32 bits name a place name none of their own") {
  for (const std::string_view updates : {"x: f32[4]", "x: f32[4, 2]"}) {
    const auto graph = parse_graph(
        fmt::format("graph g(%rows: i64[4], %{}) {{\n  %0 = scatter_add(%rows, %x) {{axis=0, size=(9)}}\n  return y=%0\n}}\n",
                    updates),
        find_op);
    CHECK(expand_gradients(*graph, {}));
    const std::int64_t far = std::int64_t{1} << 32;
    HostTensor rows(DType::i64, {4});
    std::copy_n(std::initializer_list<std::int64_t>{far + 3, 5, -far - 1, -2}.begin(), 4,
                reinterpret_cast<std::int64_t*>(rows.mutable_data()));
    const std::int64_t width = updates.find(',') == std::string_view::npos ? 1 : 2;
    HostTensor x(DType::f32, width == 1 ? Ints{4} : Ints{4, 2});
    std::fill_n(reinterpret_cast<float*>(x.mutable_data()), x.elements(), 1.0f);
    const HostTensor y = evaluate(*graph, std::vector<HostTensor>{rows, x}).at(0);
    for (std::int64_t i = 0; i < y.elements(); ++i) CHECK(y.at(i) == (i / width == 5 || i / width == 7 ? 1 : 0));
  }
}
