// Uses of one operator with operands of several sizes in one launch.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <span>

#include "compiler/kernels/ragged_family.h"
#include "compiler/schedule/ragged_groups.h"
#include "plan_generated.h"
#include "tests/custom_ops/custom_ops.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::test {
namespace {

const std::string kVoltageHead = R"(name = "nef.Voltage"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]"]
out = ["delta: T[M, N]"]
attr = { alpha = 1e-6 }
kernel = "voltage"
each = ["M", "N"]
flops = "3*M*N"
reference = "delta[i,j] = alpha * post[i] * w[i,j] * pre[j]"
)";
const std::string kVoltageCode = R"(OP(voltage) {
  const int i = ID(0), j = ID(1);
  STORE(delta, i, j, alpha * LOAD(post, i) * LOAD(w, i, j) * LOAD(pre, j));
}
)";

ImportOptions options_with(const std::string& text) {
  ImportOptions options;
  auto ops = std::make_shared<CustomOps>();
  ops->add(parse_ops(text, "op.cl"));
  options.ops = ops;
  return options;
}

// Connections of 200 x 100, 50 x 100 and 30 x 30; the second has a learning rate of its own.
Writer three_connections() {
  Writer w;
  const std::pair<int, int> sizes[] = {{200, 100}, {50, 100}, {30, 30}};
  for (int k = 0; k < 3; ++k) {
    const std::string n(1, static_cast<char>('a' + k));
    const auto [rows, columns] = sizes[k];
    w.input("w_" + n, {rows, columns}).input("pre_" + n, {columns}).input("post_" + n, {rows});
    w.output("delta_" + n, {rows, columns});
    NodeProto& node = w.node("Voltage", {"w_" + n, "pre_" + n, "post_" + n}, {"delta_" + n}, "voltage_" + n);
    node.set_domain("nef");
    if (k == 1) set_float(node, "alpha", 0.25f);
  }
  auto* opset = w.model.add_opset_import();
  opset->set_domain("nef");
  opset->set_version(1);
  return w;
}

std::vector<HostTensor> random_inputs(const Module& module, const SymbolValues& symbols = {}) {
  std::vector<HostTensor> inputs;
  for (const auto& input : module.entries[0]->inputs())
    inputs.push_back(
        random_tensor(input->type.dtype, bind_shape(input->type.shape, symbols), static_cast<unsigned>(inputs.size()) + 1));
  return inputs;
}

CompileOptions without_groups(CompileOptions options = default_options()) {
  options.disabled.push_back("ragged_groups");
  return options;
}

const plan::Plan& plan_of(const Compiled& compiled) { return *plan::GetPlan(compiled.plan.metadata.data()); }

// Launches and parts of launches that do several kernels of one text.
int groups_of(const Compiled& compiled) {
  int groups = 0;
  for (const plan::Step* step : *plan_of(compiled).entries()->Get(0)->steps()) {
    const plan::Launch* launch = step->body_as_Launch();
    if (!launch) continue;
    groups += launch->instances() > 0 ? 1 : 0;
    for (std::uint32_t i = 0; launch->parts() && i < launch->parts()->size(); ++i)
      groups += launch->parts()->Get(i)->instances() > 0 ? 1 : 0;
  }
  return groups;
}

// Kernels in such launches.
std::uint32_t members_of_groups(const Compiled& compiled) {
  std::uint32_t members = 0;
  for (const plan::Step* step : *plan_of(compiled).entries()->Get(0)->steps()) {
    const plan::Launch* launch = step->body_as_Launch();
    if (!launch) continue;
    members += launch->instances();
    for (std::uint32_t i = 0; launch->parts() && i < launch->parts()->size(); ++i)
      members += launch->parts()->Get(i)->instances();
  }
  return members;
}

bool has_same_bits(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const HostTensor& x, const HostTensor& y) {
    return x.type() == y.type() && std::equal(x.data(), x.data() + x.bytes(), y.data());
  });
}

std::int64_t constant_of(const plan::Expr* e) { return e->code()->size() == 2 ? e->code()->Get(1) : -1; }

}  // namespace

TEST_CASE("Three uses of an operator with operands of three sizes are one launch, and give the bits of three launches") {
  const std::shared_ptr<Module> module = three_connections().import(options_with(head(kVoltageHead) + kVoltageCode));
  const std::vector<HostTensor> inputs = random_inputs(*module);
  const std::vector<HostTensor> wanted = evaluate(*module->entries[0], inputs);
  PlanRunner grouped(three_connections().import(options_with(head(kVoltageHead) + kVoltageCode)), default_options());
  REQUIRE(grouped.compiled().plan.launches == 1);
  const plan::Launch& launch = *plan_of(grouped.compiled()).entries()->Get(0)->steps()->Get(0)->body_as_Launch();
  CHECK(launch.instances() == 3);
  CHECK(launch.title()->str() == "nef.Voltage x 3");
  CHECK(launch.nodes()->size() == 3);
  CHECK(constant_of(launch.flops()) == 77700);
  CHECK(constant_of(launch.bytes()) == 209240);
  CHECK(launch.args()->Get(launch.args()->size() - 1)->kind() == plan::ArgKind::rows);
  CompileOptions single = without_groups();
  single.disabled.push_back("megakernel");
  PlanRunner apart(three_connections().import(options_with(head(kVoltageHead) + kVoltageCode)), single);
  CHECK(apart.compiled().plan.launches == 3);
  const std::vector<HostTensor> found = grouped.run(inputs);
  CHECK(difference(found, wanted).max_rel < 1e-6);
  CHECK(has_same_bits(found, apart.run(inputs)));
  grouped.session().enable_profile(true);
  grouped.run(inputs);
  const auto launches = grouped.session().launches();
  REQUIRE(launches.size() == 1);
  CHECK(std::string(launches[0].title) == "nef.Voltage x 3");
  CHECK(std::string(launches[0].nodes) == "voltage_a, voltage_b, voltage_c");
  CHECK(launches[0].instances == 3);
  CHECK(launches[0].flops == 77700);
  CHECK(launches[0].bytes == 209240);
}

TEST_CASE("Consecutive steps feed and read the pools of a group") {
  constexpr int kMembers = 20;
  constexpr std::int64_t kSteps = 3;
  const auto model = [] {
    Writer w;
    for (int k = 0; k < kMembers; ++k) {
      const std::string n = std::to_string(k);
      w.input("w" + n, {3 + k, 2 + k}).input("pre" + n, {2 + k}).input("post" + n, {3 + k});
      w.output("delta" + n, {3 + k, 2 + k});
      w.node("Voltage", {"w" + n, "pre" + n, "post" + n}, {"delta" + n}, "voltage" + n).set_domain("nef");
    }
    auto* opset = w.model.add_opset_import();
    opset->set_domain("nef");
    opset->set_version(1);
    return w.import(options_with(head(kVoltageHead) + kVoltageCode));
  };
  PlanRunner grouped(model(), default_options()), apart(model(), without_groups());
  REQUIRE(grouped.compiled().plan.launches == 1);
  const auto& buffers = *plan_of(grouped.compiled()).buffers();
  REQUIRE(std::any_of(buffers.begin(), buffers.end(), [](const plan::Buffer* b) { return b->pooled(); }));
  // By port: its values in all steps.
  struct Values {
    std::string name;
    std::vector<std::int64_t> shape;  // [steps, ..]
    std::vector<float> numbers;
  };
  std::vector<Values> inputs, outputs;
  const auto values_of = [&](const std::string& name, const std::vector<std::int64_t>& one) {
    Values v{name, {kSteps}, {}};
    v.shape.insert(v.shape.end(), one.begin(), one.end());
    const HostTensor tensor = random_tensor(DType::f32, v.shape, static_cast<unsigned>(inputs.size()) + 1);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) v.numbers.push_back(static_cast<float>(tensor.at(i)));
    return v;
  };
  for (int k = 0; k < kMembers; ++k) {
    const std::string n = std::to_string(k);
    inputs.push_back(values_of("w" + n, {3 + k, 2 + k}));
    inputs.push_back(values_of("pre" + n, {2 + k}));
    inputs.push_back(values_of("post" + n, {3 + k}));
    outputs.push_back(
        {"delta" + n, {kSteps, 3 + k, 2 + k}, std::vector<float>(static_cast<std::size_t>(kSteps * (3 + k) * (2 + k)))});
  }
  std::vector<oclc_series> series;
  for (Values& v : inputs) series.push_back(rt::host_series(OCLC_INPUT, v.name.c_str(), v.numbers.data(), v.shape));
  for (Values& v : outputs) series.push_back(rt::host_series(OCLC_OUTPUT, v.name.c_str(), v.numbers.data(), v.shape));
  grouped.session().run_steps(0, kSteps, series);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::vector<HostTensor> of_step;
    for (const Values& v : inputs) {
      HostTensor tensor(DType::f32, {v.shape.begin() + 1, v.shape.end()});
      for (std::int64_t i = 0; i < tensor.elements(); ++i)
        tensor.set(i, v.numbers[static_cast<std::size_t>(step * tensor.elements() + i)]);
      of_step.push_back(std::move(tensor));
    }
    const std::vector<HostTensor> wanted = apart.run(of_step);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const std::size_t elements = outputs[k].numbers.size() / kSteps;
      const float* found = outputs[k].numbers.data() + static_cast<std::size_t>(step) * elements;
      CHECK(std::equal(found, found + elements, reinterpret_cast<const float*>(wanted[k].data())));
    }
  }
}

TEST_CASE("A group's launch has the tiles of its members and no more") {
  CompileOptions options;
  options.target = find_target("h200");
  const Compiled compiled = compile(three_connections().import(options_with(head(kVoltageHead) + kVoltageCode)), options);
  REQUIRE(compiled.plan.launches == 1);
  const plan::Launch& launch = *plan_of(compiled).entries()->Get(0)->steps()->Get(0)->body_as_Launch();
  const std::int64_t items = launch.local()->Get(0);
  std::int64_t tiles = 0;
  for (const std::int64_t points : {20000, 5000, 900}) tiles += (points + items - 1) / items;
  CHECK(constant_of(launch.global()->Get(0)) == tiles * items);
}

TEST_CASE("An operator that says `ragged = false` keeps a launch for each use") {
  const std::string alone = head(kVoltageHead + "ragged = false\n") + kVoltageCode;
  const Compiled compiled = compile(three_connections().import(options_with(alone)), default_options());
  CHECK(groups_of(compiled) == 0);
  CHECK(groups_of(compile(three_connections().import(options_with(head(kVoltageHead) + kVoltageCode)), default_options())) ==
        1);
}

TEST_CASE("Uses that need each other, or differ in more than sizes, are not grouped") {
  const auto module = [](bool chained, DType second) {
    auto graph = std::make_unique<Graph>();
    Builder b(*graph, "use");
    const CustomOps ops = parse_ops(head(kVoltageHead) + kVoltageCode, "op.cl");
    const auto use = [&](Value* w, const std::string& name, DType dtype) {
      Value* pre = graph->add_input("pre" + name, {dtype, {Expr(9)}});
      Value* post = graph->add_input("post" + name, {dtype, {Expr(7)}});
      return custom::build(b, *ops.find("nef.Voltage"), {w, pre, post}, {})[0];
    };
    Value* first = use(graph->add_input("w", f32({Expr(7), Expr(9)})), "0", DType::f32);
    graph->add_output("y", first);
    Value* w = chained ? first : graph->add_input("v", {second, {Expr(7), Expr(9)}});
    graph->add_output("z", use(w, "1", second));
    return module_of(std::move(graph));
  };
  CHECK(groups_of(compile(module(false, DType::f32), default_options())) == 1);
  CHECK(groups_of(compile(module(true, DType::f32), default_options())) == 0);
  CHECK(groups_of(compile(module(false, DType::f16), default_options())) == 0);
}

TEST_CASE("Sizes of a group's members may be open until a run") {
  const auto make = [] {
    auto graph = std::make_unique<Graph>();
    Builder b(*graph, "use");
    const CustomOps ops = parse_ops(head(kVoltageHead) + kVoltageCode, "op.cl");
    const Expr m = Expr::symbol("M"), n = Expr::symbol("N");
    const std::pair<Expr, Expr> sizes[] = {{m, n}, {n, Expr(5)}, {Expr(40), m + 1}};
    for (const auto& [rows, columns] : sizes) {
      const std::string name = std::to_string(graph->inputs().size());
      Value* w = graph->add_input("w" + name, f32({rows, columns}));
      Value* pre = graph->add_input("pre" + name, f32({columns}));
      Value* post = graph->add_input("post" + name, f32({rows}));
      graph->add_output("y" + name, custom::build(b, *ops.find("nef.Voltage"), {w, pre, post}, {})[0]);
    }
    return module_of(std::move(graph));
  };
  PlanRunner grouped(make(), default_options()), apart(make(), without_groups());
  CHECK(groups_of(grouped.compiled()) == 1);
  for (const std::int64_t rows : {1, 13, 700}) {
    const SymbolValues sizes = {{"M", rows}, {"N", 1 + rows % 7}};
    const std::vector<HostTensor> inputs = random_inputs(*make(), sizes);
    CHECK(has_same_bits(grouped.run(inputs, sizes), apart.run(inputs, sizes)));
  }
}

TEST_CASE("Uses of what other uses gave are a group behind theirs, on every kind of device") {
  const auto make = [] {
    auto graph = std::make_unique<Graph>();
    Builder b(*graph, "use");
    const CustomOps ops = parse_ops(head(kVoltageHead) + kVoltageCode, "op.cl");
    for (int k = 0; k < 5; ++k) {
      const std::string name = std::to_string(k);
      const Expr rows(3 + 20 * k), columns(40 - 7 * k);
      Value* w = graph->add_input("w" + name, f32({rows, columns}));
      Value* pre = graph->add_input("pre" + name, f32({columns}));
      Value* post = graph->add_input("post" + name, f32({rows}));
      Attributes attributes;
      attributes["alpha"] = 0.5 + k;
      Value* once = custom::build(b, *ops.find("nef.Voltage"), {w, pre, post}, attributes)[0];
      graph->add_output("y" + name, custom::build(b, *ops.find("nef.Voltage"), {once, pre, post}, attributes)[0]);
    }
    return module_of(std::move(graph));
  };
  const std::vector<HostTensor> inputs = random_inputs(*make());
  const std::vector<HostTensor> wanted = evaluate(*make()->entries[0], inputs);
  for (const char* target : {"cpu", "gpu", "h200"}) {
    CAPTURE(target);
    CompileOptions options;
    options.target = find_target(target);
    PlanRunner grouped(make(), options), apart(make(), without_groups(options));
    CHECK(groups_of(grouped.compiled()) == 2);
    const std::vector<HostTensor> found = grouped.run(inputs);
    CHECK(difference(found, wanted).max_rel < 1e-6);
    CHECK(has_same_bits(found, apart.run(inputs)));
  }
}

TEST_CASE("States of a group's members lie in one memory object, and are read, reset and written as others are") {
  const auto make = [] {
    auto module = std::make_shared<Module>();
    auto graph = std::make_unique<Graph>();
    Builder b(*graph, "use");
    const CustomOps ops = parse_ops(head(kVoltageHead) + kVoltageCode, "op.cl");
    for (int k = 0; k < 30; ++k) {
      const std::string name = std::to_string(k);
      const std::int64_t rows = 1 + 5 * k % 23, columns = 1 + 7 * k % 31;
      const auto state = [&](const std::string& prefix, std::vector<std::int64_t> shape) {
        const TensorType type = f32(Shape(shape.begin(), shape.end()));
        module->states.push_back({prefix + name, type, random_tensor(DType::f32, shape, static_cast<unsigned>(k) + 1), {}});
        return graph->add_input(prefix + name, type);
      };
      Value *w = state("w", {rows, columns}), *pre = state("pre", {columns}), *post = state("post", {rows});
      Attributes attributes;
      attributes["alpha"] = 0.125 * k;
      graph->add_output("w" + name, b.add(w, custom::build(b, *ops.find("nef.Voltage"), {w, pre, post}, attributes)[0]));
    }
    module->entries.push_back(std::move(graph));
    return module;
  };
  PlanRunner grouped(make(), default_options()), apart(make(), without_groups());
  // The rule, and what adds its results to what it reads elsewhere.
  CHECK(groups_of(grouped.compiled()) == 2);
  CHECK(grouped.compiled().plan.launches == 1);
  const auto values = [&](PlanRunner& runner) {
    std::vector<HostTensor> all;
    const std::shared_ptr<Module> module = make();
    for (const StateVariable& state : module->states) {
      HostTensor& value = all.emplace_back(DType::f32, state.initial.shape());
      runner.session().read_variable(state.name, value.mutable_data(), value.bytes());
    }
    return all;
  };
  const std::vector<HostTensor> initial = values(grouped);
  CHECK(has_same_bits(initial, values(apart)));
  for (int run = 0; run < 3; ++run) {
    for (PlanRunner* runner : {&grouped, &apart}) runner->run({});
  }
  CHECK(has_same_bits(values(grouped), values(apart)));
  CHECK_FALSE(has_same_bits(values(grouped), initial));
  const float other[] = {7};
  grouped.session().write_variable("w0", other, sizeof other);
  std::vector<HostTensor> changed = values(apart);
  changed[0].set(0, 7);
  CHECK(has_same_bits(values(grouped), changed));
  grouped.session().reset_state();
  CHECK(has_same_bits(values(grouped), initial));
}

namespace {

// States of `members` sizes move to others, which are states as well: by a user's body, or by the core's operators.
std::shared_ptr<Module> decays_of(int members, bool as_body) {
  auto module = std::make_shared<Module>();
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "use");
  const CustomOps ops = parse_ops(head(R"op(name = "nef.Decay"
in = ["w: T[N]", "x: T[N]"]
out = ["y: T[N]"]
kernel = "decay"
each = ["N"]
reference = "y[i] = w[i] + 0.5 * (x[i] - w[i])"
)op") + "OP(decay) { STORE(y, ID(0), LOAD(w, ID(0)) + 0.5f * (LOAD(x, ID(0)) - LOAD(w, ID(0)))); }\n",
                                  "op.cl");
  for (int k = 0; k < members; ++k) {
    const auto state = [&](const std::string& name) {
      const std::int64_t elements = 300 + 700 * k % 3800;
      module->states.push_back(
          {name, f32({Expr(elements)}), random_tensor(DType::f32, {elements}, static_cast<unsigned>(k) + 1), {}});
      return graph->add_input(name, f32({Expr(elements)}));
    };
    const std::string number = std::to_string(k);
    Value *from = state("w" + number), *to = state("x" + number);
    graph->add_output("w" + number, as_body ? custom::build(b, *ops.find("nef.Decay"), {from, to}, {})[0]
                                            : b.add(from, b.mul(b.scalar(DType::f32, 0.5), b.sub(to, from))));
  }
  module->entries.push_back(std::move(graph));
  return module;
}

}  // namespace

TEST_CASE("What a group gives is alive from its launch on: what is done with it shares a launch") {
  CompileOptions options;
  options.target = find_target("h200");
  // Five bodies, and copies of their results into the states that they read.
  const Compiled compiled = compile(decays_of(5, true), options);
  CHECK(members_of_groups(compiled) >= 5);
  CHECK(compiled.plan.launches == 2);
}

TEST_CASE("A group of the core's operators pays where it saves memory objects that horizontally fused kernels pass") {
  CompileOptions options;
  options.target = find_target("h200");
  // Each member has a state of its own, which lies in the group's object.
  for (const int members : {3, 10, 20}) {
    CAPTURE(members);
    const Compiled compiled = compile(decays_of(members, false), options);
    CHECK(compiled.plan.launches == 1);
    CHECK(groups_of(compiled) == 1);
  }
  // Inputs and outputs of callers are objects of their own in a group as well.
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "use");
  for (int k = 0; k < 10; ++k) {
    const std::string number = std::to_string(k);
    graph->add_output("y" + number, b.relu(graph->add_input("x" + number, f32({Expr(300 + 700 * k % 3800)}))));
  }
  const Compiled apart = compile(module_of(std::move(graph)), options);
  CHECK(apart.plan.launches == 1);
  CHECK(groups_of(apart) == 0);
}

namespace {

// Learning rules of NengoOCL, as a formula and as a body.
struct Rule {
  std::string name, in, attributes, formula, body;
};
const Rule kRules[] = {
    {"PES", R"("pre: T[N]", "err: T[M]")", "rate = 1e-4", "delta[i,j] = -rate * err[i] * pre[j]",
     "-rate * LOAD(err, i) * LOAD(pre, j)"},
    {"BCM", R"("pre: T[N]", "post: T[M]", "theta: T[M]")", "rate = 1e-3",
     "delta[i,j] = rate * post[i] * (post[i] - theta[i]) * pre[j]",
     "rate * LOAD(post, i) * (LOAD(post, i) - LOAD(theta, i)) * LOAD(pre, j)"},
    {"Oja", R"("w: T[M, N]", "pre: T[N]", "post: T[M]")", "rate = 1e-3, beta = 0.5",
     "delta[i,j] = rate * post[i] * (pre[j] - beta * post[i] * w[i,j])",
     "rate * LOAD(post, i) * (LOAD(pre, j) - beta * LOAD(post, i) * LOAD(w, i, j))"},
    {"Voja", R"("w: T[M, N]", "x: T[N]", "post: T[M]", "scale: T[M]")", "rate = 1e-2",
     "delta[i,j] = rate * post[i] * (scale[i] * x[j] - w[i,j])",
     "rate * LOAD(post, i) * (LOAD(scale, i) * LOAD(x, j) - LOAD(w, i, j))"},
    {"Voltage", R"("w: T[M, N]", "pre: T[N]", "post: T[M]")", "rate = 1e-6", "delta[i,j] = rate * post[i] * w[i,j] * pre[j]",
     "rate * LOAD(post, i) * LOAD(w, i, j) * LOAD(pre, j)"},
};

std::string text_of(const Rule& rule, bool as_body) {
  std::string text = "name = \"nef." + rule.name + "\"\nin = [" + rule.in + "]\nout = [\"delta: T[M, N]\"]\nattr = { " +
                     rule.attributes + " }\n";
  if (!as_body) return head(text + "formula = \"" + rule.formula + "\"\n" + "where = [\"M >= 1\", \"N >= 1\"]");
  text += "kernel = \"rule\"\neach = [\"M\", \"N\"]\nreference = \"" + rule.formula + "\"\n";
  return head(text) + "OP(rule) {\n  const int i = ID(0), j = ID(1);\n  STORE(delta, i, j, " + rule.body + ");\n}\n";
}

// A use of a rule: its sizes, which may be open, and its learning rate.
struct Member {
  Expr rows, columns;
  double rate = 0;
};
constexpr double kRates[] = {1e-3, 0.25, 0.01};

std::vector<Member> random_members(int members, unsigned seed, int largest) {
  std::mt19937 random(seed);
  const auto draw = [&] { return Expr(1 + static_cast<int>(random() % static_cast<unsigned>(largest))); };
  std::vector<Member> all;
  for (int k = 0; k < members; ++k) {
    const Expr rows = draw();
    all.push_back({rows, draw(), kRates[random() % std::size(kRates)]});
  }
  return all;
}

std::shared_ptr<Module> uses_of(const Rule& rule, bool as_body, std::span<const Member> members) {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "use");
  const CustomOps ops = parse_ops(text_of(rule, as_body), "op.cl");
  const custom::CustomOp& op = *ops.find("nef." + rule.name);
  for (std::size_t k = 0; k < members.size(); ++k) {
    std::vector<Value*> operands;
    for (const custom::Operand& in : op.in) {
      Shape shape;
      for (const custom::Formula& dim : in.dims)
        shape.emplace_back(custom::size_of(op, dim, {{"M", members[k].rows}, {"N", members[k].columns}}, {}));
      operands.push_back(graph->add_input(in.name + std::to_string(k), f32(std::move(shape))));
    }
    Attributes attributes;
    attributes["rate"] = members[k].rate;
    graph->add_output("delta" + std::to_string(k), custom::build(b, op, operands, attributes)[0]);
  }
  return module_of(std::move(graph));
}

}  // namespace

TEST_CASE("Learning rules over connections of random sizes give the same bits grouped and single") {
  for (const Rule& rule : kRules) {
    for (const bool as_body : {false, true}) {
      CAPTURE(rule.name);
      CAPTURE(as_body);
      const auto make = [&] { return uses_of(rule, as_body, random_members(30, 7, 70)); };
      const std::vector<HostTensor> inputs = random_inputs(*make());
      PlanRunner grouped(make(), default_options()), apart(make(), without_groups());
      // Small operands lie in one pool, whoever binds them.
      CHECK(groups_of(grouped.compiled()) == 1);
      CHECK(grouped.compiled().plan.launches == 1);
      CHECK(groups_of(apart.compiled()) == 0);
      const std::vector<HostTensor> found = grouped.run(inputs);
      CHECK(has_same_bits(found, apart.run(inputs)));
      CHECK(difference(found, evaluate(*make()->entries[0], inputs)).max_rel < 1e-5);
    }
  }
}

// A plan of one use with open sizes stands for the texts of all. Five hundred uses where all tests are asked for.
TEST_CASE("Many uses of a learning rule in one launch give the bits that each gives alone") {
  const int count = std::getenv("OCLC_TEST_ALL") == nullptr ? 60 : 500;
  const std::vector<Member> members = random_members(count, 11, 60);
  for (const Rule& rule : kRules) {
    for (const bool as_body : {false, true}) {
      CAPTURE(rule.name);
      CAPTURE(as_body);
      const std::vector<HostTensor> inputs = random_inputs(*uses_of(rule, as_body, members));
      PlanRunner grouped(uses_of(rule, as_body, members), default_options());
      // Rows or columns of one element have texts of their own, of which there may be one alone.
      CHECK(groups_of(grouped.compiled()) <= 3);
      CHECK(members_of_groups(grouped.compiled()) >= static_cast<std::uint32_t>(count * 9 / 10));
      CHECK(grouped.compiled().plan.launches == 1);
      const std::vector<HostTensor> found = grouped.run(inputs);
      REQUIRE(found.size() == members.size());
      const std::size_t operands = inputs.size() / members.size();
      int alike = 0;
      for (const double rate : kRates) {
        const Member open{Expr::symbol("M"), Expr::symbol("N"), rate};
        PlanRunner alone(uses_of(rule, as_body, std::span(&open, 1)), default_options());
        for (std::size_t k = 0; k < members.size(); ++k) {
          if (members[k].rate != rate) continue;
          const auto begin = inputs.begin() + static_cast<std::ptrdiff_t>(k * operands);
          const std::vector<HostTensor> own(begin, begin + static_cast<std::ptrdiff_t>(operands));
          const std::vector<HostTensor> single =
              alone.run(own, {{"M", members[k].rows.value()}, {"N", members[k].columns.value()}});
          alike += has_same_bits({found[k]}, single) ? 1 : 0;
        }
      }
      CHECK(alike == count);
    }
  }
}

}  // namespace oclc::test
