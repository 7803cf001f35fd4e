#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {
const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

double on(std::string_view name, double a) { return run(name, {floats({}, {a})}).at(0); }
double on(std::string_view name, double a, double b) { return run(name, {floats({}, {a}), floats({}, {b})}).at(0); }
std::int64_t on_ints(std::string_view name, std::int64_t a, std::int64_t b, DType dtype = DType::i64) {
  return run(name, {ints({}, {a}, dtype), ints({}, {b}, dtype)}).int_at(0);
}
}  // namespace

TEST_CASE("unary functions at known points") {
  struct Row {
    const char* op;
    double x, y;
  };
  const Row rows[] = {{"neg", 2, -2},
                      {"abs", -3, 3},
                      {"sign", -0.5, -1},
                      {"sign", 0, 0},
                      {"exp", 1, std::exp(1.0)},
                      {"log", 2, std::log(2.0)},
                      {"sqrt", 2, std::sqrt(2.0)},
                      {"rsqrt", 4, 0.5},
                      {"reciprocal", 8, 0.125},
                      {"floor", -1.5, -2},
                      {"ceil", -1.5, -1},
                      {"round", 2.5, 2},
                      {"round", 3.5, 4},
                      {"round", -0.5, 0},
                      {"sin", 1, std::sin(1.0)},
                      {"cos", 1, std::cos(1.0)},
                      {"tan", 1, std::tan(1.0)},
                      {"asin", 0.5, std::asin(0.5)},
                      {"acos", 0.5, std::acos(0.5)},
                      {"atan", 2, std::atan(2.0)},
                      {"sinh", 1, std::sinh(1.0)},
                      {"cosh", 1, std::cosh(1.0)},
                      {"asinh", 1, std::asinh(1.0)},
                      {"acosh", 2, std::acosh(2.0)},
                      {"atanh", 0.5, std::atanh(0.5)},
                      {"tanh", 1, std::tanh(1.0)},
                      {"sigmoid", 0, 0.5},
                      {"sigmoid", -200, 0},
                      {"erf", 0.5, std::erf(0.5)},
                      {"softplus", 0, std::log(2.0)},
                      {"softplus", 100, 100},
                      {"relu", -1, 0},
                      {"relu", 2, 2},
                      {"is_nan", 1, 0},
                      {"is_inf", 1, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.op);
    CHECK(on(row.op, row.x) == doctest::Approx(row.y).epsilon(1e-6));
  }
}

TEST_CASE("NaN and infinity follow the numeric contract") {
  for (const char* op : {"max", "min"}) {
    CHECK(std::isnan(on(op, kNaN, 1)));
    CHECK(std::isnan(on(op, 1, kNaN)));
  }
  CHECK(std::isnan(on("relu", kNaN)));
  CHECK(std::isnan(on("sign", kNaN)));
  CHECK(on("is_nan", kNaN) == 1);
  CHECK(on("is_inf", -kInf) == 1);
  CHECK(on("less", kNaN, 1) == 0);
  CHECK(on("equal", kNaN, kNaN) == 0);
  CHECK(on("div", 1, 0) == kInf);
  CHECK(on("sigmoid", -kInf) == 0);
  CHECK(on("softplus", kInf) == kInf);
}

TEST_CASE("binary functions of floats") {
  CHECK(on("add", 1, 2) == 3);
  CHECK(on("sub", 1, 2) == -1);
  CHECK(on("mul", 3, 2) == 6);
  CHECK(on("div", 3, 2) == 1.5);
  CHECK(on("pow", 2, 10) == 1024);
  CHECK(on("max", 3, 2) == 3);
  CHECK(on("min", 3, 2) == 2);
  CHECK(on("mod", -7, 3) == 2);
  CHECK(on("mod", 7, -3) == -2);
  CHECK(on("fmod", -7, 3) == -1);
  CHECK(on("less_equal", 2, 2) == 1);
  CHECK(on("greater", 2, 2) == 0);
  CHECK(on("greater_equal", 2, 2) == 1);
}

TEST_CASE("integers truncate, wrap and survive zero divisors") {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  CHECK(on_ints("div", -7, 2) == -3);
  CHECK(on_ints("div", 7, 0) == 0);
  CHECK(on_ints("div", kLowest, -1) == kLowest);
  CHECK(on_ints("mod", -7, 3) == 2);
  CHECK(on_ints("mod", 7, -3) == -2);
  CHECK(on_ints("mod", 7, 0) == 0);
  CHECK(on_ints("fmod", -7, 3) == -1);
  CHECK(on_ints("fmod", kLowest, -1) == 0);
  CHECK(on_ints("add", 2147483647, 1, DType::i32) == -2147483648);
  CHECK(on_ints("mul", 16, 16, DType::u8) == 0);
  CHECK(on_ints("pow", 3, 5) == 243);
  CHECK(on_ints("pow", 2, -1) == 0);
  CHECK(on_ints("pow", -1, -3) == -1);
  CHECK(on_ints("max", -1, 1, DType::u64) == -1);
  CHECK(on_ints("less", -1, 1, DType::u64) == 0);
  CHECK(on_ints("div", -1, 2, DType::u64) == std::numeric_limits<std::int64_t>::max());
  CHECK(run("abs", {ints({}, {-128}, DType::i8)}).int_at(0) == -128);
}

TEST_CASE("logic on bool") {
  const HostTensor a = ints({4}, {0, 0, 1, 1}, DType::boolean), b = ints({4}, {0, 1, 0, 1}, DType::boolean);
  CHECK(int_values(run("and", {a, b})) == Ints{0, 0, 0, 1});
  CHECK(int_values(run("or", {a, b})) == Ints{0, 1, 1, 1});
  CHECK(int_values(run("xor", {a, b})) == Ints{0, 1, 1, 0});
  CHECK(int_values(run("equal", {a, b})) == Ints{1, 0, 0, 1});
  CHECK(int_values(run("not", {a})) == Ints{1, 1, 0, 0});
  CHECK(run("not", {a}).dtype() == DType::boolean);
}

TEST_CASE("operands broadcast") {
  const HostTensor y = run("add", {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})});
  CHECK(y.shape() == Ints{2, 3});
  CHECK(values(y) == std::vector<double>{11, 12, 13, 21, 22, 23});
  CHECK(values(run("where", {ints({2, 1}, {1, 0}, DType::boolean), floats({}, {5}), floats({2}, {7, 8})})) ==
        std::vector<double>{5, 5, 7, 8});
  CHECK(run("mul", {floats({0, 2}, {}), floats({}, {1})}).shape() == Ints{0, 2});
  CHECK(run("fma", {floats({2}, {2, 3}), floats({2}, {10, 10}), floats({}, {1})}).at(1) == 31);
}

TEST_CASE("casts convert as C does") {
  const auto cast = [](const HostTensor& x, DType dtype) { return run("cast", {x}, {{"dtype", dtype}}); };
  CHECK(int_values(cast(floats({4}, {1.9, -1.9, 300, 0}), DType::i32)) == Ints{1, -1, 300, 0});
  CHECK(int_values(cast(floats({4}, {0.5, -1, 0, kNaN}), DType::boolean)) == Ints{1, 1, 0, 1});
  CHECK(int_values(cast(ints({2}, {300, -1}), DType::u8)) == Ints{44, 255});
  CHECK(int_values(cast(ints({1}, {-1}, DType::i32), DType::u64)) == Ints{-1});
  CHECK(cast(ints({1}, {-1}, DType::u64), DType::f32).at(0) == 18446744073709551616.0);
  CHECK(cast(floats({1}, {1.0 / 3}), DType::f16).at(0) == doctest::Approx(1.0 / 3).epsilon(1e-3));
}

TEST_CASE("elementwise calls that do not fit are refused") {
  const HostTensor f = floats({2}, {1, 2}), i = ints({2}, {1, 2}), b = ints({2}, {0, 1}, DType::boolean);
  CHECK(error_of([&] {
          run("add", {f, i});
        }) == "node 'node' (add): wanted operands of one element type, found f32[2] and i64[2]");
  CHECK(error_of([&] { run("add", {b, b}); }) == "node 'node' (add): wanted numbers, found bool[2] and bool[2]");
  CHECK(error_of([&] { run("exp", {i}); }) == "node 'node' (exp): wanted floating-point operands, found i64[2]");
  CHECK(error_of([&] { run("and", {f, f}); }) == "node 'node' (and): wanted bool operands, found f32[2] and f32[2]");
  CHECK(error_of([&] { run("where", {f, f, f}); }) == "node 'node' (where): wanted a condition of bool, found f32[2]");
  CHECK(error_of([&] { run("add", {f}); }) == "node 'node' (add): wanted 2 inputs, found 1");
  CHECK(error_of([&] {
          run("mul", {f, floats({3}, {1, 2, 3})});
        }) == "node 'node' (mul): wanted shapes that broadcast, found [2] and [3] (2 against 3)");
  CHECK(error_of([&] {
          Graph graph;
          Builder(graph, "n").call("neg", {nullptr});
        }) == "node 'n' (neg): wanted input 0, found none");
}
