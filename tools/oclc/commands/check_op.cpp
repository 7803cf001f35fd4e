// oclc check-op FILE: operators of a file tried on sizes at random, beside the host reference and finite differences.
// oclc new-op NAME: a file to begin with.
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/training/gradient_check.h"
#include "frontends/op/custom_op.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kCheckOpHelp = R"(usage: oclc check-op FILE [options]
Reads the operators of a file, tries each on sizes at random (all sizes 1 first, optional inputs every other time), runs it on the
device beside the host reference, for each element type that it is written for, and compares its gradients with finite differences.
Bodies of kernels run once more with every position checked: reads and writes outside of an operand are named by their line; and three
uses of several sizes in one launch have to give the bits of three launches.

  -d, --device SEL         the device: index | P:D | part of its name | cpu | gpu
  --no-device              without running anything on a device
  --sizes N                sets of sizes to try (default: 12)
  --seed N                 of sizes and values (default: 1)
  --tolerance E            largest error that passes, as a part of the largest result (default: 2e-5; of 16-bit types one rounding more)
  --json                   as JSON
  -v  -q  --color auto|always|never  --progress auto|none|json  -h, --help
Exit code 7 if an error is larger than the tolerance, 3 if the file is wrong or no sizes fit.
)";

const std::string_view kNewOpHelp = R"(usage: oclc new-op DOMAIN.NAME [-o FILE]
Writes a file with an operator of that name to begin with: y = x * sigmoid(slope * x). `oclc check-op FILE` tries it, and
`oclc MODEL.onnx --op FILE` compiles models whose nodes have this domain and type.

  -o, --output FILE        where to (default: NAME.cl); "-": standard output
  -q  -h, --help
)";

namespace {

using nlohmann::json;

constexpr double kGradientTolerance = 1e-6;
constexpr int kGradientSizes = 4;

struct CheckOpArguments {
  std::string file, device;
  bool no_device = false;
  unsigned sizes = 12, seed = 1;
  double tolerance = 2e-5;
  OutputOptions shown;
};

// One operator with one element type.
struct OpCheck {
  std::string op, type;
  int tried = 0, fitted = 0;
  std::string misfit;              // why sizes did not fit, of the last that did not
  double error = 0;                // of the device's results
  std::string worst;               // the sizes of that error
  std::optional<double> gradient;  // largest error
  std::string without_gradient;    // why there is none
  std::string outside;             // a call of a body that was outside of its operand, and with which sizes
  std::string apart;               // sizes of uses that give other bits in one launch than each alone
};

std::vector<HostTensor> random_inputs(const Graph& graph, std::mt19937& random) {
  std::vector<HostTensor> tensors;
  for (const auto& input : graph.inputs()) {
    HostTensor& tensor = tensors.emplace_back(input->type.dtype, bind_shape(input->type.shape, {}));
    const bool floats = is_float(tensor.dtype());
    // Integers may be positions: 0 is one of every tensor.
    for (std::int64_t i = 0; floats && i < tensor.elements(); ++i)
      tensor.set(i, static_cast<double>(random()) / 2147483648.0 - 1);
  }
  return tensors;
}

// As a part of the largest result, and at least of the smallest number that has all bits of its type: below it roundings do not
// become smaller.
double largest_error(const HostTensor& found, const HostTensor& wanted) {
  double largest = found.dtype() == DType::f16 ? 0x1p-14 : is_float(found.dtype()) ? 0x1p-126 : 0, error = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const double f = found.at(i), w = wanted.at(i);
    if (f == w || (std::isnan(f) && std::isnan(w))) continue;
    const double apart = std::fabs(f - w);
    error = std::isfinite(apart) ? std::max(error, apart) : INFINITY;
  }
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    if (std::isfinite(wanted.at(i))) largest = std::max(largest, std::fabs(wanted.at(i)));
  }
  return largest > 0 ? error / largest : error;
}

std::vector<HostTensor> run_on(const rt::Context& context, std::shared_ptr<Module> module, const CompileOptions& options,
                               const std::vector<HostTensor>& inputs) {
  const Compiled compiled = compile(std::move(module), options);
  const auto package = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
  const rt::Plan plan = rt::Plan::load(package.data(), package.size());
  rt::Session session(plan, context);
  static constexpr std::int64_t kNone = 0;
  const EntrySchedule& entry = compiled.schedule.entries.at(0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = static_cast<oclc_dtype>(inputs[i].dtype());
    tensor.rank = static_cast<std::uint32_t>(inputs[i].shape().size());
    tensor.shape = inputs[i].shape().empty() ? &kNone : inputs[i].shape().data();
    tensor.host = const_cast<std::byte*>(inputs[i].data());  // only read
    tensor.bytes = inputs[i].bytes();
    session.set_input(0, entry.inputs[i].first, tensor);
  }
  std::vector<HostTensor> outputs;
  for (const auto& [name, type] : entry.outputs) {
    HostTensor& y = outputs.emplace_back(type.dtype, bind_shape(type.shape, {}));
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = static_cast<oclc_dtype>(type.dtype);
    tensor.host = y.mutable_data();
    tensor.bytes = y.bytes();
    session.set_output(0, name, tensor);
  }
  session.run(0);
  return outputs;
}

// 16-bit results are rounded to 11 or 8 bits of their own.
double rounding_of(DType dtype) { return dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : 0; }

class OpChecker {
 public:
  OpChecker(const CheckOpArguments& arguments, Progress& progress) : arguments_(arguments), progress_(progress) {
    if (arguments.no_device) return;
    BuildOptions build;
    build.device = arguments.device;
    context_ = std::make_unique<rt::Context>(arguments.device);
    options_ = compile_options(build, progress);
    options_.progress = nullptr;
  }

  OpCheck check(const custom::CustomOp& op, DType dtype) {
    OpCheck result;
    result.op = op.name;
    result.type = name_of(dtype);
    std::mt19937 random(arguments_.seed);
    int gradients = 0;
    for (unsigned i = 0; i < arguments_.sizes; ++i) {
      progress_.stage(fmt::format("{} {} {}", op.name, name_of(dtype), i));
      ++result.tried;
      std::string sizes;
      std::shared_ptr<Module> module;
      try {
        module = std::make_shared<Module>();
        module->entries.push_back(custom::example(op, dtype, seed_of(i), sizes));
      } catch (const CompileError& error) {
        result.misfit = fmt::format("{} ({})", error.what(), sizes);
        continue;
      }
      ++result.fitted;
      const Graph& graph = *module->entries[0];
      const std::vector<HostTensor> inputs = random_inputs(graph, random);
      const std::vector<HostTensor> wanted = reference(dtype, graph, inputs);
      if (dtype == DType::f32 && gradients < kGradientSizes && result.without_gradient.empty()) {
        differentiate(graph, result);
        ++gradients;
      }
      if (!context_) continue;
      if (!op.kernel.empty()) look_outside(op, dtype, i, inputs, result);
      const std::vector<HostTensor> found = run_on(*context_, std::move(module), options_, inputs);
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        const double error = largest_error(found[k], wanted[k]);
        if (!(error > result.error)) continue;
        result.error = error;
        result.worst = sizes;
      }
    }
    if (context_ && result.fitted == result.tried && !op.kernel.empty() && op.ragged) look_at_group(op, dtype, result);
    if (result.fitted == 0) throw CompileError({.stage = "operator", .wanted = result.misfit});
    return result;
  }

 private:
  // Kernels compute with 16-bit numbers in single precision and round what they store, where the host rounds after each
  // operator. So the reference of these types is computed in double, with constants and operands as they are rounded.
  static std::vector<HostTensor> reference(DType dtype, const Graph& graph, const std::vector<HostTensor>& inputs) {
    const bool halves = dtype == DType::f16 || dtype == DType::bf16;
    return halves ? evaluate_in_double(graph, inputs) : evaluate(graph, inputs);
  }

  // Runs the body with every position checked.
  void look_outside(const custom::CustomOp& op, DType dtype, unsigned i, const std::vector<HostTensor>& inputs,
                    OpCheck& result) const {
    if (!result.outside.empty()) return;
    auto module = std::make_shared<Module>();
    std::string sizes;
    module->entries.push_back(custom::example(op, dtype, seed_of(i), sizes, custom::Build::checked));
    const std::vector<HostTensor> found = run_on(*context_, std::move(module), options_, inputs);
    const HostTensor& flags = found.back();
    for (std::int64_t e = 0; e < flags.elements(); ++e) {
      const auto call = static_cast<int>(flags.int_at(e));
      if (call == 0) continue;
      result.outside = fmt::format("{} is outside of its operand ({})", custom::call_place(op, call), sizes);
      return;
    }
  }

  // Runs three uses of several sizes in one launch, and each alone, where all sizes fit. Optional inputs are there in all.
  void look_at_group(const custom::CustomOp& op, DType dtype, OpCheck& result) const {
    std::string all;
    const auto make = [&] {
      auto module = std::make_shared<Module>();
      auto graph = std::make_unique<Graph>();
      all.clear();
      for (const unsigned seed : {2U, 0U, 4U}) {
        std::string sizes;
        custom::add_example(*graph, op, dtype, seed, fmt::format("_{}", seed), sizes);
        all += (all.empty() ? "" : "; ") + sizes;
      }
      module->entries.push_back(std::move(graph));
      return module;
    };
    std::shared_ptr<Module> together = make();
    std::mt19937 random(arguments_.seed);
    const std::vector<HostTensor> inputs = random_inputs(*together->entries[0], random);
    CompileOptions single = options_;
    single.disabled.push_back("ragged_groups");
    const std::vector<HostTensor> found = run_on(*context_, std::move(together), options_, inputs),
                                  wanted = run_on(*context_, make(), single, inputs);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (!std::equal(wanted[k].data(), wanted[k].data() + wanted[k].bytes(), found[k].data())) result.apart = all;
    }
  }

  unsigned seed_of(unsigned i) const { return i == 0 ? 0 : i + arguments_.seed - 1; }

  void differentiate(const Graph& graph, OpCheck& result) const {
    const bool any = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                 [](const auto& input) { return is_float(input->type.dtype) && !input->users.empty(); });
    const bool floats = std::all_of(graph.outputs().begin(), graph.outputs().end(),
                                    [](const auto& output) { return is_float(output.second->type.dtype); });
    if (!any || !floats) {
      result.without_gradient = "no floating-point numbers";
      return;
    }
    try {
      GradientCheckOptions options;
      options.seed = arguments_.seed;
      const GradientCheck check = check_gradients(graph, options);
      result.gradient = std::max(result.gradient.value_or(0), check.worst());
    } catch (const CompileError& error) {
      result.without_gradient = error.what();
    }
  }

  const CheckOpArguments& arguments_;
  Progress& progress_;
  std::unique_ptr<rt::Context> context_;
  CompileOptions options_;
};

// The types to try: those of the first name of types, or the first operand's.
std::vector<DType> types_of(const custom::CustomOp& op) {
  for (const custom::Operand& operand : op.in) {
    const auto at = op.types.find(operand.type);
    if (at != op.types.end()) return at->second;
  }
  return {DType::f32};
}

bool passes(const OpCheck& c, const CheckOpArguments& arguments) {
  return c.outside.empty() && c.apart.empty() && c.error <= arguments.tolerance + rounding_of(*dtype_of(c.type)) &&
         c.gradient.value_or(0) <= kGradientTolerance;
}

void print(const std::vector<OpCheck>& checks, const CheckOpArguments& arguments) {
  print_result(
      fmt::format("{:24} {:>5} {:>7} {:>9} {:>9}  {}\n", "operator", "type", "sizes", "error", "gradient", "worst sizes"));
  for (const OpCheck& c : checks) {
    const std::string gradient = c.gradient ? fmt::format("{:.1e}", *c.gradient) : "-";
    print_result(fmt::format("{:24} {:>5} {:>7} {:>9} {:>9}  {}\n", table_cell(c.op, 24), c.type,
                             fmt::format("{}/{}", c.fitted, c.tried),
                             arguments.no_device ? "-" : fmt::format("{:.1e}", c.error), gradient, c.worst));
    if (!c.outside.empty()) print_warning(fmt::format("{}: {}", c.op, c.outside));
    if (!c.apart.empty())
      print_warning(fmt::format("{}: gives other bits in one launch with others than alone ({})", c.op, c.apart));
    if (!c.without_gradient.empty() && c.type == "f32")
      print_note(fmt::format("{}: no gradient: {}", c.op, c.without_gradient));
    if (!c.misfit.empty()) print_note(fmt::format("{}: sizes that do not fit: {}", c.op, c.misfit));
  }
}

json document_of(const std::vector<OpCheck>& checks, const CheckOpArguments& arguments, bool passed) {
  json list = json::array();
  for (const OpCheck& c : checks) {
    list.push_back({{"op", c.op},
                    {"type", c.type},
                    {"tried", c.tried},
                    {"fitted", c.fitted},
                    {"error", arguments.no_device || !std::isfinite(c.error) ? json(nullptr) : json(c.error)},
                    {"gradient_error", c.gradient ? json(*c.gradient) : json(nullptr)},
                    {"outside", c.outside.empty() ? json(nullptr) : json(c.outside)},
                    {"apart", c.apart.empty() ? json(nullptr) : json(c.apart)},
                    {"worst_sizes", c.worst}});
  }
  return {{"schema", 1},    {"kind", "operators"}, {"file", arguments.file}, {"tolerance", arguments.tolerance},
          {"checks", list}, {"passed", passed}};
}

}  // namespace

int check_op_command(int argc, char** argv, std::string& file) {
  CheckOpArguments arguments;
  CLI::App app;
  app.add_option("file", arguments.file);
  app.add_option("-d,--device", arguments.device);
  app.add_flag("--no-device", arguments.no_device);
  app.add_option("--sizes", arguments.sizes)->check(command_line::in_range(1, 10'000));
  app.add_option("--seed", arguments.seed);
  app.add_option("--tolerance", arguments.tolerance)->check(command_line::above_zero());
  add_output_options(app, arguments.shown);
  if (parse(app, argc, argv, kCheckOpHelp)) return 0;
  if (arguments.file.empty()) usage_error("wanted a file of operators, found none");
  if (arguments.no_device && !arguments.device.empty()) usage_error("wanted --device or --no-device, found both");
  const CustomOps ops = load_ops(arguments.file);
  file = arguments.file;
  std::vector<OpCheck> checks;
  {
    Progress progress(arguments.shown.progress_form());
    OpChecker checker(arguments, progress);
    for (const std::string& name : ops.names()) {
      const custom::CustomOp& op = *ops.find(name);
      for (const DType dtype : types_of(op)) {
        try {
          checks.push_back(checker.check(op, dtype));
        } catch (const CompileError& error) {
          if (error.parts().exit_code != ExitCode::unsupported) throw;
          print_note(fmt::format("{} of {}: {}", name, name_of(dtype), error.what()));
        }
      }
    }
  }
  const bool passed = std::all_of(checks.begin(), checks.end(), [&](const OpCheck& c) { return passes(c, arguments); });
  if (arguments.shown.json) {
    print_result(document_of(checks, arguments, passed).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  } else {
    print(checks, arguments);
    print_result(fmt::format("check-op: {} (tolerance={:.1e})\n", passed ? "PASS" : "FAIL", arguments.tolerance));
  }
  return static_cast<int>(passed ? ExitCode::good : ExitCode::verification);
}

int new_op_command(int argc, char** argv, std::string& file) {
  std::string name, output;
  CLI::App app;
  app.add_option("name", name);
  app.add_option("-o,--output", output);
  app.add_flag("-q,--quiet", console().quiet);
  if (parse(app, argc, argv, kNewOpHelp)) return 0;
  if (name.empty()) usage_error("wanted a name DOMAIN.NAME, found none");
  const std::string text = fmt::format(R"OP(/*! oclc-op 1
# The ONNX node's domain and type.
name    = "{}"
in      = ["x: T[...]"]
out     = ["y: T[...]"]
attr    = {{ slope = 1.0 }}
# Index notation works too: in = ["w: T[M, N]", "v: T[N]"], out = ["y: T[M]"], formula = "y[i] = sum(j: w[i, j] * v[j])".
formula = "y = x * sigmoid(slope * x)"
*/
)OP",
                                       name);
  parse_ops(text, "NAME");  // refuses what is no name
  if (output == "-") {
    print_result(text);
    return 0;
  }
  if (output.empty()) output = name.substr(name.rfind('.') + 1) + ".cl";
  file = output;
  std::error_code ignored;
  if (std::filesystem::exists(output, ignored)) io_error(output, "there is a file of this name", EEXIST);
  std::ofstream out(output, std::ios::binary);
  out << text;
  out.close();
  if (!out) io_error(output, "cannot write the operator", errno);
  if (!console().quiet)
    print_result(
        fmt::format("{}: try it with `oclc check-op {}`, use it with `oclc MODEL.onnx --op {}`\n", output, output, output));
  return 0;
}

}  // namespace oclc::tool
