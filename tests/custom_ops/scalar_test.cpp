// Operators that are a function of elements.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "compiler/ops/user_op.h"
#include "compiler/training/gradient_check.h"
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

// The type in OpenCL C of elements of an element type.
std::string c_name(DType dtype) {
  return dtype == DType::boolean ? "bool" : dtype == DType::i32 ? "int" : dtype == DType::u32 ? "uint" : "float";
}

std::string letter(std::size_t i) { return std::string(1, static_cast<char>('a' + i)); }

// The generated code of one use, with the operator's name in place of what it is called.
std::string kernel_text(std::unique_ptr<Graph> graph, const std::string& op) {
  const Compiled compiled = compile(module_of(std::move(graph)), default_options());
  std::string text;
  for (const GeneratedFile& file : compiled.plan.files) text += file.source;
  for (const std::string before : {"k_use_", ": "}) {
    const std::string name = before + op;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at + before.size(), op.size(), "OPERATOR");
  }
  return text;
}

// Types that the operator takes as its operands.
std::vector<DType> types_for(const OpDef& def) {
  for (const DType dtype : {DType::f32, DType::i32, DType::boolean, DType::u32}) {
    std::vector<DType> types(static_cast<std::size_t>(def.min_inputs), dtype);
    if (def.name == "where") types[0] = DType::boolean;
    Graph graph;
    Builder b(graph);
    std::vector<Value*> inputs;
    for (const DType type : types) inputs.push_back(graph.add_input("x", {type, {Expr(2)}}));
    try {
      b.call(def.name, inputs);
      return types;
    } catch (const CompileError&) {
    }
  }
  return {};
}

const std::string kSwooshFunction = head(R"op(name = "k2.Swoosh"
in = ["x: T[...]"]
out = ["y: T[...]"]
attr = { offset = 4.0, slope = 0.08 }
scalar = "swoosh"
gradient = { x = "d_y * (sigmoid(x - offset) - slope)" }
reference = "y = softplus(x - offset) - slope * x - 0.035"
)op") + R"op(float swoosh(float x, float offset, float slope) { return log(1.0f + exp(x - offset)) - slope * x - 0.035f; }
)op";

}  // namespace

TEST_CASE("Each elementwise operator written as a function of elements gives the same kernel, but for names") {
  int count = 0;
  for (const OpDef& def : elementwise_ops()) {
    CAPTURE(def.name);
    const std::vector<DType> types = types_for(def);
    REQUIRE(!types.empty());
    const std::string text(is_float(types.back()) ? def.scalar->float_text : def.scalar->integer_text);
    std::string in, parameters;
    auto wanted = std::make_unique<Graph>(), found = std::make_unique<Graph>();
    Builder b(*wanted, "use"), f(*found, "use");
    std::vector<Value*> inputs, own;
    for (std::size_t i = 0; i < types.size(); ++i) {
      in += fmt::format("{}\"{}: {}[...]\"", i ? ", " : "", letter(i), name_of(types[i]));
      parameters += fmt::format("{}{} {}", i ? ", " : "", c_name(types[i]), letter(i));
      inputs.push_back(wanted->add_input(letter(i), {types[i], {Expr(64), Expr(96)}}));
      own.push_back(found->add_input(letter(i), {types[i], {Expr(64), Expr(96)}}));
    }
    Value* y = b.call(def.name, inputs);
    wanted->add_output("y", y);
    const CustomOps ops =
        parse_ops(head(fmt::format("name = \"my.op\"\nin = [{}]\nout = [\"y: {}[...]\"]\nscalar = \"f\"\nflops = {}", in,
                                   name_of(y->type.dtype), static_cast<int>(def.scalar->flops))) +
                      fmt::format("{} f({}) {{ return {}; }}\n", c_name(y->type.dtype), parameters, text),
                  "op.cl");
    Value* z = custom::build(f, *ops.find("my.op"), own, {})[0];
    const std::string name(z->producer->op->name);
    found->add_output("y", z);
    CHECK(kernel_text(std::move(found), name) == kernel_text(std::move(wanted), std::string(def.name)));
    ++count;
  }
  CHECK(count >= 50);
}

TEST_CASE("A function of elements is fused, evaluated by its reference and differentiated by its formula") {
  const OpUse use = use_of(kSwooshFunction, {f32({Expr(5), Expr(33)})});
  const HostTensor x = random_tensor(DType::f32, {5, 33}, 1, -4, 8);
  CHECK(compare_with_reference(*use.graph, std::vector<HostTensor>{x}).max_rel < 2e-6);
  CHECK(check_gradients(*use.graph, {}).worst() < 1e-6);
}

TEST_CASE("A function of several statements is called for each lane of a vector") {
  const std::string steps = head(R"op(name = "my.steps"
in = ["x: T[...]", "y: T[...]"]
out = ["z: T[...]"]
attr = { most = 3 }
scalar = "steps"
reference = "z = x > 0 ? min(x, most) * y : -y"
)op") + R"op(__constant float kOne = 1.0f;
float doubled(float v) { return v + v; }
// A loop, a branch and another function.
float steps(float x, float y, int most) {
  if (x <= 0) return -y;
  float sum = 0;
  for (int i = 0; i < most; ++i) sum += min(kOne, max(0.0f, x - (float)i));
  return 0.5f * doubled(sum) * y;
}
)op";
  const OpUse use = use_of(steps, {f32({Expr(7), Expr(64)}), f32({Expr(64)})});
  const std::vector<HostTensor> inputs = {random_tensor(DType::f32, {7, 64}, 1, -2, 5), random_tensor(DType::f32, {64}, 2)};
  CHECK(compare_with_reference(*use.graph, inputs).max_rel < 2e-6);
}

TEST_CASE("Functions take operands of 16 bits as float, and truth values") {
  const std::string gate = head(R"op(name = "my.gate"
in = ["c: bool[...]", "x: T[...]"]
out = ["y: T[...]"]
types = { T = ["f16", "bf16", "f32"] }
scalar = "gate"
reference = "y = c ? -x : 0"
)op") + "float gate(bool c, float x) { if (c) return -x; return 0.0f; }\n";
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const OpUse use = use_of(gate, {{DType::boolean, {Expr(3), Expr(32)}}, {dtype, {Expr(3), Expr(32)}}});
    const std::vector<HostTensor> inputs = {random_tensor(DType::boolean, {3, 32}, 1), random_tensor(dtype, {3, 32}, 2)};
    CHECK(compare_with_reference(*use.graph, inputs).max_abs == 0);
  }
}

TEST_CASE("Without a reference the host says what is missing, and without a gradient training does") {
  const std::string bare = head("name = \"my.bare\"\nin = [\"x: T[...]\"]\nout = [\"y: T[...]\"]\nscalar = \"f\"") +
                           "float f(float x) { return x * x; }\n";
  const OpUse use = use_of(bare, {f32({Expr(4)})});
  std::string error;
  try {
    evaluate(*use.graph, std::vector<HostTensor>{random_tensor(DType::f32, {4}, 1)});
  } catch (const CompileError& e) {
    error = e.what();
  }
  CHECK(error.find("an operator that the host computes, as 'my.bare' with a key 'reference' in its head") != std::string::npos);
  CHECK(find_op(use.results[0]->producer->op->name) == use.results[0]->producer->op);
}

}  // namespace oclc::test
