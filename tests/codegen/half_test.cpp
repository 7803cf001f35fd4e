// 16-bit floats in memory: every kernel family reads and writes them on devices that do not compute with them.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};

// One rounding, relative to the largest result; results of several operators are rounded once where the reference rounds each.
double rounding(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : 0x1p-8; }

HostTensor of(DType dtype, const std::vector<double>& values) {
  HostTensor t(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, values[static_cast<std::size_t>(i)]);
  return t;
}

// Where rounding and the ends of the ranges matter, of both signs.
std::vector<double> edges() {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> list = {0,         1,         0x1p-24,     0x1p-25,   0x1.8p-25,  0x1p-14,    0x1.ffcp-15,
                              0x1.002p0, 0x1.006p0, 0x1.001p0,   65504,     65519,      65520,      65536,
                              1e6,       0x1.01p0,  0x1.03p0,    0x1.018p0, 0x1.fep127, 0x1.ffp127, 0x1p-133,
                              0x1p-134,  0x1p-126,  0x1.fcp-127, 3.14159,   1e-5,       1e-30,      inf};
  for (std::size_t i = 0, n = list.size(); i < n; ++i) list.push_back(-list[i]);
  list.push_back(std::nan(""));
  return list;
}

}  // namespace

TEST_CASE("16-bit floats are rounded to the nearest, NaN, infinities and subnormals among them") {
  for (const DType dtype : kHalves) {
    PlanCheck check;
    Builder& b = check.b;
    for (const std::int64_t lead : {0, 1, 3}) {  // vectors and what they leave
      std::vector<double> values = edges();
      values.insert(values.begin(), static_cast<std::size_t>(lead), 1.5);
      Value* wide = check.input(of(DType::f32, values));
      Value* held = check.input(of(dtype, values));
      const auto name = [&](const char* what) { return fmt::format("{} {} behind {}", what, name_of(dtype), lead); };
      check.out(name("to"), b.cast(wide, dtype));
      check.out(name("from"), b.cast(held, DType::f32));
      check.out(name("a copy of"), b.slice_axis(held, 0, Expr(1), Expr(static_cast<std::int64_t>(values.size()) - 1)));
      check.out(name("rounded on the way"), b.mul(b.cast(b.cast(wide, dtype), DType::f32), 0.5));
      check.out(name("negated"), b.unary("neg", held));
      check.out(name("is NaN"), b.unary("is_nan", held));
    }
    check.check(0);
  }
}

TEST_CASE("arithmetic on 16-bit floats is rounded where it is stored") {
  for (const DType dtype : kHalves) {
    PlanCheck exact, close;
    for (const std::int64_t n : {0, 1, 3, 17, 64, 1023}) {
      const auto name = [&](const char* what) { return fmt::format("{} {} {}", n, name_of(dtype), what); };
      {
        Builder& b = exact.b;
        Value *x = exact.input(dtype, {n}, -4, 4), *y = exact.input(dtype, {n}, -4, 4), *column = exact.input(dtype, {3, 1});
        exact.out(name("product"), b.mul(x, y));
        exact.out(name("larger"), b.max(x, y));
        exact.out(name("broadcast"), b.mul(column, x));
        exact.out(name("compared"), b.call("less", {x, y}));
        exact.out(name("chosen"), b.where(b.call("less", {x, y}), x, b.scalar(dtype, 0.1)));
        exact.out(name("integers"), b.cast(x, DType::i32));
        exact.out(name("from integers"), b.cast(exact.input(DType::i32, {n}, -3000, 3000), dtype));
      }
      Builder& b = close.b;
      Value *x = close.input(dtype, {n}, -4, 4), *y = close.input(dtype, {n}, -4, 4);
      close.out(name("chain"), b.relu(b.add(b.mul(x, y), 0.25)));
      close.out(name("function"), b.unary("tanh", x));
      close.out(name("mixed"), b.add(b.cast(x, DType::f32), b.cast(y, DType::f32)));
    }
    exact.check(0);
    close.check(2 * rounding(dtype));
  }
}

TEST_CASE("movement and indexing keep 16-bit floats as they are") {
  for (const DType dtype : kHalves) {
    PlanCheck check;
    Builder& b = check.b;
    Value *x = check.input(dtype, {3, 17, 5}), *wide = check.input(dtype, {32, 48}), *y = check.input(dtype, {3, 1, 5});
    check.out("transposed", b.transpose(x, {2, 0, 1}));
    check.out("transposed in blocks", b.transpose(wide, {1, 0}));
    check.out("slice", b.slice(x, {Expr(2), Expr(1), Expr(0)}, {Expr(3), Expr(5), Expr(2)}, {-1, 3, 2}));
    check.out("padded", b.pad(x, {Expr(0), Expr(1), Expr(2)}, {Expr(1), Expr(0), Expr(3)}));
    check.out("joined", b.concat({b.unary("neg", x), b.relu(y), x}, 1));
    check.out("expanded", b.expand(y, {Expr(3), Expr(7), Expr(5)}));
    Value* index = check.input(DType::i64, {2, 3}, 0, 3);
    check.out("gathered", b.gather(x, index, 0));
    check.out("gathered along rows", b.gather(x, index, 2));
    check.check(0);
  }
}

TEST_CASE("reductions, rows and windows of 16-bit floats sum in single precision") {
  for (const DType dtype : kHalves) {
    // The types share all but their conversions.
    for (const std::int64_t n : dtype == DType::f16 ? Ints{1, 17} : Ints{3, 300}) {
      PlanCheck check;
      Builder& b = check.b;
      Value *x = check.input(dtype, {3, n, 5}), *long_rows = check.input(dtype, {2, 7, n});
      for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
        for (const Ints& axes : {Ints{1}, Ints{2}, Ints{0, 1, 2}})
          check.out(fmt::format("{} over {}", op, fmt::join(axes, ",")), b.reduce(op, x, axes, false));
        check.out(fmt::format("{} over rows", op), b.reduce(op, long_rows, {2}, true));
      }
      check.out("argmax", b.arg("argmax", long_rows, 2, false));
      check.out("softmax", b.softmax(long_rows));
      check.out("log_softmax", b.log_softmax(long_rows));
      Value *scale = check.input(dtype, {n}), *bias = check.input(dtype, {n});
      check.out("layer norm", b.call("layer_norm", {long_rows, scale, bias}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}}));
      check.out("cumsum", b.call("cumsum", {x},
                                 {{"axis", std::int64_t{1}}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}}));
      PoolOptions pool;
      pool.kernel = {3};
      pool.strides = {2};
      pool.dilations = {1};
      pool.pads = {1, 1};
      check.out("max pool", b.max_pool(long_rows, pool));
      check.out("average pool", b.avg_pool(long_rows, pool));
      check.check(2 * rounding(dtype));
    }
  }
}

TEST_CASE("a sum of 16-bit floats is not rounded term by term") {
  for (const DType dtype : kHalves) {
    PlanCheck check;
    HostTensor ones(dtype, {4096});
    for (std::int64_t i = 0; i < ones.elements(); ++i) ones.set(i, 1);
    check.out("sum", check.b.reduce("reduce_sum", check.input(ones), {0}, false));
    check.check(0);
  }
}

TEST_CASE("contractions of 16-bit floats sum in single precision") {
  for (const DType dtype : kHalves) {
    for (const auto& [m, k, n] : {std::tuple(3, 17, 5), std::tuple(17, 300, 33)}) {
      PlanCheck check;
      Builder& b = check.b;
      Value *a = check.input(dtype, {m, k}), *right = check.input(dtype, {k, n}), *bias = check.input(dtype, {n});
      HostTensor weights = random_tensor(dtype, {k, n}, 99);
      check.out("product", b.matmul(a, right));
      check.out("with an epilogue", b.relu(b.add(b.matmul(a, right), bias)));
      check.out("by a constant", b.matmul(a, b.constant(weights)));
      check.out("transposed", b.matmul(b.transpose(a, {1, 0}), right, true, false));
      check.out("of transposed", b.matmul(a, b.transpose(right, {1, 0}), false, true));
      check.out("wide result", b.matmul(b.cast(a, DType::f32), b.cast(right, DType::f32)));
      Value *stack = check.input(dtype, {2, m, k}), *stacked = check.input(dtype, {2, k, n});
      check.out("batch", b.matmul(stack, stacked));
      check.check(2 * rounding(dtype));
    }
  }
}

TEST_CASE("convolutions of 16-bit floats sum in single precision") {
  for (const DType dtype : kHalves) {
    for (const std::int64_t group : {1, 2, 6}) {
      PlanCheck check;
      Builder& b = check.b;
      Value *x = check.input(dtype, {2, 6, 9, 11}), *bias = check.input(dtype, {12});
      Attributes conv{{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"group", group}};
      const Ints shape{12, 6 / group, 3, 3};
      check.out("constant weights", b.relu(b.call("conv", {x, b.constant(random_tensor(dtype, shape, 5)), bias}, conv)));
      check.out("other weights", b.call("conv", {x, check.input(dtype, shape)}, conv));
      conv["strides"] = Ints{2, 3};
      conv["pads"] = Ints{0, 2, 1, 1};
      check.out("strides", b.call("conv", {x, b.constant(random_tensor(dtype, shape, 6))}, conv));
      check.check(2 * rounding(dtype));
    }
  }
}
