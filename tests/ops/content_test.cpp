#include <doctest/doctest.h>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

std::string text(const Value* value) {
  if (!value->content) return "unknown";
  return text_of(*value->content);
}

struct Fixture {
  Graph graph;
  Builder b{graph};
  Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  Value* shape = b.exprs({n, t, 768}, {3});
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "shape arithmetic of a model stays symbolic") {
  CHECK(text(shape) == "[N, T, 768]");
  Value* length = b.gather(shape, b.ints({1}));
  CHECK(text(length) == "[T]");
  CHECK(text(b.gather(shape, b.scalar(DType::i64, -1))) == "[768]");
  CHECK(text(b.mul(length, b.scalar(DType::i64, 12))) == "[12*T]");
  CHECK(text(b.div(b.mul(length, b.scalar(DType::i64, 12)), b.ints({4}))) == "[3*T]");
  CHECK(text(b.concat({b.slice_axis(shape, 0, 0, 2), b.ints({12, 64})}, 0)) == "[N, T, 12, 64]");
  CHECK(text(b.reduce("reduce_prod", shape, {0}, false)) == "[768*N*T]");
  CHECK(text(b.reduce("reduce_sum", shape, {0}, true)) == "[N + T + 768]");
  CHECK(text(b.reduce("reduce_max", b.ints({3, 9}), {0}, false)) == "[9]");
  CHECK(text(b.cast(b.cast(shape, DType::i32), DType::i64)) == "[N, T, 768]");
  CHECK(text(b.reshape(shape, {1, 3})) == "[N, T, 768]");
  CHECK(text(b.expand(length, {3})) == "[T, T, T]");
  CHECK(text(b.slice(shape, {2}, {3}, {-1})) == "[768, T, N]");
  CHECK(text(b.transpose(b.reshape(b.concat({shape, b.ints({1})}, 0), {2, 2}), {1, 0})) == "[N, 768, T, 1]");
  CHECK(text(b.pad(length, {0}, {1}, 1)) == "[T, 1]");
  CHECK(text(b.sub(shape, b.scalar(DType::i64, 1))) == "[N - 1, T - 1, 767]");
  CHECK(text(b.unary("neg", length)) == "[-T]");
  CHECK(text(b.max(length, b.ints({8}))) == "[max(T, 8)]");
}

TEST_CASE_FIXTURE(Fixture, "what can be decided is decided") {
  Value* zero = b.scalar(DType::i64, 0);
  Value* minus = b.exprs({-1}, {1});
  CHECK(text(b.call("equal", {shape, minus})) == "[0, 0, 0]");
  CHECK(text(b.call("equal", {shape, shape})) == "[1, 1, 1]");
  CHECK(text(b.call("greater", {shape, zero})) == "[1, 1, 1]");
  CHECK(text(b.call("less_equal", {shape, zero})) == "[0, 0, 0]");
  CHECK(text(b.where(b.call("equal", {shape, minus}), b.ints({1, 1, 1}), shape)) == "[N, T, 768]");
  CHECK(text(b.unary("abs", shape)) == "[N, T, 768]");
  CHECK(text(b.call("mod", {b.mul(shape, b.scalar(DType::i64, 4)), b.scalar(DType::i64, 4)})) == "[0, 0, 0]");
  CHECK(text(b.cast(shape, DType::boolean)) == "[1, 1, 1]");
  CHECK(text(b.call("xor", {b.cast(b.ints({1, 0}), DType::boolean), b.cast(b.ints({1, 1}), DType::boolean)})) == "[0, 1]");
  CHECK(text(b.add(b.cast(b.ints({255}), DType::u8), b.cast(b.ints({1}), DType::u8))) == "[0]");
  CHECK(text(b.cast(b.ints({300}), DType::u8)) == "[44]");
  CHECK(text(b.iota({3}, 0, DType::i64, n)) == "[N, N + 1, N + 2]");
}

TEST_CASE_FIXTURE(Fixture, "what is not known is not guessed") {
  Value* input = graph.add_input("x", {DType::i64, {3}});
  CHECK(text(input) == "unknown");
  CHECK(text(b.add(shape, input)) == "unknown");
  CHECK(text(b.call("equal", {shape, b.ints({3})})) == "unknown");  // N may be 3
  CHECK(text(b.call("less", {b.exprs({n}, {1}), b.exprs({t}, {1})})) == "unknown");
  CHECK(text(b.div(shape, b.exprs({n - 1}, {1}))) == "unknown");                                    // N - 1 may be 0
  CHECK(text(b.div(b.sub(shape, b.scalar(DType::i64, 5)), b.scalar(DType::i64, 2))) == "unknown");  // truncates below 0
  CHECK(text(b.cast(shape, DType::f32)) == "unknown");
  CHECK(text(b.gather(shape, input)) == "unknown");
  CHECK(text(b.constant(HostTensor(DType::i64, {1025}))) == "unknown");
  CHECK(text(b.floats({1}, {1})) == "unknown");
  CHECK(text(b.reduce("reduce_max", b.ints({}), {0}, false)) == "unknown");
}
