// Contractions on a GPU: tiles in local memory, loads of four elements along either axis, ragged edges, taps as one axis with
// the channels, batches, symbolic sizes, prologues and epilogues.
#include <fmt/format.h>

#include "compiler/contraction/gpu/gpu_tiles.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// On targets with room for large tiles and with room for small ones.
void check_on_gpus(const PlanCheck& check, double tolerance = 2e-6) {
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"gpu", "h200"}) CHECK(check.problem(target, true, tolerance, wanted) == "");
}

}  // namespace

TEST_CASE("products of every tile, with operands transposed or not, long and short sums, ragged edges") {
  struct Product {
    std::int64_t m, n, k;
  };
  for (const Product& p :
       {Product{1, 1, 1}, {1, 300, 70}, {2, 5, 129}, {16, 130, 64}, {65, 63, 100}, {70, 36, 68}, {129, 260, 33}}) {
    PlanCheck check;
    Builder& b = check.b;
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        Value* x = check.input(ta ? Ints{p.k, p.m} : Ints{p.m, p.k});
        const Ints shape = tb ? Ints{p.n, p.k} : Ints{p.k, p.n};
        const auto name = [&](const char* what) { return fmt::format("{}x{}x{} {} {} {}", p.m, p.n, p.k, ta, tb, what); };
        check.out(name("run time"), b.matmul(x, check.input(shape), ta, tb));
        check.out(name("constant"), b.relu(b.matmul(x, b.constant(random_tensor(DType::f32, shape, 3)), ta, tb)));
      }
    }
    check_on_gpus(check);
  }
}

TEST_CASE("large products take large tiles") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({640, 72});
  check.out("unit steps", b.matmul(x, check.input({72, 516})));
  check.out("both transposed", b.matmul(check.input({72, 640}), check.input({516, 72}), true, true));
  check.out("ragged", b.matmul(check.input({641, 70}), check.input({70, 515})));
  check_on_gpus(check);
}

TEST_CASE("batches and computed operands of products on a GPU") {
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({2, 3, 37, 64}), *k = check.input({2, 3, 41, 64}), *v = check.input({2, 3, 41, 64});
  Value* scores = b.mul(b.matmul(q, k, false, true), 0.125);
  check.out("scores", scores);
  check.out("attention", b.transpose(b.matmul(b.softmax(scores), v), {0, 2, 1, 3}));
  check.out("computed left", b.matmul(b.relu(q), v, false, true));
  check.out("computed right", b.matmul(q, b.tanh(v), false, true));
  check.out("strided", b.matmul(b.slice(q, exprs({0, 0, 0, 1}), exprs({2, 3, 37, 40}), {1, 1, 1, 1}),
                                b.slice(v, exprs({0, 0, 1, 3}), exprs({2, 3, 40, 61}), {1, 1, 1, 1})));
  check_on_gpus(check);
}

TEST_CASE("a mask of integers of 64 bits is read by whole vectors behind a product on a GPU") {
  PlanCheck check;
  Builder& b = check.b;
  HostTensor mask(DType::i64, {2, 1, 1, 44});
  for (std::int64_t i = 0; i < mask.elements(); ++i) mask.set_int(i, i % 5 == 0 ? 0 : i << 32);
  Value *q = check.input({2, 3, 37, 64}), *k = check.input({2, 3, 44, 64}), *given = check.input(std::move(mask));
  const auto masked = [&](Value* scores, Value* m) {
    return b.where(b.cast(m, DType::boolean), scores, b.scalar(DType::f32, -1e30));
  };
  check.out("masked", masked(b.matmul(q, k, false, true), given));
  Value* ragged = b.slice(k, exprs({0, 0, 0, 0}), exprs({2, 3, 43, 64}), {1, 1, 1, 1});
  check.out("ragged",
            masked(b.matmul(q, ragged, false, true), b.slice(given, exprs({0, 0, 0, 0}), exprs({2, 1, 1, 43}), {1, 1, 1, 1})));
  CompileOptions options = default_options();
  options.target = find_target("h200");
  const std::string source = PlanRunner(module_of(copy_graph(*check.graph)), options).source();
  CHECK(source.find("const long4 ") != std::string::npos);
  check_on_gpus(check);
}

TEST_CASE("convolutions on a GPU: few channels, groups, strides, dilation, padding, one and three dimensions") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](Ints shape) { return b.constant(random_tensor(DType::f32, std::move(shape), 5)); };
  Value* image = check.input({2, 3, 33, 31});
  ConvOptions stem;
  stem.strides = {2, 2};
  stem.pads = {3, 3, 3, 3};
  check.out("stem", b.relu(b.conv(image, weights({24, 3, 7, 7}), check.input({24}), stem)));
  Value* x = check.input({2, 32, 14, 13});
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("3x3", b.add(b.conv(x, weights({40, 32, 3, 3}), nullptr, same), check.input({2, 40, 14, 13})));
  check.out("3x3 of ragged channels", b.conv(check.input({1, 21, 9, 9}), weights({7, 21, 3, 3}), nullptr, same));
  check.out("weights of run time", b.conv(x, check.input({20, 32, 3, 3}), nullptr, same));
  ConvOptions dilated;
  dilated.dilations = {2, 2};
  dilated.pads = {2, 2, 2, 2};
  dilated.group = 4;
  check.out("groups", b.conv(x, weights({48, 8, 3, 3}), nullptr, dilated));
  check.out("1x1", b.conv(x, weights({64, 32, 1, 1}), nullptr, {}));
  check.out("rectified", b.conv(b.relu(x), weights({16, 32, 1, 1}), nullptr, {}));
  check.out("1d", b.conv(check.input({2, 8, 50}), weights({12, 8, 5}), nullptr, {}));
  check.out("3d", b.conv(check.input({1, 4, 6, 7, 8}), weights({6, 4, 3, 3, 3}), nullptr, {}));
  check_on_gpus(check);
}

TEST_CASE("products of symbolic sizes on a GPU") {
  PlanCheck check;
  Builder& b = check.b;
  check.symbols = {{"N", 3}, {"T", 19}};
  Value* x = check.input(random_tensor(DType::f32, {3, 19, 48}, 1), {"N", "T", ""});
  Value* w = b.constant(random_tensor(DType::f32, {48, 50}, 2));
  check.out("rows", b.relu(b.matmul(x, w)));
  Value* scores = b.matmul(x, x, false, true);
  check.out("columns", scores);
  check.out("sums", b.matmul(scores, x));
  check_on_gpus(check);
}

TEST_CASE("long sums on a GPU are added up from short chains") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("long", b.matmul(check.input({8, 20000}), check.input({20000, 8})));
  check_on_gpus(check, 6e-7);
}

TEST_CASE(
    "long sums of few products on a GPU are split into launches: along terms, channels and taps, with prologue and epilogue") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({3, 4096});
  check.out("terms", b.relu(b.add(b.matmul(x, check.input({4096, 20})), check.input({20}))));
  check.out("constant", b.matmul(b.tanh(x), b.constant(random_tensor(DType::f32, {4096, 20}, 3))));
  check.out("transposed", b.matmul(check.input({4096, 9}), check.input({11, 4096}), true, true));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  Value* image = check.input({1, 256, 7, 7});
  Value* y = b.relu(b.conv(image, b.constant(random_tensor(DType::f32, {64, 256, 3, 3}, 5)), check.input({64}), same));
  check.out("channels", y);
  check.out("channels again",
            b.add(b.conv(y, b.constant(random_tensor(DType::f32, {256, 64, 3, 3}, 6)), nullptr, same), image));
  ConvOptions rows;
  Value* column = check.input({2, 15, 96, 4});
  check.out("taps", b.conv(column, b.constant(random_tensor(DType::f32, {8, 15, 96, 4}, 7)), nullptr, rows));
  for (const char* name : {"gpu", "h200"}) {
    CAPTURE(name);
    CompileOptions options = default_options();
    options.target = find_target(name);
    // No product keeps its long sum whole.
    const auto products = [&](bool of_parts) {
      const Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
      return std::count_if(schedule.kernels.begin(), schedule.kernels.end(),
                           [&](const Kernel& k) { return k.contraction && (k.axes[0].name == "part") == of_parts; });
    };
    CHECK(products(true) == 5);
    CHECK(products(false) == 0);
    options.disabled = {"split_k"};
    CHECK(products(true) == 0);
  }
  check_on_gpus(check);
}

TEST_CASE("the text for matrix units stands beside the plain one, as the contract of precision wants it") {
  DeviceFacts facts;
  facts.is_cpu = false;
  facts.vendor = "NVIDIA Corporation";
  for (const char* precision : {"strict", "fp32", "tf32"}) {
    PlanCheck check;
    check.out("product", check.b.matmul(check.input({128, 64}), check.input({64, 128})));
    CompileOptions options;
    options.target = target_for(facts);
    options.precision = precision;
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    CAPTURE(precision);
    const std::vector<Choice> choices = choices_of(runner.compiled().schedule);
    REQUIRE(choices.size() == 1);
    CHECK(choices[0].strategy == (std::string_view(precision) == "strict" ? StrategyId::simt : StrategyId::mma));
    CHECK((std::get<GpuChoice>(choices[0].tiles).products == Products::rounded) == (std::string_view(precision) == "tf32"));
    // A device without such units runs the other text, under any contract.
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    CHECK(difference(runner.run(check.inputs, check.symbols), wanted, 2e-6) == "");
  }
}

TEST_CASE("long sums on matrix units are added up from chains, where registers suffice") {
  DeviceFacts facts;
  facts.is_cpu = false;
  facts.vendor = "NVIDIA Corporation";
  facts.compute_units = 132;
  // Of the text for matrix units, whose chains end every 128 terms.
  const auto has_chains = [&](Ints left, Ints right, const char* precision) {
    PlanCheck check;
    check.out("product", check.b.matmul(check.input(std::move(left)), check.input(std::move(right))));
    CompileOptions options;
    options.target = target_for(facts);
    options.precision = precision;
    options.disabled = {"split_k"};
    const std::string source = compile(module_of(copy_graph(*check.graph)), options).plan.files.at(0).source;
    const std::size_t unit = source.find("#if OCLC_NV_SM >= 80");
    REQUIRE(unit != std::string::npos);
    const std::string text = source.substr(unit, source.find("#else", unit) - unit);
    return text.find("step % 4 == 0") != std::string::npos && text.find("out[i][j][q] += acc[i][j][q]") != std::string::npos;
  };
  CHECK(has_chains({640, 1152}, {1152, 256}, "fp32"));
  CHECK_FALSE(has_chains({640, 128}, {128, 256}, "fp32"));
  CHECK_FALSE(has_chains({640, 1152}, {1152, 256}, "tf32"));
  CHECK_FALSE(has_chains({8192, 1152}, {1152, 8192}, "fp32"));
}

TEST_CASE("tiles of a GPU fit its local memory and its work-groups") {
  for (const char* name : {"gpu", "h200"}) {
    const Target& target = find_target(name);
    for (const std::int64_t rows : {1, 3, 49, 196, 12544}) {
      for (const std::int64_t columns : {1, 17, 64, 1000}) {
        const GpuTiles t = choose_gpu_tiles({1, rows, columns, 256}, target);
        CHECK(t.local_bytes() <= target.local_bytes);
        CHECK(t.items() <= target.work_group);
      }
    }
    // Enough work takes the largest tiles that fit.
    CHECK(choose_gpu_tiles({1, 8192, 8192, 1024}, target).rows == 128);
  }
}
