// Every elementwise operator of the list in generated kernels, for every element type.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,    DType::i64,
                            DType::u8,  DType::u16, DType::u32, DType::u64, DType::boolean};

std::vector<double> samples(DType dtype, int arity) {
  if (dtype == DType::boolean) return {0, 1};
  if (is_float(dtype)) {
    if (arity == 3) return {0, 1, -2.5, INFINITY, NAN, 0.75, -0.5};
    return {0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.75, -3.75, 0.9375, 7, -7, 1e-10, INFINITY, -INFINITY, NAN};
  }
  const double bits = 8 * static_cast<double>(size_bytes(dtype)) - (is_signed(dtype) ? 1 : 0);
  std::vector<double> list{0, 1, 2, 3, 7, 100, std::exp2(bits - 1)};
  if (is_signed(dtype))
    list.insert(list.end(), {-1, -3, -100, -std::exp2(bits)});
  else
    list.push_back(bits > 53 ? std::exp2(bits) - 4096 : std::exp2(bits) - 1);
  return list;
}

// All combinations of the samples.
std::vector<HostTensor> operands(DType dtype, int arity, bool condition) {
  const auto type_of = [&](int operand) { return condition && operand == 0 ? DType::boolean : dtype; };
  std::int64_t count = 1;
  for (int i = 0; i < arity; ++i) count *= static_cast<std::int64_t>(samples(type_of(i), arity).size());
  std::vector<HostTensor> list;
  std::int64_t stride = 1;
  for (int operand = 0; operand < arity; ++operand) {
    const auto values = samples(type_of(operand), arity);
    HostTensor x(type_of(operand), {count});
    const auto size = static_cast<std::int64_t>(values.size());
    for (std::int64_t i = 0; i < count; ++i) x.set(i, values[static_cast<std::size_t>(i / stride % size)]);
    stride *= size;
    list.push_back(std::move(x));
  }
  return list;
}

// One kernel that computes every operator of `arity` and picks one a row; the operators' names, by row.
std::vector<std::string> add_all(PlanCheck& check, DType dtype, int arity) {
  std::vector<Value*> results;
  std::vector<std::string> names;
  std::vector<Value*> plain, conditional;
  for (const OpDef* def : all_ops()) {
    if (!def->scalar || def->min_inputs != arity) continue;
    const bool condition = def->name == "where";
    auto& values = condition ? conditional : plain;
    if (values.empty()) {
      for (HostTensor& x : operands(dtype, arity, condition)) values.push_back(check.input(std::move(x)));
    }
    try {
      Value* y = check.b.call(def->name, values);
      results.push_back(check.b.cast(y, dtype));
      names.emplace_back(def->name);
    } catch (const CompileError&) {
      continue;  // not for this element type: the type rules have their own tests
    }
  }
  for (std::size_t first = 0; first < results.size();) {
    // Rows of one length share a kernel.
    const Expr count = results[first]->type.shape[0];
    std::size_t end = first;
    while (end < results.size() && results[end]->type.shape[0] == count) ++end;
    Value* selector = check.b.iota({Expr(static_cast<std::int64_t>(end - first)), Expr(1)}, 0, DType::i64);
    Value* y = check.b.expand(results[first], {Expr(static_cast<std::int64_t>(end - first)), count});
    for (std::size_t i = first + 1; i < end; ++i) {
      Value* mine = check.b.call("equal", {selector, check.b.scalar(DType::i64, static_cast<double>(i - first))});
      y = check.b.where(mine, results[i], y);
    }
    check.out(fmt::format("{} of {}, {} to {}", arity, name_of(dtype), names[first], names[end - 1]), y);
    first = end;
  }
  return names;
}

// Rows compared one by one: each has its own magnitude.
std::string rows_problem(const PlanCheck& check, const std::string& target, double tolerance) {
  const auto wanted = evaluate(*check.graph, check.inputs);
  std::string all;
  try {
    CompileOptions options = default_options();
    options.target = find_target(target);
    options.target.has.fp64 = true;  // as the device under test has it
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    const auto found = runner.run(check.inputs);
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      const std::int64_t rows = wanted[t].shape()[0], n = wanted[t].shape()[1];
      for (std::int64_t r = 0; r < rows; ++r) {
        HostTensor a(wanted[t].dtype(), {n}), b(wanted[t].dtype(), {n});
        const std::size_t bytes = a.bytes();
        std::copy_n(found[t].data() + static_cast<std::size_t>(r) * bytes, bytes, a.mutable_data());
        std::copy_n(wanted[t].data() + static_cast<std::size_t>(r) * bytes, bytes, b.mutable_data());
        const std::string one = oclc::difference({a}, {b}, tolerance);
        if (!one.empty()) all += fmt::format("{}: {}: row {}: {}\n", target, check.graph->outputs()[t].first, r, one);
      }
    }
  } catch (const std::exception& error) {
    all += target + ": " + check.graph->outputs()[0].first + ": " + error.what() + "\n";
  }
  return all;
}

bool stores_past_caches(const Graph& graph, const std::string& target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) {
    const bool stores =
        file.source.find("oclc_stream(") != std::string::npos && file.source.find(" oclc_streamed();") != std::string::npos;
    if (stores) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every elementwise operator of the list computes the reference in a generated kernel") {
  std::set<std::string> seen;
  for (const DType dtype : kTypes) {
    PlanCheck check;
    for (const int arity : {1, 2, 3}) {
      for (const std::string& name : add_all(check, dtype, arity)) seen.insert(name);
    }
    for (const std::string& target : target_names()) CHECK(rows_problem(check, target, 2e-6) == "");
  }
  for (const OpDef* def : all_ops()) {
    if (def->scalar) CHECK_MESSAGE(seen.count(std::string(def->name)), "no kernel was tested of " << def->name);
  }
}

TEST_CASE("every element type converts to every other") {
  PlanCheck check;
  for (const DType from : kTypes) {
    // Values that every type can hold: what lies outside a type's range has no portable conversion.
    Value* x = check.input(from, {37}, 0, 2);
    Value* y = check.input(from, {3, 5}, from == DType::boolean ? 0 : 1, from == DType::boolean ? 2 : 100);
    for (const DType to : kTypes) {
      check.out(fmt::format("{} to {}", name_of(from), name_of(to)), check.b.cast(x, to));
      if (to == DType::f32) check.out(fmt::format("larger {} to {}", name_of(from), name_of(to)), check.b.cast(y, to));
    }
  }
  const auto wanted = evaluate(*check.graph, check.inputs);
  for (const char* target : {"cpu", "gpu"}) CHECK(check.problem(target, true, 0, wanted) == "");
}

TEST_CASE("integers wrap at every step of a fused chain") {
  for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::u32, DType::i64}) {
    PlanCheck check;
    Builder& b = check.b;
    const bool sign = is_signed(dtype);
    Value* x = check.input(dtype, {37}, sign ? -128 : 0, sign ? 128 : 256);
    Value* y = check.input(dtype, {37}, sign ? -128 : 0, sign ? 128 : 256);
    Value *sum = b.add(x, y), *product = b.mul(x, y);
    const auto number = [&](double v) { return b.scalar(dtype, v); };
    check.out("sum as float", b.cast(sum, DType::f32));
    check.out("product as i64", b.cast(b.mul(x, y), DType::i64));
    check.out("sum compared", b.call("less", {b.add(x, y), x}));
    check.out("sum compared with a number", b.call("greater", {b.add(x, y), number(100)}));
    check.out("sum divided", b.div(b.add(x, y), number(3)));
    check.out("largest of a sum", b.max(b.add(x, y), x));
    check.out("largest with a number", b.max(b.add(x, y), number(50)));
    check.out("smallest with a number", b.min(x, number(50)));
    check.out("remainder", b.call("mod", {b.sub(x, y), number(7)}));
    check.out("rectified negation", b.relu(b.unary("neg", x)));
    check.out("chosen", b.where(b.call("equal", {sum, product}), product, b.sub(sum, number(1))));
    check.out("size", b.unary("abs", b.sub(x, y)));
    check.out("power", b.pow(x, number(3)));
    check.out("sign", b.unary("sign", b.sub(x, y)));
    check.out("sum of products", b.fma(x, y, number(5)));
    check.out("both", b.call("and", {b.call("less", {x, y}), b.call("not", {b.call("equal", {sum, x})})}));
    const auto wanted = evaluate(*check.graph, check.inputs);
    for (const char* target : {"cpu", "gpu"}) CHECK(check.problem(target, true, 0, wanted) == "");
  }
}

TEST_CASE("results from 32 MiB on are stored past the caches of a CPU") {
  for (const std::int64_t rows : {8000, 8300}) {
    PlanCheck pointwise, row;
    pointwise.out("y", pointwise.b.relu(pointwise.input({rows, 1024})));
    row.out("y", row.b.softmax(row.input({rows, 1024})));
    for (const PlanCheck* check : {&pointwise, &row}) {
      CHECK(stores_past_caches(*check->graph, "cpu") == (rows == 8300));
      CHECK(stores_past_caches(*check->graph, "cpu-256") == (rows == 8300));
      CHECK_FALSE(stores_past_caches(*check->graph, "gpu"));
    }
  }
}

TEST_CASE("what windows write counts with what they read, and neighbours of one work-item count together") {
  const auto of_windows = [](std::int64_t images, std::int64_t stride) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = b.transpose(check.input({images, 112, 112, 32}), {0, 3, 1, 2});
    Value* y = b.conv(x, b.constant(random_tensor(DType::f32, {32, 1, 3, 3}, 5, -1, 1)), nullptr,
                      {.strides = {stride, stride}, .pads = Ints(4, 1), .group = 32});
    check.out("y", b.transpose(y, {0, 2, 3, 1}));
    return stores_past_caches(*check.graph, "cpu");
  };
  CHECK(of_windows(22, 1));        // 34 MiB
  CHECK_FALSE(of_windows(20, 1));  // 31 MiB, and 62 with what is read
  CHECK(of_windows(36, 2));        // 55 MiB become 14
  CHECK_FALSE(of_windows(30, 2));  // 46 MiB become 11
}

// Rows of 1001 elements begin at any place of a vector, of 1000 at whole lines and half ones.
TEST_CASE("what is stored past the caches is what is read next") {
  PlanCheck check;
  check.out("half lines", check.b.reduce("reduce_max", check.b.softmax(check.input({8400, 1000})), {0}, false));
  Value* large = check.b.relu(check.input({8400, 1001}));
  check.out("large", large);
  check.out("norms",
            check.b.reduce("reduce_max",
                           check.b.layer_norm(large, check.b.constant(random_tensor(DType::f32, {1001}, 3, 1, 2)), nullptr),
                           {1}, false));
  check.out("largest", check.b.reduce("reduce_max", large, {0}, false));
  REQUIRE(stores_past_caches(*check.graph, "cpu-256"));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 1e-5, wanted) == "");
}

TEST_CASE("a product with its own sigmoid is one function, unless something else reads the sigmoid") {
  for (const bool shared : {false, true}) {
    PlanCheck check;
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {3, 40}, -90, 90);
    Value* gate = b.sigmoid(x);
    check.out("gated", b.mul(gate, x));
    check.out("other", b.mul(b.sigmoid(check.input({3, 40})), x));
    if (shared) check.out("gate", gate);
    const Compiled c = compile(module_of(copy_graph(*check.graph)), default_options());
    std::string text;
    for (const GeneratedFile& file : c.plan.files) text += file.source;
    CHECK((text.find("oclc_silu(") != std::string::npos) == !shared);
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    for (const std::string& target : target_names()) CHECK(check.problem(target, true, 1e-6, wanted) == "");
  }
}
