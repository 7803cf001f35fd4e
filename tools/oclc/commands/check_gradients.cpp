// oclc check-gradients MODEL: the gradients of a model's operators beside finite differences.
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/training/gradient_check.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kCheckGradientsHelp = R"(usage: oclc check-gradients MODEL [options]
Compares the gradients of a model with finite differences, in double on the slow host reference: of each operator on the values it
meets in the model, and of the whole model along one random direction of all variables. Variables are the floating-point inputs
(random) and initializers; the loss is a random projection of the outputs. Prints the operators, the worst first. Small sizes
(--dim, --shape) save much time.

  --dim N=4                sizes of symbolic dimensions; others are 2
  --shape x=1x3x32x32      fix an input's shape
  --all                    every node, not one of each operator, attributes and shapes
  --tolerance E            largest error that passes (default: 1e-6)
  --seed N                 of the random numbers (default: 1)
  --op FILE  --external-data-dir DIR  --allow-symlinks  --allow-newer-opset   how the model is read, see oclc --help
  --json                   as JSON
  -v  -q  --color auto|always|never  --progress auto|none|json  -h, --help
Exit code 7 if an error is larger than the tolerance, 4 if an operator has no gradient (all of them are listed).
)";

namespace {

using nlohmann::json;

struct CheckGradientsArguments {
  std::string model;
  bool all = false;
  double tolerance = 1e-6;
  std::uint64_t seed = 1;
  OutputOptions shown;
  ReadOptions read;
};

ImportOptions static_sizes(const CheckGradientsArguments& arguments) {
  ImportOptions options = import_options(arguments.read);
  ImportOptions silent = options;
  silent.warn = nullptr;
  const std::shared_ptr<Module> module = read_model(arguments.model, silent);
  for (const Expr& symbol : module->symbols)
    options.dims.emplace(*symbol.symbol_name(), std::clamp<std::int64_t>(2, symbol.lower(), symbol.upper()));
  return options;
}

// JSON has no NaN.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json document_of(const GradientCheck& check, const CheckGradientsArguments& arguments, bool passed) {
  json operators = json::array();
  for (const OperatorCheck& c : check.operators) {
    operators.push_back({{"op", c.op},
                         {"nodes", c.nodes},
                         {"checked", c.checked},
                         {"kinks", c.kinks},
                         {"error", number(c.error)},
                         {"worst_node", c.worst}});
  }
  return {{"schema", 1},
          {"kind", "gradients"},
          {"model", arguments.model},
          {"variables", check.variables},
          {"operators", operators},
          {"whole_model",
           {{"derivative", number(check.derivative)},
            {"difference", number(check.difference)},
            {"error", number(check.model_error)}}},
          {"worst", number(check.worst())},
          {"tolerance", arguments.tolerance},
          {"passed", passed}};
}

void print(const GradientCheck& check, const CheckGradientsArguments& arguments, bool passed) {
  print_result(
      fmt::format("{:18} {:>6} {:>8} {:>6} {:>9}  {}\n", "operator", "nodes", "checked", "kinks", "error", "worst node"));
  for (const OperatorCheck& c : check.operators)
    print_result(fmt::format("{:18} {:>6} {:>8} {:>6} {:>9.1e}  {}\n", c.op, c.nodes, c.checked, c.kinks, c.error, c.worst));
  print_result(fmt::format("whole model, {} variables: derivative {:.9g}, difference {:.9g}, error {:.1e}\n", check.variables,
                           check.derivative, check.difference, check.model_error));
  print_result(fmt::format("check-gradients: {} worst={:.1e} (tolerance={:.1e})\n", passed ? "PASS" : "FAIL", check.worst(),
                           arguments.tolerance));
}

}  // namespace

int check_gradients_command(int argc, char** argv, std::string& file) {
  CheckGradientsArguments arguments;
  CLI::App app;
  app.add_option("model", arguments.model);
  app.add_flag("--all", arguments.all);
  app.add_option("--tolerance", arguments.tolerance);
  app.add_option("--seed", arguments.seed);
  add_output_options(app, arguments.shown);
  add_read_options(app, arguments.read);
  if (parse(app, argc, argv, kCheckGradientsHelp)) return 0;
  if (arguments.model.empty()) usage_error("wanted a model file, found none");
  if (arguments.model == "-") usage_error("wanted a model file, which is read twice, found standard input");
  if (!(arguments.tolerance > 0)) usage_error(fmt::format("wanted a positive tolerance, found {}", arguments.tolerance));
  file = arguments.model;
  GradientCheck check;
  {
    Progress progress(arguments.shown.progress_form());
    progress.stage("graph");
    const std::shared_ptr<Module> module = read_model(arguments.model, static_sizes(arguments));
    GradientCheckOptions options;
    options.seed = arguments.seed;
    options.all_nodes = arguments.all;
    options.progress = [&](std::string_view what) { progress.stage(what); };
    check = check_gradients(*module->entries.at(0), options);
  }
  const bool passed = check.worst() <= arguments.tolerance;
  if (arguments.shown.json) {
    print_result(document_of(check, arguments, passed).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  } else {
    print(check, arguments, passed);
  }
  return static_cast<int>(passed ? ExitCode::good : ExitCode::verification);
}

}  // namespace oclc::tool
