// Operators that are a body over an index space.
#include "compiler/ops/user_op.h"
#include "compiler/training/gradient_check.h"
#include "frontends/cpp/nn.h"
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

const std::string kVoltageBody = head(R"op(name = "nef.Voltage"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]"]
out = ["delta: T[M, N]"]
attr = { alpha = 1e-3 }
kernel = "voltage"
each = ["M", "N"]
flops = "3*M*N"
reference = "delta[i,j] = alpha * post[i] * w[i,j] * pre[j]"
gradient = { w = "alpha * post[i] * d_delta[i,j] * pre[j]", pre = "sum(i: alpha * post[i] * w[i,j] * d_delta[i,j])" }
)op") + R"op(OP(voltage) {
  const int i = ID(0), j = ID(1);
  STORE(delta, i, j, alpha * LOAD(post, i) * LOAD(w, i, j) * LOAD(pre, j));
}
)op";

const std::vector<TensorType> kVoltageBodyTypes = {f32({Expr(50), Expr(100)}), f32({Expr(100)}), f32({Expr(50)})};

std::vector<HostTensor> random_inputs_of(const Graph& graph, const SymbolValues& symbols = {}) {
  std::vector<HostTensor> inputs;
  for (const auto& input : graph.inputs())
    inputs.push_back(
        random_tensor(input->type.dtype, bind_shape(input->type.shape, symbols), static_cast<unsigned>(inputs.size()) + 1));
  return inputs;
}

double worst_of(const OpUse& use) { return compare_with_reference(*use.graph, random_inputs_of(*use.graph)).max_rel; }

}  // namespace

TEST_CASE("A body over an index space computes what its reference does, and states flops and bytes") {
  const OpUse use = use_of(kVoltageBody, kVoltageBodyTypes);
  CHECK(worst_of(use) < 1e-6);
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "use");
  std::vector<Value*> inputs;
  for (const TensorType& type : kVoltageBodyTypes)
    inputs.push_back(graph->add_input("x" + std::to_string(inputs.size()), type));
  const CustomOps ops = parse_ops(kVoltageBody, "op.cl");
  graph->add_output("delta", custom::build(b, *ops.find("nef.Voltage"), inputs, {})[0]);
  const Compiled compiled = compile(module_of(std::move(graph)), default_options());
  REQUIRE(compiled.schedule.kernels.size() == 1);
  CHECK(compiled.schedule.kernels[0].flops == Expr(3 * 50 * 100));
  CHECK(compiled.schedule.kernels[0].bytes == Expr(4 * (2 * 50 * 100 + 100 + 50)));
}

TEST_CASE("A body's gradients are formulas over inputs and the results' gradients") {
  // No gradient flows to `post`, which the head does not mention.
  const OpUse use = use_of(kVoltageBody, {f32({Expr(4), Expr(3)}), f32({Expr(3)}), f32({Expr(4)})});
  Graph& graph = *use.graph;
  Builder b(graph, "loss");
  const CustomOps ops = parse_ops(kVoltageBody, "op.cl");
  const std::vector<Value*> gradients = use.results[0]->producer->op->gradient(
      b, *use.results[0]->producer, std::vector<Value*>{b.expand(b.scalar(DType::f32, 1), use.results[0]->type.shape)});
  REQUIRE(gradients.size() == 3);
  CHECK(gradients[0] != nullptr);
  CHECK(gradients[1]->type == graph.inputs()[1]->type);
  CHECK(gradients[2] == nullptr);
}

TEST_CASE("Producers of what a body reads once and consumers of what it stores are computed in its kernel") {
  nn::Network net("net", nn::initial_parameters());
  net.add_ops(parse_ops(kVoltageBody, "op.cl"));
  const nn::Tensor w = net.input("w", DType::f32, {6, 40}), pre = net.input("pre", DType::f32, {40}),
                   post = net.input("post", DType::f32, {6});
  const nn::Tensor delta = net.call("nef.Voltage", {nn::relu(w) * 2.0, pre, post});
  net.output("y", nn::tanh(delta) + w);
  const std::shared_ptr<Module> module = net.finish();
  const std::vector<HostTensor> inputs = random_inputs_of(*module->entries[0]);
  const std::vector<HostTensor> wanted = evaluate(*module->entries[0], inputs);
  PlanRunner runner(module, default_options());
  CHECK(runner.compiled().plan.launches == 1);
  CHECK(difference(runner.run(inputs), wanted).max_rel < 1e-6);
}

TEST_CASE("A body reads transposed and sliced operands through their index maps") {
  auto graph = std::make_shared<Graph>();
  Builder b(*graph, "use");
  const CustomOps ops = parse_ops(kVoltageBody, "op.cl");
  Value* w = graph->add_input("w", f32({Expr(9), Expr(5)}));
  Value* pre = graph->add_input("pre", f32({Expr(30)}));
  Value* post = graph->add_input("post", f32({Expr(5)}));
  Value* part = b.slice(pre, {Expr(3)}, {Expr(9)}, {2});
  Value* delta = custom::build(b, *ops.find("nef.Voltage"), {b.transpose(w, {1, 0}), part, post}, {})[0];
  graph->add_output("y", b.transpose(delta, {1, 0}));
  CHECK(compare_with_reference(*graph, random_inputs_of(*graph)).max_rel < 1e-6);
}

TEST_CASE("Sizes of a body may be open until a run") {
  const Expr m = Expr::symbol("M"), n = Expr::symbol("N");
  const OpUse use = use_of(kVoltageBody, {f32({m, n}), f32({n}), f32({m})});
  for (const std::int64_t rows : {1, 7, 300}) {
    const SymbolValues sizes = {{"M", rows}, {"N", 33}};
    CHECK(compare_with_reference(*use.graph, random_inputs_of(*use.graph, sizes), default_options(), sizes).max_rel < 1e-6);
  }
}

TEST_CASE("A body has several outputs of their own shapes, optional inputs and variable ones") {
  const std::string both = head(R"op(name = "my.both"
in = ["x: T[M, N]", "b: T[N]?", "xs: T[M]*"]
out = ["y: T[M, N]", "z: T[N, M]"]
kernel = "both"
each = ["M", "N"]
reference = '''
s[i] = sum(n: xs[n, i])
y[i, j] = s[i] + x[i, j]
z[j, i] = has(b) ? x[i, j] * b[j] : x[i, j]
'''
)op") + R"op(OP(both) {
  const int i = ID(0), j = ID(1);
  float s = 0;
  for (int n = 0; n < COUNT(xs); ++n) s += LOAD(xs, n, i);
  STORE(y, i, j, s + LOAD(x, i, j));
  STORE(z, j, i, HAS(b) ? LOAD(x, i, j) * LOAD(b, j) : LOAD(x, i, j));
}
)op";
  const TensorType x = f32({Expr(5), Expr(8)}), b = f32({Expr(8)}), s = f32({Expr(5)});
  CHECK(worst_of(use_of(both, {x, b, s, s, s})) < 1e-6);
  CHECK(worst_of(use_of(both, {x, b, s})) < 1e-6);
  const CustomOps ops = parse_ops(both, "op.cl");
  OpUse without;
  Builder builder(*without.graph, "use");
  Value *first = without.graph->add_input("x", x), *last = without.graph->add_input("s", s);
  for (Value* value : custom::build(builder, *ops.find("my.both"), {first, nullptr, last}, {}))
    without.graph->add_output("y" + std::to_string(without.results.size()), value), without.results.push_back(value);
  CHECK(worst_of(without) < 1e-6);
}

TEST_CASE("Work-items of a group share local memory between barriers") {
  const std::string sums = head(R"op(name = "my.sums"
in = ["x: T[M, N]"]
out = ["y: T[M]"]
kernel = "sums"
each = ["M", "32"]
group = [1, 32]
local = { part = "float[32]" }
reference = "y[i] = sum(j: x[i, j])"
)op") + R"op(OP(sums) {
  const int i = ID(0), lane = LID(1);
  float sum = 0;
  for (int j = lane; j < SIZE(N); j += 32) sum += LOAD(x, i, j);
  part[lane] = sum;
  for (int half_of = 16; half_of > 0; half_of /= 2) {
    BARRIER();
    if (lane < half_of) part[lane] += part[lane + half_of];
  }
  if (lane == 0) STORE(y, i, part[0]);
}
)op";
  CHECK(worst_of(use_of(sums, {f32({Expr(5), Expr(77)})})) < 1e-6);
}

TEST_CASE("Pointers of a body see operands that lie in memory as they are") {
  const std::string copy = head(R"op(name = "my.copy"
in = ["x: T[N]"]
out = ["y: T[N]"]
kernel = "copy"
each = ["N"]
types = { T = ["f32"] }
reference = "y[i] = x[i]"
)op") + "OP(copy) { POINTER(y)[ID(0)] = POINTER(x)[ID(0)]; }\n";
  const OpUse use = use_of(copy, {f32({Expr(100)})});
  CHECK(worst_of(use) < 1e-6);
  auto graph = std::make_shared<Graph>();
  Builder b(*graph, "use");
  const CustomOps ops = parse_ops(copy, "op.cl");
  Value* x = b.mul(graph->add_input("x", f32({Expr(100)})), 2.0);
  Value* y = custom::build(b, *ops.find("my.copy"), {x}, {})[0];
  graph->add_output("y", b.add(y, 1.0));
  CHECK(compare_with_reference(*graph, random_inputs_of(*graph)).max_rel < 1e-6);
}

TEST_CASE("An output in place lies where an input does that nothing else reads") {
  const std::string halve = head(R"op(name = "my.halve"
in = ["x: T[N]"]
out = ["y: T[N]"]
kernel = "halve"
each = ["N"]
inplace = { y = "x" }
reference = "y[i] = 0.5 * x[i]"
)op") + "OP(halve) { STORE(y, ID(0), 0.5f * LOAD(x, ID(0))); }\n";
  const CustomOps ops = parse_ops(halve, "op.cl");
  auto graph = std::make_shared<Graph>();
  Builder b(*graph, "use");
  Value* x = graph->add_input("x", f32({Expr(64), Expr(64)}));
  Value* sum = b.reduce("reduce_sum", x, {1}, false);
  Value* y = custom::build(b, *ops.find("my.halve"), {sum}, {})[0];
  graph->add_output("y", b.reduce("reduce_max", y, {0}, false));
  CHECK(compare_with_reference(*graph, random_inputs_of(*graph)).max_rel < 1e-6);
}

TEST_CASE("A checked body says which call was outside of its operand") {
  const std::string beyond = head(R"op(name = "my.beyond"
in = ["x: T[N]"]
out = ["y: T[N]"]
kernel = "beyond"
each = ["N"]
)op") + "OP(beyond) {\n  STORE(y, ID(0), LOAD(x, ID(0) + 1));\n}\n";
  const CustomOps ops = parse_ops(beyond, "op.cl");
  const custom::CustomOp& op = *ops.find("my.beyond");
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "use");
  const std::vector<Value*> results =
      custom::build(b, op, {graph->add_input("x", f32({Expr(10)}))}, {}, custom::Build::checked);
  REQUIRE(results.size() == 2);
  graph->add_output("y", results[0]);
  graph->add_output("outside", results[1]);
  PlanRunner runner(module_of(std::move(graph)), default_options());
  const HostTensor flags = runner.run(std::vector<HostTensor>{random_tensor(DType::f32, {10}, 1)})[1];
  for (std::int64_t i = 0; i < 9; ++i) CHECK(flags.int_at(i) == 0);
  CHECK(custom::call_place(op, static_cast<int>(flags.int_at(9))) == "op.cl:10:19: LOAD(x, ..)");
}

TEST_CASE("Another operator may be a body's gradient") {
  const std::string square = head(R"op(name = "my.square"
in = ["x: T[N]"]
out = ["y: T[N]"]
kernel = "square"
each = ["N"]
reference = "y[i] = x[i] * x[i]"
gradient_op = "my.square_grad"
)op") + head(R"op(name = "my.square_grad"
in = ["dy: T[N]", "x: T[N]", "y: T[N]"]
out = ["dx: T[N]"]
formula = "dx[i] = 2 * x[i] * dy[i]"
)op") + "OP(square) { const float x = LOAD(x, ID(0)); STORE(y, ID(0), x * x); }\n";
  auto graph = std::make_shared<Graph>();
  Builder b(*graph, "use");
  const CustomOps ops = parse_ops(square, "op.cl");
  graph->add_output("y", custom::build(b, *ops.find("my.square"), {graph->add_input("x", f32({Expr(6)}))}, {})[0]);
  CHECK(check_gradients(*graph, {}).worst() < 1e-6);
}

}  // namespace oclc::test
