// Attention on a CPU's tile units in one kernel: with the unit's arithmetic in plain C, without a unit and with what there is,
// in megakernels and in launches of its own; masks, ragged edges, joint projections, and what stays three kernels.
#include "tests/runtime/cached_run.h"
#include "tests/schedule/attention_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

CompileOptions tile_options(const char* precision) {
  CompileOptions options = default_options();
  options.target = find_target("cpu-amx");
  options.target.local_bytes = 512 << 10;
  options.precision = precision;
  return options;
}

// So many of the graph's results come from one kernel of attention, and all are right, as without it.
void check_on_tiles(const PlanCheck& check, std::size_t wanted_kernels) {
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const auto& [precision, tolerance] : {std::pair{"fp32", 1e-6}, {"fast", 2e-5}}) {
    CAPTURE(precision);
    CompileOptions options = tile_options(precision);
    CHECK(attentions(check, options) == wanted_kernels);
    for (const char* use : {"emulate", "0", "1"}) {
      CAPTURE(use);
      const Setting setting("OCLC_AMX", use);
      PlanRunner runner(module_of(copy_graph(*check.graph)), options);
      CHECK(oclc::difference(runner.run(check.inputs, check.symbols), wanted, tolerance) == "");
    }
    options.disabled = {"megakernel"};
    PlanRunner launches(module_of(copy_graph(*check.graph)), options);
    CHECK(oclc::difference(launches.run(check.inputs, check.symbols), wanted, tolerance) == "");
    options.disabled = {"attention"};
    CHECK(attentions(check, options) == 0);
  }
  CHECK(attentions(check, tile_options("strict")) == 0);
}

}  // namespace

TEST_CASE("attention of heads of a joint projection on tiles, with masks of keys and of pairs") {
  PlanCheck check;
  Builder& b = check.b;
  Value* joint = check.input({2, 70, 3 * 2 * 64});
  Value *q = heads(b, joint, 0, {2, 70, 2, 64}), *k = heads(b, joint, 128, {2, 70, 2, 64}),
        *v = heads(b, joint, 256, {2, 70, 2, 64});
  Value* seen = seen_keys(check);
  Value* masked = b.add(b.mul(b.matmul(q, k, false, true), 0.125),
                        b.where(seen, b.scalar(DType::f32, 0), b.scalar(DType::f32, -3.4028234663852886e38)));
  check.out("keys", b.transpose(b.matmul(b.softmax(masked), v), {0, 2, 1, 3}));
  check.out("pairs", b.relu(b.matmul(b.softmax(b.add(b.mul(b.matmul(k, q, false, true), 0.2), check.input({70, 70}))), v)));
  check_on_tiles(check, 2);
}

TEST_CASE(
    "attention on tiles with ragged numbers of rows, keys and columns, and operands that lie transposed or are computed") {
  for (const auto& [rows, keys, depth, columns] :
       {std::array<std::int64_t, 4>{197, 197, 64, 64}, {16, 33, 36, 20}, {130, 65, 48, 40}, {33, 128, 128, 96}}) {
    CAPTURE(rows);
    PlanCheck check;
    Builder& b = check.b;
    Value *q = check.input({3, rows, depth}), *k = check.input({3, keys, depth}), *v = check.input({3, keys, columns});
    check.out("plain", b.matmul(b.softmax(b.mul(b.matmul(q, k, false, true), 0.2)), v));
    check_on_tiles(check, 1);
  }
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({3, 40, 32}), *k = check.input({3, 32, 48}), *v = check.input({3, 24, 48});
  check.out("transposed", b.matmul(b.softmax(b.matmul(q, k)), v, false, true));
  check.out("computed", b.matmul(b.softmax(b.matmul(b.relu(q), b.tanh(k))), b.exp(v), false, true));
  check_on_tiles(check, 2);
}

TEST_CASE("rows of attention on tiles that -inf masks in whole blocks or wholly, and scores that are no numbers") {
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({2, 80, 16}), *k = check.input({2, 80, 16}), *v = check.input({2, 80, 16});
  HostTensor mask = late_rows();
  mask.set(40 * 80 + 7, std::numeric_limits<double>::quiet_NaN());
  // Row 0 sees nothing: 0 / 0.
  check.out("late", b.matmul(b.softmax(b.add(b.matmul(q, k, false, true), check.input(std::move(mask)))), v));
  check_on_tiles(check, 1);
}

TEST_CASE("attention on tiles of any number of rows") {
  PlanCheck check;
  Builder& b = check.b;
  check.symbols = {{"N", 3}, {"T", 37}};
  const Expr images = Expr::symbol("N"), rows = Expr::symbol("T") * Expr(3);
  Value* q = b.reshape(check.input(random_tensor(DType::f32, {3, 37, 144}, 1), {"N", "T", ""}), {images, rows, Expr(48)});
  Value *k = check.input(random_tensor(DType::f32, {3, 50, 48}, 2), {"N", "", ""}),
        *v = check.input(random_tensor(DType::f32, {3, 50, 32}, 3), {"N", "", ""});
  check.out("cross", b.matmul(b.softmax(b.mul(b.matmul(q, k, false, true), 0.3)), v));
  check_on_tiles(check, 1);
}

TEST_CASE("scores that are results, few rows, more keys than fit and an unknown number of them: no attention on tiles") {
  PlanCheck check;
  Builder& b = check.b;
  check.symbols = {{"T", 37}};
  Value *q = check.input({2, 40, 32}), *k = check.input({2, 40, 32}), *v = check.input({2, 40, 32});
  Value* weights = b.softmax(b.matmul(q, k, false, true));
  check.out("weights", weights);
  check.out("wanted twice", b.matmul(weights, v));
  check.out("over rows", b.matmul(b.softmax(b.matmul(q, k, false, true), -2), v));
  Value* many = check.input({1, 1200, 64});
  check.out("few rows", b.matmul(b.softmax(b.matmul(check.input({1, 4, 64}), many, false, true)), many));
  check.out("many keys", b.matmul(b.softmax(b.matmul(check.input({1, 40, 64}), many, false, true)), many));
  Value* any = check.input(random_tensor(DType::f32, {2, 37, 32}, 1), {"", "T", ""});
  check.out("any", b.matmul(b.softmax(b.matmul(q, any, false, true)), any));
  check_on_tiles(check, 0);
}
