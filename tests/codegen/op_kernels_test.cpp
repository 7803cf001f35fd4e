// Kernels of every operator family against the reference, over awkward sizes and all attributes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/codegen/codegen.h"
#include "compiler/ops/op_list.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("scalars of rank 0") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input(Ints{}), *y = check.input(Ints{}), *v = check.input({5});
  check.out("sum", b.add(x, y));
  check.out("broadcast", b.mul(v, x));
  check.out("reshaped", b.reshape(x, {1, 1}));
  check.out("from rank 2", b.reshape(b.exp(b.reshape(y, {1, 1})), {}));
  check.out("gathered", b.gather(v, check.input(ints_of(DType::i64, {}, {-2}))));
  check.out("reduced", b.relu(b.reduce("reduce_sum", v, {0}, false)));
  check.check();
}

TEST_CASE("empty tensors give empty results and empty sums") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({0, 4}), *y = check.input({4, 0}), *z = check.input({4, 5});
  check.out("pointwise", b.relu(b.mul(x, 2.0)));
  check.out("transposed", b.exp(b.transpose(x, {1, 0})));
  check.out("sum over nothing", b.reduce("reduce_sum", x, {0}, false));
  check.out("product over nothing", b.reduce("reduce_prod", x, {0}, true));
  check.out("sum of no rows", b.reduce("reduce_sum", x, {1}, false));
  check.out("softmax of no rows", b.softmax(x, 1));
  check.out("product without depth", b.add(b.matmul(y, x), 1.0));
  check.out("product without rows", b.matmul(x, z));
  check.out("product without columns", b.matmul(b.transpose(z, {1, 0}), y));
  check.out("concatenation with nothing", b.concat({b.relu(x), b.exp(b.transpose(z, {1, 0})), b.relu(x)}, 0));
  check.out("convolution of no images",
            b.conv(check.input({0, 3, 5, 5}), b.constant(random_tensor(DType::f32, {4, 3, 3, 3}, 1)), nullptr, {}));
  check.out("pooling of no images", b.max_pool(check.input({0, 3, 5, 5}), {.kernel = {2, 2}}));
  check.out("gathered nothing", b.gather(z, check.input(HostTensor(DType::i64, {0})), 1));
  check.out("running sum of nothing", b.cumsum(x, 0));
  check.out("padded nothing", b.pad(x, exprs({1, 0}), exprs({1, 0}), 3));
  check.check();
}

TEST_CASE("a negative number in the kernel's text can be negated") {
  PlanCheck check;
  Builder& b = check.b;
  // The only element of a constant becomes a number, after all folding.
  Value* at = check.input(ints_of(DType::i64, {1}, {-1}));
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    HostTensor number(dtype, {1});
    number.set(0, -3);
    Value* taken = b.gather_elements(b.constant(std::move(number)), at, 0);
    check.out(std::string(name_of(dtype)), b.mul(b.unary("neg", taken), check.input(dtype, {1}, 1, 5)));
  }
  check.check();
}

TEST_CASE("powers of e from nothing to infinity") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> points = {-kInf,   -1e30f, -200.0f, -110.0f, -104.0f, -103.98f, -103.9f, -100.0f, -90.0f, -88.0f, -87.0f,
                               -1e-30f, 0.0f,   1.0f,    88.0f,   88.7f,   89.0f,    104.0f,  200.0f,  1e30f,  kInf,   NAN};
  points.insert(points.end(), points.rbegin(), points.rend());  // each in a vector, wherever those end
  HostTensor x(DType::f32, {static_cast<std::int64_t>(points.size())});
  for (std::size_t i = 0; i < points.size(); ++i) x.set(static_cast<std::int64_t>(i), points[i]);
  PlanCheck plan;
  plan.out("powers", plan.b.exp(plan.input(std::move(x))));
  PlanRunner runner(module_of(copy_graph(*plan.graph)), default_options());
  const HostTensor found = runner.run(plan.inputs).at(0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(points[i]);
    const float wanted = static_cast<float>(std::exp(static_cast<double>(points[i])));
    const auto y = static_cast<float>(found.at(static_cast<std::int64_t>(i)));
    if (std::isfinite(wanted))
      CHECK(std::fabs(y - wanted) <= 2e-7f * wanted + 2 * std::numeric_limits<float>::denorm_min());
    else
      CHECK((std::isnan(wanted) ? std::isnan(y) : y == wanted));
  }
}

TEST_CASE("positions of NaN are the first or the last") {
  PlanCheck check;
  Builder& b = check.b;
  HostTensor x(DType::f32, {3, 5});
  const double values[] = {1, NAN, INFINITY, NAN, 0, -INFINITY, 2, 3, 1, NAN, 4, 4, -1, 5, 5};
  for (std::int64_t i = 0; i < 15; ++i) x.set(i, values[i]);
  Value* v = check.input(std::move(x));
  for (const bool last : {false, true}) {
    check.out(fmt::format("largest {}", last), b.arg("argmax", v, 1, false, last));
    check.out(fmt::format("smallest {}", last), b.arg("argmin", v, 1, false, last));
  }
  check.check();
}

TEST_CASE("reductions of bool and positions of ties") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input(DType::boolean, {3, 40}, 0, 2);
  for (const std::int64_t axis : {0, 1}) {
    check.out(fmt::format("any over {}", axis), b.reduce("reduce_max", x, {axis}, false));
    check.out(fmt::format("all over {}", axis), b.reduce("reduce_min", x, {axis}, false));
  }
  Value* ties = b.unary("floor", b.mul(check.input({4, 33}), 1.5));
  for (const bool last : {false, true}) {
    check.out(fmt::format("largest {}", last), b.arg("argmax", ties, 1, false, last));
    check.out(fmt::format("smallest {}", last), b.arg("argmin", ties, 0, false, last));
  }
  check.out("counted", b.reduce("reduce_sum", b.cast(x, DType::i64), {0, 1}, false));
  check.out("counted as i32", b.reduce("reduce_sum", b.cast(x, DType::i32), {1}, false));
  check.check();
}

TEST_CASE("positions outside the data read the nearest element and nothing behind it") {
  Graph graph;
  Builder b(graph, "node");
  Value* data = graph.add_input("data", {DType::f32, {4}});
  Value* at = graph.add_input("at", {DType::i64, {5}});
  graph.add_output("y", b.gather(data, at));
  const HostTensor x = random_tensor(DType::f32, {4}, 1),
                   positions = ints_of(DType::i64, {5}, {4, 1000000000000, -5, -1000000000000, -1});
  for (const std::string& target : target_names()) {
    CompileOptions options = default_options();
    options.target = find_target(target);
    options.target.has.fp64 = true;  // as the device under test has it
    PlanRunner runner(module_of(copy_graph(graph)), options);
    const HostTensor y = runner.run(std::vector{x, positions}).at(0);
    const std::vector<double> wanted = {x.at(3), x.at(3), x.at(0), x.at(0), x.at(3)};
    for (std::int64_t i = 0; i < 5; ++i) CHECK(y.at(i) == wanted[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("inputs, constants and repeated values as results") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({3, 4});
  Value* c = b.constant(random_tensor(DType::f32, {2, 3}, 1));
  Value* y = b.relu(x);
  check.out("input", x);
  check.out("input again", x);
  check.out("constant", c);
  check.out("constant again", c);
  check.out("one number", b.constant(random_tensor(DType::i64, {5}, 1, 3, 4)));
  check.out("result", y);
  check.out("result again", y);
  check.out("after the result", b.exp(y));
  check.out("input moved", b.transpose(x, {1, 0}));
  check.out("counted", b.iota({Expr(3), Expr(4)}, 1, DType::f32, 5, -2));
  check.out("largest integers", b.constant(ints_of(DType::i64, {2}, {INT64_MAX, INT64_MIN})));
  Value* joined = b.concat({x, y, x}, 0);
  check.out("joined", joined);
  check.out("joined again", joined);
  check.out("part of joined", b.slice_axis(joined, 0, 3, 3));
  check.check(1e-6);
}

TEST_CASE("loops carry values and collect results") {
  for (const std::int64_t trips : {1, 2, 5}) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {trips, 6}, -1, 1, {"T", ""});
    Value* start = check.input({6});
    const Expr trip = x->type.shape[0];
    auto body = std::make_unique<Graph>();
    body->name = "step";
    Value* h = body->add_input("h", start->type);
    Value* k = body->add_input("k", start->type);
    Value* all = body->add_input("x", x->type);
    Builder inner(*body, "step");
    Value* row = inner.reshape(inner.slice_axis(all, 0, Expr::axis("t", trip), 1), {6});
    Value* next = inner.tanh(inner.add(inner.mul(h, 0.5), row));
    body->add_output("h", next);
    body->add_output("k", h);  // the other carried value's last one
    body->add_output("collected", inner.add(next, k));
    const Node* loop = b.loop(trip, "t", {start, b.relu(start)}, {x}, std::move(body));
    check.out("last", loop->output(0));
    check.out("the one before", loop->output(1));
    check.out("collected", b.mul(loop->output(2), 2.0));
    check.out("collected as they are", loop->output(2));
    check.check();
  }
}

TEST_CASE("work-items of a GPU copy windows as vectors where rows are whole vectors") {
  // A weight gradient of few channels unfolds a copy of the image whose channels are innermost.
  const auto copies_vectors = [](std::int64_t channels) {
    PlanCheck check;
    check.out("gradient", check.b.call("conv_weight_grad", {check.input({2, channels, 17, 14}), check.input({2, 8, 9, 12})},
                                       {{"kernel", Ints{3, 3}},
                                        {"strides", Ints{2, 1}},
                                        {"dilations", Ints{1, 1}},
                                        {"pads", Ints{1, 0, 1, 0}},
                                        {"group", std::int64_t{1}}}));
    CHECK(check.problem("gpu", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
    CompileOptions options = default_options();
    options.target = find_target("gpu");
    options.disabled = {"fuse_in_work_group"};
    const Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
    return std::any_of(schedule.kernels.begin(), schedule.kernels.end(), [&](const Kernel& kernel) {
      if (kernel.anchor != Anchor::pointwise) return false;
      const GeneratedKernel g = generate(kernel, schedule.buffers, options.target);
      std::int64_t elements = 1;
      for (const Axis& axis : kernel.axes) elements *= axis.extent.value();
      return product(g.groups).value() * g.local[0] < elements;
    });
  };
  CHECK(copies_vectors(4));
  CHECK_FALSE(copies_vectors(3));
}
