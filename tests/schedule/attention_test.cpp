// Attention in one launch: scores with masks, scales and ragged edges, heads gathered from a joint projection, sizes of run
// time, rows that are masked wholly or in part; where the scores are wanted elsewhere, or are few, they stay launches.
#include "tests/schedule/attention_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

CompileOptions options_for(const std::string& precision = "fp32") {
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.target.has.fp64 = true;
  options.precision = precision;
  options.disabled = {"small_gemm"};
  return options;
}

// Each of the graph's results comes from one launch of attention and is right, as without it.
void check_attention(const PlanCheck& check, std::size_t launches, double tolerance = 2e-6) {
  for (const char* precision : {"fp32", "tf32"}) CHECK(attentions(check, options_for(precision)) == launches);
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  PlanRunner runner(module_of(copy_graph(*check.graph)), options_for());
  CHECK((runner.source().find("oclc_swap_lanes(") != std::string::npos) == (launches > 0));
  CHECK(oclc::difference(runner.run(check.inputs, check.symbols), wanted, tolerance) == "");
  CompileOptions apart = options_for();
  apart.disabled.push_back("attention");
  CHECK(attentions(check, apart) == 0);
  CHECK(attentions(check, options_for("strict")) == 0);
}

}  // namespace

TEST_CASE("attention of heads of a joint projection, with a mask of keys and one of pairs") {
  PlanCheck check;
  Builder& b = check.b;
  Value* joint = check.input({2, 70, 3 * 4 * 64});
  Value *q = heads(b, joint, 0, {2, 70, 4, 64}), *k = heads(b, joint, 256, {2, 70, 4, 64}),
        *v = heads(b, joint, 512, {2, 70, 4, 64});
  Value* seen = seen_keys(check);
  Value* scores = b.mul(b.matmul(q, k, false, true), 0.125);
  Value* masked = b.add(scores, b.where(seen, b.scalar(DType::f32, 0), b.scalar(DType::f32, -3.4028234663852886e38)));
  check.out("keys", b.transpose(b.matmul(b.softmax(masked), v), {0, 2, 1, 3}));
  Value* pairs = check.input({70, 70});
  check.out("pairs", b.relu(b.matmul(b.softmax(b.add(b.matmul(k, q, false, true), pairs)), v)));
  check_attention(check, 2);
}

TEST_CASE("attention with ragged numbers of keys, rows and columns") {
  for (const auto& [rows, keys, depth, columns] : {std::array<std::int64_t, 4>{197, 197, 64, 64},
                                                   {16, 33, 36, 20},
                                                   {130, 65, 7, 9},
                                                   {64, 128, 128, 96},
                                                   {20, 17, 50, 128}}) {
    PlanCheck check;
    Builder& b = check.b;
    Value *q = check.input({6, rows, depth}), *k = check.input({6, keys, depth}), *v = check.input({6, keys, columns});
    check.out("plain", b.matmul(b.softmax(b.mul(b.matmul(q, k, false, true), 0.2)), v));
    check_attention(check, 1);
  }
}

TEST_CASE("attention whose keys or values lie transposed, and whose operands are computed") {
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({6, 40, 32}), *k = check.input({6, 32, 48}), *v = check.input({6, 24, 48});
  check.out("transposed", b.matmul(b.softmax(b.matmul(q, k)), v, false, true));
  check.out("computed", b.matmul(b.softmax(b.matmul(b.relu(q), b.tanh(k))), b.exp(v), false, true));
  check_attention(check, 2);
}

TEST_CASE("rows of attention that are masked in whole blocks by -inf") {
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({4, 80, 16}), *k = check.input({4, 80, 16}), *v = check.input({4, 80, 16});
  HostTensor mask = late_rows();
  check.out("late", b.matmul(b.softmax(b.add(b.matmul(q, k, false, true), check.input(std::move(mask)))), v));
  check_attention(check, 1);
}

TEST_CASE("attention of symbolic sizes") {
  PlanCheck check;
  Builder& b = check.b;
  check.symbols = {{"N", 3}, {"T", 37}};
  Value* q = check.input(random_tensor(DType::f32, {3, 37, 48}, 1), {"N", "T", ""});
  Value* v = check.input(random_tensor(DType::f32, {3, 37, 40}, 2), {"N", "T", ""});
  check.out("self", b.matmul(b.softmax(b.mul(b.matmul(q, q, false, true), 0.3)), v));
  check_attention(check, 1);
}

TEST_CASE("scores that are results, few rows of many keys, softmax over rows: no attention") {
  PlanCheck check;
  Builder& b = check.b;
  Value *q = check.input({2, 40, 32}), *k = check.input({2, 40, 32}), *v = check.input({2, 40, 32});
  Value* weights = b.softmax(b.matmul(q, k, false, true));
  check.out("weights", weights);
  check.out("wanted twice", b.matmul(weights, v));
  check.out("over rows", b.matmul(b.softmax(b.matmul(q, k, false, true), -2), v));
  check.out("wide", b.matmul(b.softmax(b.matmul(check.input({2, 40, 160}), check.input({2, 40, 160}), false, true)), v));
  Value* many = check.input({1, 16384, 32});
  check.out("few rows", b.matmul(b.softmax(b.matmul(check.input({1, 4, 32}), many, false, true)), many));
  check_attention(check, 0);
}
