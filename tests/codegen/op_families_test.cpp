// Kernels of the larger operator families against the reference, over awkward sizes and all attributes.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("pointwise kernels and reductions of awkward sizes") {
  const Ints few{0, 1, 17, 1023, 1000003}, all{0, 1, 3, 17, 64, 1023, 1000003};
  for (const std::int64_t n : tests_all() ? all : few) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input({n});
    const auto name = [&](const char* what) { return fmt::format("{} of {}", what, n); };
    check.out(name("chain"), b.relu(b.add(b.mul(x, 2.0), 0.25)));
    check.out(name("floor"), b.cast(b.unary("floor", b.mul(x, 10.0)), DType::i32));
    check.out(name("compared"), b.call("less", {x, b.scalar(DType::f32, 0.1)}));
    // A group's reductions of a long row take PoCL two minutes to compile; group_reduction_test.cpp has shorter ones.
    const bool large = n > 1000000, reduces = !large || tests_all();
    if (reduces) {
      check.out(name("sum"), b.reduce("reduce_sum", x, {0}, false));
      check.out(name("sum of squares"), b.reduce("reduce_sum", b.mul(x, x), {0}, true));
    }
    if (reduces && n > 0) {
      check.out(name("largest"), b.reduce("reduce_max", x, {0}, false));
      check.out(name("mean"), b.reduce("reduce_mean", x, {0}, false));
      check.out(name("where the smallest is"), b.arg("argmin", x, 0, false));
      check.out(name("softmax"), b.softmax(x));
    }
    check.check(2e-6, !large);
  }
}

TEST_CASE("reductions over every choice of axes, of every element type") {
  for (const DType dtype : {DType::f32, DType::i32, DType::u32, DType::i64, DType::i8, DType::u8, DType::f64}) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input(dtype, {3, 5, 17}, is_signed(dtype) ? -3 : 0, 4);
    const std::vector<Ints> choices = dtype == DType::f32 ? std::vector<Ints>{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}
                                                          : std::vector<Ints>{{1}, {2}, {0, 1, 2}};
    for (const Ints& axes : choices) {
      const bool keep = axes[0] == 1;
      for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
        if (std::string_view(op) == "reduce_prod" && axes.size() == 3 && is_float(dtype)) continue;
        check.out(fmt::format("{} {} over {}", op, name_of(dtype), fmt::join(axes, ",")), b.reduce(op, x, axes, keep));
      }
    }
    for (const std::int64_t axis : {0, 1, 2}) {
      // Small integers: every row has ties.
      for (const bool last : {false, true}) {
        check.out(fmt::format("argmax {} {} {}", name_of(dtype), axis, last), b.arg("argmax", x, axis, axis == 1, last));
        check.out(fmt::format("argmin {} {} {}", name_of(dtype), axis, last), b.arg("argmin", x, axis, axis == 1, last));
      }
    }
    check.check(2e-6, dtype == DType::f32);
  }
}

TEST_CASE("rows: softmax on every axis, norms over one and several axes") {
  PlanCheck check;
  Builder& b = check.b;
  for (const Ints& shape : {Ints{3, 5, 17}, Ints{2, 1, 1}, Ints{1, 4, 64}, Ints{2, 3, 6}}) {
    Value* x = b.mul(check.input(shape), 3.0);
    const auto name = [&](std::string_view what, std::int64_t axis) {
      return fmt::format("{} of {} from {}", what, fmt::join(shape, "x"), axis);
    };
    for (const std::int64_t axis : {0, 1, 2}) {
      check.out(name("softmax", axis), b.softmax(x, axis));
      check.out(name("log softmax", axis), b.log_softmax(x, axis));
      const Ints tail(shape.begin() + axis, shape.end());
      Value *scale = check.input(tail), *bias = check.input(tail);
      check.out(name("layer norm", axis), b.layer_norm(x, scale, axis == 1 ? nullptr : bias, axis, 1e-3));
      check.out(name("rms norm", axis), b.rms_norm(x, scale, axis, 1e-3));
    }
  }
  // Work before and after in the same kernel, on a transposed operand.
  Value* y = check.input({6, 4, 9});
  check.out("row with neighbours", b.relu(b.add(b.softmax(b.transpose(b.tanh(y), {2, 0, 1}), 2), -0.1)));
  check.out("softmax, moved and scaled", b.mul(b.transpose(b.softmax(y, 2), {0, 2, 1}), check.input({9, 1})));
  check.check();
}

TEST_CASE("running sums in both directions") {
  PlanCheck check;
  Builder& b = check.b;
  for (const DType dtype : {DType::f32, DType::i64, DType::i32}) {
    Value* x = check.input(dtype, {3, 17, 2}, -3, 4);
    for (const std::int64_t axis : {0, 1, 2}) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true})
          check.out(fmt::format("{} {} {} {}", name_of(dtype), axis, exclusive, reverse),
                    b.cumsum(x, axis, exclusive, reverse));
      }
    }
  }
  check.check();
}

TEST_CASE("matrix products: transposed operands, broadcast batches, vectors") {
  for (const bool constant : {false, true}) {
    PlanCheck check;
    Builder& b = check.b;
    const auto right = [&](const Ints& shape) {
      return constant ? b.constant(random_tensor(DType::f32, shape, 11)) : check.input(shape);
    };
    const std::vector<Ints> sizes = {{1, 1, 1},   {3, 17, 5},   {17, 33, 65},  {8, 16, 64}, {5, 1, 19},
                                     {1, 40, 16}, {16, 70, 32}, {24, 300, 48}, {80, 90, 33}};
    for (const Ints& s : sizes) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          Value* x = check.input(ta ? Ints{s[1], s[0]} : Ints{s[0], s[1]});
          Value* w = right(tb ? Ints{s[2], s[1]} : Ints{s[1], s[2]});
          check.out(fmt::format("{} by hand {} {}", fmt::join(s, "x"), ta, tb), b.matmul(x, w, ta, tb));
        }
      }
    }
    const std::vector<std::pair<Ints, Ints>> batches = {
        {{2, 3, 5, 7}, {7, 9}},       {{5, 7}, {2, 3, 7, 9}},        {{2, 3, 5, 7}, {2, 3, 7, 9}},
        {{2, 1, 5, 7}, {1, 3, 7, 9}}, {{1, 3, 5, 7}, {2, 1, 7, 16}}, {{3, 5, 7}, {2, 1, 7, 32}},
        {{2, 3, 5, 7}, {3, 7, 64}},   {{4, 1, 7}, {4, 7, 1}},        {{2, 2, 6, 8}, {2, 1, 8, 16}}};
    for (const auto& [sa, sb] : batches) {
      check.out(fmt::format("batches {} and {}", fmt::join(sa, "x"), fmt::join(sb, "x")), b.matmul(check.input(sa), right(sb)));
      Ints flipped = sb;
      std::swap(flipped[flipped.size() - 1], flipped[flipped.size() - 2]);
      check.out(fmt::format("batches {} and {} flipped", fmt::join(sa, "x"), fmt::join(sb, "x")),
                b.matmul(check.input(sa), right(flipped), false, true));
    }
    check.check(2e-6, !constant);
  }
}

TEST_CASE("matrix products with work before and after in their kernel") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({2, 9, 20}), *w = b.constant(random_tensor(DType::f32, {20, 37}, 3)), *v = check.input({20, 32});
  Value* ragged = b.constant(random_tensor(DType::f32, {20, 21}, 4));
  check.out("rectified operand", b.matmul(b.relu(b.add(x, 0.1)), w));
  Value *tall = check.input({90, 48}), *scale = check.input({48});
  check.out("transposed operand, scaled", b.matmul(b.relu(b.mul(tall, scale)), check.input({90, 64}), true, false));
  check.out("normalised operand, constant weights", b.add(b.matmul(b.mul(x, check.input({20})), w), check.input({37})));
  check.out("rectified operand, weights of run time", b.matmul(b.relu(x), v));
  check.out("computed weights", b.matmul(x, b.tanh(v)));
  check.out("both computed", b.matmul(b.tanh(x), b.relu(v)));
  check.out("transposed result", b.transpose(b.relu(b.matmul(x, w)), {0, 2, 1}));
  check.out("reshaped result", b.reshape(b.matmul(x, w), {2, 3, 3, 37}));
  check.out("two results", b.relu(b.matmul(x, ragged)));
  Value* shared = b.matmul(x, ragged);
  check.out("shared", shared);
  check.out("shared, then rectified", b.relu(shared));
  check.out("as integers", b.cast(b.unary("floor", b.mul(b.matmul(x, ragged), 3.0)), DType::i32));
  check.out("compared", b.call("less", {b.matmul(x, ragged), b.scalar(DType::f32, 0.25)}));
  check.out("masked", b.where(check.input(DType::boolean, {9, 21}, 0, 2), b.matmul(x, ragged), b.scalar(DType::f32, -1)));
  check.out("with integers", b.mul(b.matmul(x, ragged), b.cast(check.input(DType::i32, {21}, -3, 4), DType::f32)));
  check.out("with long integers", b.mul(b.matmul(x, ragged), b.cast(check.input(DType::i64, {9, 1}, -3, 4), DType::f32)));
  check.out("with bytes", b.mul(b.matmul(x, ragged), b.cast(check.input(DType::u8, {21}, 0, 200), DType::f32)));
  check.out("constant operand", b.matmul(b.constant(random_tensor(DType::f32, {4, 20}, 6)), v));
  check.out("operand of one number", b.matmul(b.constant(random_tensor(DType::f32, {4, 8}, 6, 2, 2)), check.input({8, 16})));
  check.out("weights of one number", b.matmul(check.input({5, 8}), b.constant(random_tensor(DType::f32, {8, 3}, 6, 2, 2))));
  check.out("long sum", b.matmul(check.input({3, 2000}), b.constant(random_tensor(DType::f32, {2000, 18}, 8))));
  check.out("long sum of run time", b.matmul(check.input({3, 2000}), check.input({2000, 18})));
  check.out("of doubles", b.matmul(check.input(DType::f64, {3, 5}), check.input(DType::f64, {5, 4})));
  check.out("of integers", b.matmul(check.input(DType::i32, {3, 5}, -9, 9), check.input(DType::i32, {5, 4}, -9, 9)));
  check.check(3e-6);
}

TEST_CASE("convolutions of one to three dimensions with all attributes") {
  PlanCheck check;
  Builder& b = check.b;
  struct Case {
    Ints x, w;
    ConvOptions options;
  };
  const std::vector<Case> cases = {
      {{2, 3, 17}, {5, 3, 3}, {.strides = {2}, .dilations = {2}, .pads = {1, 2}}},
      {{1, 4, 9, 8}, {6, 4, 1, 1}, {}},
      {{2, 4, 9, 8}, {6, 2, 3, 2}, {.strides = {1, 2}, .pads = {1, 0, 2, 1}, .group = 2}},
      {{1, 6, 7, 7}, {12, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 6}},
      {{1, 3, 4, 5, 6}, {7, 3, 2, 3, 2}, {.strides = {1, 2, 1}, .pads = {1, 0, 1, 0, 1, 0}}},
      {{1, 4, 3, 4, 5}, {8, 2, 2, 2, 2}, {.dilations = {1, 2, 1}, .group = 2}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{1, 20, 6, 6}, {40, 20, 3, 3}, {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}},
  };
  for (const Case& c : cases) {
    const std::string name = fmt::format("{} by {}", fmt::join(c.x, "x"), fmt::join(c.w, "x"));
    Value* x = check.input(c.x);
    Value* bias = b.constant(random_tensor(DType::f32, {c.w[0]}, 5));
    check.out(name + ", constant weights", b.conv(x, b.constant(random_tensor(DType::f32, c.w, 4)), bias, c.options));
    check.out(name + ", weights of run time", b.relu(b.conv(x, check.input(c.w), nullptr, c.options)));
    check.out(name + ", computed operand",
              b.conv(b.tanh(x), b.constant(random_tensor(DType::f32, c.w, 9)), nullptr, c.options));
  }
  check.check(3e-6);
}

TEST_CASE("long sums of convolutions and products are added up from short ones") {
  PlanCheck check;
  Builder& b = check.b;
  const ConvOptions padded{.pads = {1, 1, 1, 1}};
  for (const std::int64_t channels : {96, 200, 512}) {
    Value* x = check.input(DType::f32, {1, channels, 6, 6}, 1, 2);
    const HostTensor w = random_tensor(DType::f32, {32, channels, 3, 3}, 4, 1, 2);
    check.out(fmt::format("{} channels", channels), b.conv(x, b.constant(w), nullptr, padded));
    check.out(fmt::format("{} channels, weights of run time", channels), b.conv(x, check.input(w), nullptr, padded));
  }
  check.out("product", b.matmul(check.input(DType::f32, {20, 4600}, 1, 2), check.input(DType::f32, {4600, 32}, 1, 2)));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 6e-7, wanted) == "");
}

TEST_CASE("a long sum with an infinite term is infinite, not the difference of infinities that rounding took") {
  PlanCheck check;
  const auto with_infinity = [&](Ints shape) {
    HostTensor x = random_tensor(DType::f32, std::move(shape), 3);
    x.set(x.elements() / 3, INFINITY);
    return check.input(std::move(x));
  };
  check.out("along rows", check.b.reduce("reduce_sum", with_infinity({2, 9000}), {1}, false));
  check.out("down columns", check.b.reduce("reduce_sum", with_infinity({900, 17}), {0}, false));
  check.out("one result", check.b.reduce("reduce_sum", with_infinity({90, 400}), {0, 1}, false));
  check.check();
}

TEST_CASE("sums down columns and pools of many channels: strips of vectors, and what they leave") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({50, 150});
  check.out("columns", b.reduce("reduce_sum", x, {0}, false));
  check.out("squares of a difference", b.reduce("reduce_mean", b.mul(b.sub(x, check.input({150})), x), {0}, false));
  check.out("largest", b.relu(b.reduce("reduce_max", x, {0}, false)));
  check.out("long columns", b.reduce("reduce_sum", check.input({600, 130}), {0}, false));
  Value* image = b.transpose(check.input({2, 7, 8, 150}), {0, 3, 1, 2});
  const PoolOptions padded{.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}};
  check.out("max pool", b.transpose(b.max_pool(image, padded), {0, 2, 3, 1}));
  check.out("average pool", b.transpose(b.relu(b.avg_pool(image, padded)), {0, 2, 3, 1}));
  check.symbols = {{"C", 141}};
  check.out("columns of a number that the run knows",
            b.reduce("reduce_sum", check.input(random_tensor(DType::f32, {40, 141}, 5), {"", "C"}), {0}, false));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 2e-6, wanted) == "");
}

TEST_CASE("rows that strips do not fill end with a strip that overlaps the one before") {
  // Rows from a vector and a column to several strips, and what is no whole vector.
  for (const std::int64_t columns : {9, 12, 17, 20, 31, 33, 49, 63, 65, 100, 196}) {
    CAPTURE(columns);
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input({3, 5, columns});
    check.out("sums", b.relu(b.reduce("reduce_sum", x, {1}, false)));
    check.out("of two", b.reduce("reduce_max", b.mul(x, check.input({columns})), {1}, false));
    const auto wanted = evaluate(*check.graph, check.inputs);
    for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
  }
}

TEST_CASE("pooling with pads, strides, dilations and partial windows") {
  PlanCheck check;
  Builder& b = check.b;
  Value* image = check.input({2, 5, 9, 11});
  std::vector<PoolOptions> all = {{.kernel = {2, 2}, .strides = {2, 2}},
                                  {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}},
                                  {.kernel = {3, 2}, .strides = {1, 3}, .pads = {0, 1, 2, 0}},
                                  {.kernel = {3, 3}, .strides = {2, 2}, .dilations = {2, 1}, .pads = {1, 1, 1, 1}},
                                  {.kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = true},
                                  {.kernel = {2, 3}, .strides = {3, 2}, .pads = {1, 1, 1, 1}, .ceil_mode = true}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    check.out(fmt::format("largest {}", i), b.max_pool(image, all[i]));
    check.out(fmt::format("average {}", i), b.avg_pool(image, all[i]));
    all[i].count_include_pad = true;
    check.out(fmt::format("average with pads {}", i), b.relu(b.avg_pool(b.mul(image, 2.0), all[i])));
  }
  check.out("one dimension", b.max_pool(check.input({1, 3, 17}), {.kernel = {3}, .strides = {2}}));
  check.out("three dimensions", b.avg_pool(check.input({1, 2, 5, 6, 7}), {.kernel = {2, 3, 2}, .strides = {1, 2, 2}}));
  check.check();
}

TEST_CASE("movement is read in place: transpose, slice, pad, expand, concat, reshape") {
  PlanCheck check;
  Builder& b = check.b;
  for (const DType dtype : {DType::f32, DType::i64, DType::u8, DType::boolean}) {
    const bool truth = dtype == DType::boolean;
    Value *x = check.input(dtype, {4, 5, 6}, 0, truth ? 2 : 9), *y = check.input(dtype, {4, 3, 6}, 0, truth ? 2 : 9);
    const auto name = [&](std::string_view what) { return fmt::format("{} {}", name_of(dtype), what); };
    check.out(name("transposed"), b.transpose(x, {2, 0, 1}));
    check.out(name("sliced"), b.slice(x, exprs({1, 0, 2}), exprs({2, 5, 2}), {1, 1, 2}));
    check.out(name("flipped"), b.slice(x, exprs({3, 4, 5}), exprs({4, 3, 3}), {-1, -2, -2}));
    check.out(name("expanded"), b.expand(b.reshape(y, {4, 1, 3, 6}), {4, 2, 3, 6}));
    check.out(name("concatenated"), b.concat({x, y, x}, 1));
    check.out(name("reshaped across"), b.reshape(b.transpose(x, {1, 0, 2}), {10, 12}));
    if (truth) continue;
    for (const char* mode : {"constant", "edge", "reflect"})
      check.out(name(mode), b.pad(x, exprs({1, 2, 0}), exprs({2, 0, 3}), mode[0] == 'c' ? 7 : 0, mode));
  }
  Value *u = check.input({3, 4, 5}), *v = check.input({3, 4, 5});
  for (const std::int64_t axis : {0, 1, 2}) {
    check.out(fmt::format("sums joined on {}", axis), b.concat({b.add(u, v), b.relu(u), b.add(u, v)}, axis));
    Value* one = b.exp(u);
    check.out(fmt::format("one twice on {}", axis), b.concat({one, one}, axis));
    check.out(fmt::format("joined within joined on {}", axis), b.concat({b.concat({b.tanh(u), v}, axis), b.relu(v)}, axis));
    check.out(fmt::format("read by a sum on {}", axis), b.reduce("reduce_sum", b.concat({u, b.tanh(v)}, axis), {axis}, false));
  }
  check.out("pad of a pad",
            b.pad(b.relu(b.pad(u, exprs({0, 1, 1}), exprs({0, 1, 1}), -2)), exprs({1, 0, 1}), exprs({0, 0, 0}), 5));
  check.out("slice of a concat", b.slice(b.concat({u, b.mul(v, 3.0)}, 2), exprs({0, 1, 3}), exprs({3, 2, 5}), {1, 1, 1}));
  check.out("exp of a pad", b.exp(b.pad(u, exprs({0, 0, 2}), exprs({0, 0, 2}), 1)));
  check.check();
}

TEST_CASE("gathers: negative positions, several axes, nd and elements") {
  PlanCheck check;
  Builder& b = check.b;
  Value* data = check.input({4, 5, 6});
  for (const DType dtype : {DType::i64, DType::i32}) {
    Value* positions = check.input(ints_of(dtype, {2, 3}, {0, -1, 3, 2, -4, 1}));
    for (const std::int64_t axis : {0, 1, 2})
      check.out(fmt::format("{} along {}", name_of(dtype), axis), b.relu(b.gather(data, positions, axis)));
    Value* pairs = check.input(ints_of(dtype, {3, 2}, {0, -1, 3, 2, -4, 1}));
    check.out(fmt::format("nd {}", name_of(dtype)), b.gather_nd(data, pairs));
    check.out(fmt::format("nd in batches {}", name_of(dtype)),
              b.gather_nd(data, check.input(ints_of(dtype, {4, 2, 1}, {0, 4, 1, 2, -1, -5, 3, 0})), 1));
    check.out(fmt::format("all coordinates {}", name_of(dtype)),
              b.gather_nd(data, check.input(ints_of(dtype, {2, 3}, {0, -1, 3, 2, -4, 1}))));
    for (const std::int64_t axis : {0, 1, 2}) {
      Value* elements = check.input(dtype, {4, 3, 2}, -2, 2);
      if (axis == 1)
        check.out(fmt::format("elements of sums {}", name_of(dtype)), b.gather_elements(b.add(data, 1.0), elements, axis));
      check.out(fmt::format("elements {} {}", name_of(dtype), axis), b.gather_elements(data, elements, axis));
    }
  }
  Value* table = check.input({10, 16});
  Value* words = check.input(DType::i64, {7}, 0, 10);
  check.out("embedding and norm", b.softmax(b.add(b.gather(table, words), check.input({7, 16}))));
  check.out("embedding product", b.matmul(b.gather(table, words), b.constant(random_tensor(DType::f32, {16, 12}, 2))));
  check.out("computed positions", b.gather(table, b.arg("argmax", check.input({7, 10}), 1, false)));
  check.out("of integers", b.gather(check.input(DType::i64, {10}, -50, 50), words));
  check.check();
}

TEST_CASE("symbolic dimensions hold for every binding of one plan") {
  for (const auto& [n, t] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {2, 17}, {5, 64}}) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {n, t, 8}, -1, 1, {"N", "T", ""});
    Value* w = b.constant(random_tensor(DType::f32, {8, 24}, 3));
    const Expr big_n = Expr::symbol("N"), big_t = Expr::symbol("T");
    Value* product = b.relu(b.matmul(x, w));
    check.out("product", product);
    check.out("scores", b.softmax(b.matmul(product, product, false, true)));
    check.out("mixed values", b.matmul(b.softmax(b.matmul(x, x, false, true)), product));
    check.out("sum over time", b.reduce("reduce_mean", x, {1}, false));
    check.out("time last", b.softmax(b.transpose(x, {0, 2, 1})));
    check.out("flat", b.reshape(b.exp(x), {big_n * big_t, Expr(8)}));
    check.out("last of each", b.slice(x, {Expr(0), big_t - 1, Expr(0)}, {big_n, Expr(1), Expr(8)}, {1, 1, 1}));
    check.out("reversed", b.slice(x, {Expr(0), big_t - 1, Expr(0)}, {big_n, big_t, Expr(8)}, {1, -1, 1}));
    check.out("joined in time", b.concat({b.relu(x), x}, 1));
    check.out("padded in time", b.pad(x, exprs({0, 2, 0}), exprs({0, 1, 0}), 1));
    check.out("causal mask",
              b.where(b.call("less_equal", {b.iota({big_t, big_t}, 1, DType::i64), b.iota({big_t, Expr(1)}, 0, DType::i64)}),
                      b.matmul(x, x, false, true), b.scalar(DType::f32, -10)));
    check.out("depth of run time", b.matmul(x, x, true, false));
    check.out("running sum", b.cumsum(x, 1));
    check.out("position", b.arg("argmax", x, 1, false));
    Value* image = check.input(DType::f32, {n, 4, t, 9}, -1, 1, {"N", "", "T", ""});
    check.out("convolution", b.conv(image, b.constant(random_tensor(DType::f32, {6, 4, 3, 3}, 5)), nullptr,
                                    {.strides = {2, 1}, .pads = {1, 1, 1, 1}}));
    check.out("one tap", b.relu(b.conv(image, b.constant(random_tensor(DType::f32, {6, 4, 1, 1}, 5)), nullptr, {})));
    check.out("depthwise", b.conv(image, b.constant(random_tensor(DType::f32, {4, 1, 3, 3}, 5)), nullptr,
                                  {.pads = {1, 1, 1, 1}, .group = 4}));
    check.out("pool", b.max_pool(image, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}));
    check.check(3e-6, n == 2);
  }
}

TEST_CASE("a number behind a guard that whole vectors share is read once for a vector") {
  PlanCheck check;
  Builder& b = check.b;
  Value *row = check.input(DType::f32, {1024}), *one = check.input(DType::f32, {1});
  Value* wide = b.pad(b.add(row, b.expand(one, {Expr(1024)})), {Expr(0)}, {Expr(512)}, 3);
  check.out("summed", b.reduce("reduce_sum", b.mul(wide, wide), {0}, false));
  check.out("stored", b.concat({b.mul(b.expand(one, {Expr(64)}), 2), b.relu(row)}, 0));
  check.check(1e-6);
}

TEST_CASE("nothing is computed of empty tensors, one operator a kernel too") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    PlanCheck check;
    Value* x = check.input(dtype, {6, 5, 0});
    check.out("chain", check.b.mul(x, check.b.relu(check.b.add(x, 3))));
    check.check();
  }
}
