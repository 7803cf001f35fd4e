// What kernels are said to move: the bytes of `oclc info` and of the cost models.
#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Bytes that all kernels of the graph count together, as text.
std::string bytes_of(const std::string& text, bool fuse) {
  CompileOptions options = default_options();
  if (!fuse) options.disabled = {"fuse"};
  const auto built = compile(module_of(parse_graph(text, find_op)), options);
  Expr sum(0);
  for (const Kernel& kernel : built.schedule.kernels) sum += kernel.bytes;
  return sum.text();
}

}  // namespace

TEST_CASE("a gather counts the rows that it reads, not the table") {
  const std::string text =
      "graph g(%table: f32[1000, 256], %at: i64[3]) {\n  %0 = gather(%table, %at) {axis=0}  // rows\n  return y=%0\n}\n";
  CHECK(bytes_of(text, false) == std::to_string(3 * 8 + 2 * 3 * 256 * 4));
}

TEST_CASE("rows that a product gathers in its loads count once, whatever the product's width") {
  const std::string text =
      "graph g(%table: f32[1000, 64], %at: i64[3], %w: f32[64, 128]) {\n  %0 = gather(%table, %at) {axis=0}  // rows\n"
      "  %1 = matmul(%0, %w) {trans_a=0, trans_b=0}  // product\n  return y=%1\n}\n";
  CHECK(bytes_of(text, true) == std::to_string(3 * 8 + (3 * 64 + 64 * 128 + 3 * 128) * 4));
}

TEST_CASE("a slice counts what it reads of its buffer, and two slices count both") {
  const std::string one =
      "graph g(%flat: f32[100000]) {\n  %0 = slice(%flat) {starts=(500), sizes=(64), steps=[1]}  // first\n"
      "  %1 = exp(%0)  // exp\n  return y=%1\n}\n";
  CHECK(bytes_of(one, true) == std::to_string(2 * 64 * 4));
  const std::string two =
      "graph g(%flat: f32[100000]) {\n  %0 = slice(%flat) {starts=(500), sizes=(64), steps=[1]}  // first\n"
      "  %1 = slice(%flat) {starts=(600), sizes=(64), steps=[1]}  // second\n  %2 = add(%0, %1)  // add\n  return y=%2\n}\n";
  CHECK(bytes_of(two, true) == std::to_string(3 * 64 * 4));
}

TEST_CASE("elements that are read at several positions count once") {
  const std::string text =
      "graph g(%x: f32[10]) {\n  %0 = slice(%x) {starts=(0), sizes=(9), steps=[1]}  // left\n"
      "  %1 = slice(%x) {starts=(1), sizes=(9), steps=[1]}  // right\n  %2 = add(%0, %1)  // add\n  return y=%2\n}\n";
  CHECK(bytes_of(text, true) == std::to_string((10 + 9) * 4));
}

TEST_CASE("a buffer of symbolic size that is read whole counts whole") {
  const std::string text = "graph g(%x: f32[N, 8]) {\n  %0 = exp(%x)  // exp\n  return y=%0\n}\n";
  CHECK(bytes_of(text, true) == "64*N");
}
