// oclc: compiles an ONNX model to a plan. The contract of its options and exit codes is in docs/cli.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "compiler/compile.h"
#include "compiler/ir/text.h"
#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "plan_generated.h"
#include "runtime/package/arena.h"
#include "runtime/package/writer.h"

namespace {

using namespace oclc;

struct Arguments {
  std::string model, output, target = "cpu", precision = "fp32", conv = "auto", gemm = "own", stop_after, emit_dir;
  std::vector<std::string> dims, shapes, disabled;
  bool report = false, quiet = false;
};

ImportOptions import_options(const Arguments& arguments) {
  ImportOptions options;
  for (const std::string& binding : arguments.dims) {
    const std::size_t at = binding.find('=');
    if (at == std::string::npos) throw CompileError({.stage = "usage", .wanted = "--dim NAME=VALUE", .found = binding, .exit_code = ExitCode::usage});
    options.dims[binding.substr(0, at)] = std::stoll(binding.substr(at + 1));
  }
  options.warn = [](const std::string& text) { fmt::print(stderr, "oclc: warning: {}\n", text); };
  return options;
}

void write_files(const Compiled& compiled, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const GeneratedFile& file : compiled.plan.files) {
    std::ofstream(folder / (file.name + ".cl")) << file.source;
  }
}

int run(const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  CompileOptions options;
  options.target = find_target(arguments.target);
  options.disabled = arguments.disabled;
  options.precision = arguments.precision;
  options.report = arguments.report;
  std::shared_ptr<Module> module = import_onnx(arguments.model, import_options(arguments));
  if (arguments.stop_after == "graph" || arguments.stop_after == "passes") {
    if (arguments.stop_after == "passes") run_pipeline(*module, options);
    std::cout << print_module(*module);
    return 0;
  }
  const Compiled compiled = compile(std::move(module), options);
  if (arguments.stop_after == "kernels") {
    for (const Kernel& kernel : compiled.schedule.kernels) std::cout << kernel.text();
    return 0;
  }
  if (arguments.report) {
    for (const NodeFate& fate : compiled.fates) fmt::print("{:40} {:16} {}\n", fate.source, fate.op, fate.fate);
  }
  if (!arguments.emit_dir.empty()) write_files(compiled, arguments.emit_dir);
  if (!arguments.output.empty()) package::write_package(arguments.output, std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{}: {} kernels, {} launches, constants {:.1f} MiB, compiled in {:.2f} s\n", arguments.output, compiled.plan.files.size(), compiled.plan.launches,
             static_cast<double>(compiled.plan.constants.bytes()) / (1 << 20), seconds.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Compiles a neural network to OpenCL kernels and a launch schedule."};
  app.add_option("model", arguments.model, "ONNX file")->required();
  app.add_option("-o,--output", arguments.output, "plan to write");
  app.add_option("--dim", arguments.dims, "bind a symbolic dimension: N=4");
  app.add_option("--target", arguments.target, "device profile");
  app.add_option("--disable", arguments.disabled, "switch passes off by name")->delimiter(',');
  app.add_option("--precision", arguments.precision, "numeric contract");
  app.add_option("--stop-after", arguments.stop_after, "print that stage's text form and stop");
  app.add_option("--emit-dir", arguments.emit_dir, "write every generated .cl there");
  app.add_flag("--report", arguments.report, "one row per source node");
  try {
    app.parse(argc, argv);
    return run(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  } catch (const CompileError& error) {
    fmt::print(stderr, "oclc: error: {}: {}\n", arguments.model, error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const package::Error& error) {
    fmt::print(stderr, "oclc: error: {}\n", error.what());
    return static_cast<int>(ExitCode::io);
  } catch (const std::exception& error) {
    fmt::print(stderr, "oclc: internal error: {}\n", error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
