#include <doctest/doctest.h>

#include <limits>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

using Exprs = std::vector<Expr>;

HostTensor slice(const HostTensor& x, Exprs starts, Exprs sizes, Ints steps) {
  return run("slice", {x}, {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}});
}

HostTensor pad(const HostTensor& x, Exprs before, Exprs after, std::string mode = "constant", double value = 0) {
  return run("pad", {x},
             {{"before", std::move(before)}, {"after", std::move(after)}, {"value", value}, {"mode", std::move(mode)}});
}

HostTensor transpose(const HostTensor& x, Ints perm) { return run("transpose", {x}, {{"perm", std::move(perm)}}); }
HostTensor expand(const HostTensor& x, Exprs shape) { return run("expand", {x}, {{"shape", std::move(shape)}}); }
HostTensor reshape(const HostTensor& x, Exprs shape) { return run("reshape", {x}, {{"shape", std::move(shape)}}); }
HostTensor concat(const std::vector<HostTensor>& xs, std::int64_t axis) { return run("concat", xs, {{"axis", axis}}); }
HostTensor gather(const HostTensor& data, const HostTensor& indices, std::int64_t axis) {
  return run("gather", {data, indices}, {{"axis", axis}});
}

}  // namespace

TEST_CASE("reshape keeps the order of elements") {
  CHECK(values(reshape(counting({2, 3}), {3, 1, 2})) == values(counting({6})));
  CHECK(reshape(counting({1}), {}).shape() == Ints{});
  CHECK(reshape(floats({0, 3}, {}), {7, 0}).shape() == Ints{7, 0});
}

TEST_CASE("transpose permutes axes") {
  CHECK(values(transpose(counting({2, 3}), {1, 0})) == std::vector<double>{1, 4, 2, 5, 3, 6});
  const HostTensor y = transpose(counting({2, 3, 4}), {2, 0, 1});
  CHECK(y.shape() == Ints{4, 2, 3});
  CHECK(y.at((3 * 2 + 1) * 3 + 2) == 24);
  CHECK(y.at((1 * 2 + 0) * 3 + 2) == 10);
  CHECK(transpose(counting({}), {}).at(0) == 1);
}

TEST_CASE("expand repeats axes of one") {
  CHECK(values(expand(counting({2, 1}), {3})) == std::vector<double>{1, 1, 1, 2, 2, 2});
  CHECK(values(expand(counting({2}), {2, 1})) == std::vector<double>{1, 2, 1, 2});
  CHECK(expand(counting({1}), {0}).shape() == Ints{0});
}

TEST_CASE("slices with steps of either sign") {
  const HostTensor x = counting({3, 4});
  CHECK(values(slice(x, {1, 0}, {2, 2}, {1, 2})) == std::vector<double>{5, 7, 9, 11});
  CHECK(values(slice(x, {2, 3}, {3, 1}, {-1, 1})) == std::vector<double>{12, 8, 4});
  CHECK(slice(x, {0, 4}, {3, 0}, {1, 1}).shape() == Ints{3, 0});
}

TEST_CASE("padding in three modes") {
  const HostTensor x = counting({3});
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK(values(pad(x, {1}, {2}, "constant", 9)) == std::vector<double>{9, 1, 2, 3, 9, 9});
  CHECK(values(pad(x, {0}, {1}, "constant", -kInf)) == std::vector<double>{1, 2, 3, -kInf});
  CHECK(values(pad(x, {2}, {1}, "edge")) == std::vector<double>{1, 1, 1, 2, 3, 3});
  CHECK(values(pad(x, {2}, {2}, "reflect")) == std::vector<double>{3, 2, 1, 2, 3, 2, 1});
  CHECK(values(pad(counting({1, 2}), {1, 0}, {0, 1})) == std::vector<double>{0, 0, 0, 1, 2, 0});
  CHECK(values(pad(floats({0}, {}), {1}, {1}, "constant", 5)) == std::vector<double>{5, 5});
}

TEST_CASE("concatenation along any axis") {
  CHECK(values(concat({counting({1, 2}), counting({2, 2})}, 0)) == std::vector<double>{1, 2, 1, 2, 3, 4});
  CHECK(values(concat({counting({2, 1}), counting({2, 2}), floats({2, 0}, {})}, 1)) == std::vector<double>{1, 1, 2, 2, 3, 4});
}

TEST_CASE("gather by index, from the end too") {
  const HostTensor data = counting({2, 3});
  CHECK(values(gather(data, ints({2}, {1, -2}), 0)) == std::vector<double>{4, 5, 6, 1, 2, 3});
  CHECK(values(gather(data, ints({}, {-1}, DType::i32), 1)) == std::vector<double>{3, 6});
  const HostTensor y = gather(data, ints({2, 1}, {0, 2}), 1);
  CHECK(y.shape() == Ints{2, 2, 1});
  CHECK(values(y) == std::vector<double>{1, 3, 4, 6});
  CHECK(gather(data, ints({0}, {}), 0).shape() == Ints{0, 3});
  CHECK(error_of([&] { gather(data, ints({1}, {2}), 0); }) == "node 'node' (gather): wanted indices from -2 to 1, found 2");
}

TEST_CASE("gather_nd and gather_elements") {
  const HostTensor data = counting({2, 2, 2});
  const auto nd = [&](const HostTensor& indices, std::int64_t batch) {
    return run("gather_nd", {data, indices}, {{"batch_dims", batch}});
  };
  CHECK(values(nd(ints({2, 2}, {0, 1, 1, -2}), 0)) == std::vector<double>{3, 4, 5, 6});
  CHECK(values(nd(ints({2, 3}, {0, 0, 1, 1, 1, 0}), 0)) == std::vector<double>{2, 7});
  CHECK(values(nd(ints({2, 1}, {1, 0}), 1)) == std::vector<double>{3, 4, 5, 6});
  CHECK(values(nd(ints({2, 1, 2}, {1, 0, 0, 1}), 1)) == std::vector<double>{3, 6});
  CHECK(values(run("gather_elements", {counting({2, 2}), ints({2, 2}, {0, 0, 1, -2})}, {{"axis", std::int64_t{1}}})) ==
        std::vector<double>{1, 1, 4, 3});
  CHECK(values(run("gather_elements", {counting({2, 2}), ints({1, 2}, {1, 0})}, {{"axis", std::int64_t{0}}})) ==
        std::vector<double>{3, 2});
}

TEST_CASE("generators") {
  const Expr n = Expr::symbol("N");
  Graph graph;
  Builder b(graph);
  graph.add_output("iota", b.iota({2, n}, 1, DType::f32, n, -1));
  graph.add_output("exprs", b.exprs({n * Expr(2), n - 1}, {2}));
  graph.add_output("constant", b.floats({1.5f}, {}));
  graph.add_output("scalar", b.iota({}, 0, DType::i32, 7));
  const auto out = evaluate(graph, {}, {{"N", 3}});
  CHECK(values(out[0]) == std::vector<double>{3, 2, 1, 3, 2, 1});
  CHECK(int_values(out[1]) == Ints{6, 2});
  CHECK(out[2].at(0) == 1.5);
  CHECK(out[3].int_at(0) == 7);
  CHECK(error_of([&] { evaluate(graph, {}); }) == "(iota): wanted sizes for the dimensions [2, N], found no value of N");
}

TEST_CASE("a slice that leaves its operand when symbols are bound is refused") {
  const Expr n = Expr::symbol("N"), k = Expr::symbol("K");
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {n}});
  graph.add_output("y", Builder(graph, "cut").slice_axis(x, 0, k, 2));
  CHECK(values(evaluate(graph, std::vector<HostTensor>{counting({4})}, {{"K", 2}})[0]) == std::vector<double>{3, 4});
  CHECK(error_of([&] {
          evaluate(graph, std::vector<HostTensor>{counting({4})}, {{"K", 3}});
        }) == "node 'cut' (slice): wanted positions inside axis 0 of size 4, found 3 to 4");
}

TEST_CASE("movements that do not fit are refused") {
  const HostTensor x = counting({2, 3});
  CHECK(error_of([&] {
          reshape(x, {4, 2});
        }) == "node 'node' (reshape): wanted a shape of 6 elements, found [4, 2] of 8 for f32[2, 3]");
  CHECK(error_of([&] { transpose(x, {0, 0}); }) == "node 'node' (transpose): wanted a permutation of 2 axes, found [0, 0]");
  CHECK(error_of([&] { transpose(x, {0}); }) == "node 'node' (transpose): wanted a permutation of 2 axes, found [0]");
  CHECK(error_of([&] { expand(x, {4}); }) ==
        "node 'node' (expand): wanted shapes that broadcast, found [2, 3] and [4] (3 against 4)");
  CHECK(error_of([&] {
          slice(x, {0, 1}, {2, 3}, {1, 1});
        }) == "node 'node' (slice): wanted positions inside axis 1 of f32[2, 3], found 3 elements from 1 in steps of 1");
  CHECK(error_of([&] {
          slice(x, {0, 0}, {2, 2}, {1, -1});
        }) == "node 'node' (slice): wanted positions inside axis 1 of f32[2, 3], found 2 elements from 0 in steps of -1");
  CHECK(error_of([&] { slice(x, {0}, {2, 3}, {1, 1}); }) == "node 'node' (slice): wanted 2 starts, one per axis, found 1");
  CHECK(error_of([&] {
          slice(x, {0, 0}, {-1, 3}, {1, 1});
        }) == "node 'node' (slice): wanted a slice of 0 or more elements, found -1");
  CHECK(error_of([&] { pad(x, {0, -1}, {0, 0}); }) == "node 'node' (pad): wanted paddings of 0 or more, found -1");
  CHECK(error_of([&] {
          pad(x, {2, 0}, {0, 0}, "reflect");
        }) == "node 'node' (pad): wanted more than 2 elements to reflect along axis 0, found f32[2, 3]");
  CHECK(error_of([&] { pad(floats({0}, {}), {1}, {0}, "edge"); }) ==
        "node 'node' (pad): wanted more than 0 elements to repeat along axis 0, found f32[0]");
  CHECK(error_of([&] {
          pad(x, {0, 0}, {0, 0}, "wrap");
        }) == "node 'node' (pad): wanted mode constant, edge or reflect, found wrap");
  CHECK(error_of([&] {
          concat({x, counting({3, 3})}, 1);
        }) == "node 'node' (concat): wanted operands that differ along axis 1 only, found f32[2, 3] and f32[3, 3]");
  CHECK(error_of([&] {
          concat({x, counting({2, 3}, DType::i32)}, 1);
        }) == "node 'node' (concat): wanted operands that differ along axis 1 only, found f32[2, 3] and i32[2, 3]");
  CHECK(error_of([&] {
          concat({counting({}), counting({})}, 0);
        }) == "node 'node' (concat): wanted an operand with at least one axis, found axis 0");
  CHECK(error_of([&] { gather(x, x, 0); }) == "node 'node' (gather): wanted indices of i32 or i64, found f32[2, 3]");
  CHECK(error_of([&] {
          run("gather_nd", {x, ints({1, 3}, {0, 0, 0})}, {{"batch_dims", std::int64_t{0}}});
        }) == "node 'node' (gather_nd): wanted a last dimension of the indices from 1 to 2, found i64[1, 3]");
  CHECK(error_of([&] {
          run("gather_nd", {x, ints({2, 1}, {0, 0})}, {{"batch_dims", std::int64_t{2}}});
        }) == "node 'node' (gather_nd): wanted batch_dims from 0 and below both ranks, found 2 for f32[2, 3] and i64[2, 1]");
  CHECK(error_of([&] {
          run("gather_elements", {x, ints({3, 1}, {0, 0, 0})}, {{"axis", std::int64_t{1}}});
        }) ==
        "node 'node' (gather_elements): wanted indices of rank 2, no larger than the data except along axis 1, found i64[3, 1] "
        "for f32[2, 3]");
  Graph graph;
  CHECK(error_of([&] { Builder(graph, "v").exprs({1, 2}, {3}); }) == "node 'v' (exprs): wanted 3 values, found 2");
  CHECK(error_of([&] { Builder(graph, "v").iota({2}, 1, DType::i64); }) ==
        "node 'v' (iota): wanted an axis from -1 to 0, found axis 1");
}
