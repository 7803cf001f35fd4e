// What formulas compute: the reference's values by hand, and kernels beside the reference.
#include "compiler/training/gradient_check.h"
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

const std::string kVoltage = head(R"(name = "nef.Voltage"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]"]
out = ["delta: T[M, N]"]
attr = { alpha = 0.5 }
formula = "delta[i,j] = alpha * post[i] * w[i,j] * pre[j]")");

std::string formula(const std::string& in, const std::string& out, const std::string& lines, const std::string& more = {}) {
  return head("name = \"my.op\"\nin = [" + in + "]\nout = [" + out + "]\n" + more + "\nformula = '''\n" + lines + "\n'''");
}

// Values of the reference, and that kernels, fused and not, agree with it.
std::vector<std::vector<double>> values_of(const std::string& text, const std::vector<HostTensor>& inputs,
                                           const Attributes& attributes = {}) {
  std::vector<TensorType> types;
  for (const HostTensor& input : inputs) types.push_back(input.type());
  const OpUse use = use_of(text, types, attributes);
  std::vector<std::vector<double>> values;
  for (const HostTensor& output : evaluate(*use.graph, inputs)) values.push_back(numbers(output));
  CHECK(compare_with_reference(*use.graph, inputs).max_rel < 1e-5);
  CompileOptions unfused = default_options();
  unfused.disabled = {"fuse"};
  CHECK(compare_with_reference(*use.graph, inputs, unfused).max_rel < 1e-5);
  return values;
}

using Rows = std::vector<std::vector<double>>;

}  // namespace

TEST_CASE("The voltage rule is an outer product scaled") {
  const Rows y = values_of(kVoltage, {floats({1, 2, 3, 4, 5, 6}, {2, 3}), floats({1, 10, 100}, {3}), floats({1, -1}, {2})});
  CHECK(y == Rows{{0.5, 10, 150, -2, -25, -300}});
  const Rows scaled = values_of(kVoltage, {floats({1, 2}, {1, 2}), floats({1, 1}, {2}), floats({1}, {1})}, {{"alpha", 2.0}});
  CHECK(scaled == Rows{{2, 4}});
}

TEST_CASE("Sums of products are matrix products, sums of one factor reductions") {
  const std::string product =
      formula("\"a: T[M, K]\", \"b: T[K, N]\"", "\"y: T[M, N]\"", "y[i, j] = sum(k: 2 * a[i, k] * b[k, j])");
  const OpUse use = use_of(product, {f32({2, 3}), f32({3, 4})});
  CHECK(print_graph(*use.graph).find("matmul") != std::string::npos);
  CHECK(values_of(product, {floats({1, 2, 3, 4}, {2, 2}), floats({1, 0, 0, 1}, {2, 2})}) == Rows{{2, 4, 6, 8}});
  const std::string row = formula("\"a: T[M, K]\"", "\"y: T[M]\"", "y[i] = sum(k: a[i, k])");
  CHECK(print_graph(*use_of(row, {f32({2, 3})}).graph).find("matmul") == std::string::npos);
  CHECK(values_of(row, {floats({1, 2, 3, 4}, {2, 2})}) == Rows{{3, 7}});
}

TEST_CASE("A sum over an index that its summand does not have counts the index") {
  CHECK(values_of(formula("\"a: T[M]\", \"b: T[K]\"", "\"y: T[M]\"", "y[i] = sum(k: a[i]) + 0 * sum(k: b[k])"),
                  {floats({1, 2}, {2}), floats({1, 1, 1}, {3})}) == Rows{{3, 6}});
}

TEST_CASE("Largest, smallest and mean elements, and dimensions that have no names") {
  const std::string text = formula("\"x: T[..., K]\"", "\"y: T[..., K]\"",
                                   "m = max(k: x[k])\ns = mean(k: x[k])\ny[k] = (x[k] - m) / 2 + s + min(k2: x[k2])");
  CHECK(values_of(text, {floats({1, 3, 2, 0}, {2, 2})}) == Rows{{2, 3, 1, 0}});
  CHECK(values_of(text, {floats({1, 3}, {2})}) == Rows{{2, 3}});
}

TEST_CASE("Positions: shifts, steps, backwards, numbers, diagonals, tables and padding") {
  const HostTensor x = floats({1, 2, 3, 4, 5}, {5});
  CHECK(values_of(formula("\"x: T[N]\"", "\"y: T[N - 1]\"", "y[i] = x[i + 1] - x[i + 0]"), {x}) == Rows{{1, 1, 1, 1}});
  CHECK(values_of(formula("\"x: T[N]\"", "\"y: T[(N + 1) / 2]\"", "y[i] = x[2 * i]"), {x}) == Rows{{1, 3, 5}});
  CHECK(values_of(formula("\"x: T[N]\"", "\"y: T[N]\"", "y[i] = x[N - 1 - i]"), {x}) == Rows{{5, 4, 3, 2, 1}});
  CHECK(values_of(formula("\"x: T[N]\"", "\"y: T[N]\"", "y[i] = x[i] - x[N - 1]"), {x}) == Rows{{-4, -3, -2, -1, 0}});
  CHECK(values_of(formula("\"x: T[N, N]\"", "\"y: T[N]\"", "y[i] = x[i, i]"), {floats({1, 2, 3, 4}, {2, 2})}) == Rows{{1, 4}});
  CHECK(values_of(formula("\"x: T[N, N]\"", "\"y: T[N, N]\"", "y[i, j] = x[j, i]"), {floats({1, 2, 3, 4}, {2, 2})}) ==
        Rows{{1, 3, 2, 4}});
  CHECK(values_of(formula("\"x: T[N]\"", "\"y: T[N]\"", "y[i] = pad(x, 7)[i - 1] + pad(x, 0)[i + 1]"), {x}) ==
        Rows{{9, 4, 6, 8, 4}});
  CHECK(values_of(formula("\"x: T[N]\", \"w: T[K]\"", "\"y: T[N - K + 1]\"", "y[i] = sum(k: w[k] * x[i + k])"),
                  {x, floats({1, 0, -1}, {3})}) == Rows{{-2, -2, -2}});
  const HostTensor at = [] {
    HostTensor tensor(DType::i64, {3});
    tensor.set(0, 2);
    tensor.set(2, 1);
    return tensor;
  }();
  const std::string table = formula("\"t: T[V, D]\", \"at: i64[N]\"", "\"y: T[N, D]\"", "y[n, d] = t[at[n], d]");
  CHECK(values_of(table, {floats({1, 2, 3, 4, 5, 6}, {3, 2}), at}) == Rows{{5, 6, 1, 2, 3, 4}});
  const std::string both = formula("\"t: T[V, D]\", \"at: i64[N]\"", "\"y: T[N]\"", "y[n] = t[at[n], at[n] % 2]");
  CHECK(values_of(both, {floats({1, 2, 3, 4, 5, 6}, {3, 2}), at}) == Rows{{5, 1, 4}});
  const std::string scatter = formula("\"v: T[N]\", \"at: i64[N]\"", "\"y: T[4]\"", "y[at[n]] += v[n]");
  HostTensor twice(DType::i64, {3});
  twice.set(1, 3);
  CHECK(values_of(scatter, {floats({1, 2, 4}, {3}), twice}) == Rows{{5, 0, 0, 2}});
}

TEST_CASE("Positions outside of an operand, and extents that differ, are errors that name the sizes") {
  const std::string shift = formula("\"x: T[N]\"", "\"y: T[N]\"", "y[i] = x[i + 1]");
  CHECK(error_of([&] { use_of(shift, {f32({5})}); }) ==
        "op.cl:7:12: wanted positions from 0 to 4 of 'x', found 1 to 5 in 'i + 1' (N = 5); pad(x, 0)[..] reads a 0 outside");
  const std::string apart = formula("\"x: T[N]\"", "\"y: T[N - 1]\"", "y[i] = x[i]");
  CHECK(error_of([&] { use_of(apart, {f32({5})}); }) ==
        "op.cl:7:10: wanted one extent of index 'i', 4 in 'y', found 5 in 'x' (N = 5)");
  const std::string nowhere = formula("\"x: T[N]\"", "\"y: T[]\"", "y = sum(i: x[2 * i])");
  CHECK(error_of([&] { use_of(nowhere, {f32({5})}); }) ==
        "op.cl:7:5: wanted the extent of 'i': a place where it stands alone as an index, found none (N = 5)");
  const std::string mixed = formula("\"x: T[N]\", \"z: U[N]\"", "\"y: T[N]\"", "y[i] = x[i] + z[i]");
  CHECK(error_of([&] {
          use_of(mixed, {f32({2}), {DType::f16, {2}}});
        }) == "op.cl:7:13: wanted operands of one type, found f32 and f16 (N = 2); f32(..) and f16(..) convert");
}

TEST_CASE("Indices are numbers, and conditions choose") {
  CHECK(values_of(formula("\"x: T[N, N]\"", "\"y: T[N, N]\"", "y[i, j] = i < j ? 0 : x[i, j] * (i + 1)"),
                  {floats({1, 2, 3, 4}, {2, 2})}) == Rows{{1, 0, 6, 8}});
}

TEST_CASE("Optional operands, operands of variable number, lists and texts as attributes") {
  const std::string bias = formula("\"x: T[..., K]\", \"b: T[K]?\"", "\"y: T[..., K]\"", "y[k] = has(b) ? x[k] + b[k] : x[k]");
  CHECK(values_of(bias, {floats({1, 2}, {2}), floats({10, 20}, {2})}) == Rows{{11, 22}});
  CHECK(values_of(bias, {floats({1, 2}, {2})}) == Rows{{1, 2}});
  const std::string many = formula("\"xs: T[K]*\"", "\"y: T[K]\"", "y[k] = sum(n: xs[n, k]) / len(xs)");
  CHECK(values_of(many, {floats({1, 2}, {2}), floats({3, 4}, {2}), floats({5, 9}, {2})}) == Rows{{3, 5}});
  CHECK(values_of(many, {floats({1, 2}, {2})}) == Rows{{1, 2}});
  const std::string taps =
      formula("\"x: T[N]\"", "\"y: T[N - 2]\"", "y[i] = sum(k: taps[k] * x[i + k])", "attr = { taps = [1, 2, 1] }");
  CHECK(values_of(taps, {floats({1, 2, 3, 4}, {4})}) == Rows{{8, 12}});
  const std::string mode =
      formula("\"x: T[...]\"", "\"y: T[...]\"", "y = mode == \"double\" ? 2 * x : -x", "attr = { mode = \"double\" }");
  CHECK(values_of(mode, {floats({1}, {1})}) == Rows{{2}});
  CHECK(values_of(mode, {floats({1}, {1})}, {{"mode", std::string("negative")}}) == Rows{{-1}});
}

TEST_CASE("Several outputs, each from those above") {
  const std::string text = formula("\"x: T[N]\"", "\"y: T[N]\", \"n: T[]\"", "n = sqrt(sum(i: x[i] * x[i]))\ny[i] = x[i] / n");
  CHECK(values_of(text, {floats({3, 4}, {2})}) == Rows{{3.0f / 5, 4.0f / 5}, {5}});
}

TEST_CASE("An index on the left of a line that is no output has the extent of a place where it stands alone") {
  const std::string text = formula("\"x: T[N]\"", "\"y: T[N]\"", "h[n] = sum(i: x[i])\ny[i] = h[i]");
  CHECK(error_of([&] {
          use_of(text, {f32({3})});
        }).ends_with("wanted the extent of 'n': a place where it stands alone as an index, found none (N = 3)"));
}

TEST_CASE("Dimensions may stay open") {
  const Expr m = Expr::symbol("M"), n = Expr::symbol("N");
  const OpUse use = use_of(kVoltage, {f32({m, n}), f32({n}), f32({m})});
  CHECK(use.results[0]->type == f32({m, n}));
  const std::vector<HostTensor> inputs = {random_tensor(DType::f32, {5, 7}, 1), random_tensor(DType::f32, {7}, 2),
                                          random_tensor(DType::f32, {5}, 3)};
  CHECK(compare_with_reference(*use.graph, inputs).max_rel < 1e-6);
  CHECK(error_of([&] {
          use_of(kVoltage, {f32({m, n}), f32({m}), f32({m})});
        }) == "op.cl:3:29: wanted N = N, as 'w' has it, found M in 'pre' of f32[M] (M = M, N = N)");
}

TEST_CASE("Formulas are differentiated as the operators that they become") {
  for (const std::string& text :
       {kVoltage, formula("\"a: T[M, K]\", \"b: T[K, N]\", \"c: T[M]\"", "\"y: T[M, N]\"",
                          "y[i, j] = softplus(c[i]) * sum(k: a[i, k] * b[k, j]) - 0.5 * tanh(b[0, j])")}) {
    const bool voltage = text == kVoltage;
    const OpUse use =
        voltage ? use_of(text, {f32({3, 4}), f32({4}), f32({3})}) : use_of(text, {f32({3, 2}), f32({2, 4}), f32({3})});
    CHECK(check_gradients(*use.graph).worst() < 1e-7);
  }
}

TEST_CASE("Conditions on sizes are checked, and say which sizes were found") {
  const std::string text = formula("\"x: T[N]\"", "\"y: T[N]\"", "y[i] = x[i]", "where = [\"N % 4 == 0\"]");
  CHECK(error_of([&] { use_of(text, {f32({8})}); }) == "no error");
  CHECK(error_of([&] { use_of(text, {f32({6})}); }) ==
        "op.cl:5:17: wanted N % 4 == 0 of my.op, found sizes or attributes where it does not hold (N = 6)");
  CHECK(error_of([&] { use_of(text, {f32({Expr::symbol("S")})}); }) ==
        "op.cl:5:17: wanted N % 4 == 0 of my.op, found sizes that are open (N = S); give the sizes with --dim");
}

TEST_CASE("Half-precision operands compute in the graph's types") {
  const OpUse use = use_of(kVoltage, {{DType::f16, {2, 3}}, {DType::f16, {3}}, {DType::f16, {2}}});
  CHECK(use.results[0]->type.dtype == DType::f16);
}

}  // namespace oclc::test
