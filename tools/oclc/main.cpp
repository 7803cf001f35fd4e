// oclc: compiles an ONNX model to a plan. The contract of its options and exit codes is docs/cli.md.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/nearest.h"
#include "oclc/oclc.h"
#include "tools/command_line/manual.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"

namespace oclc::tool {
namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv, std::string& file);
  const std::string_view* help;
};

constexpr Command kCommands[] = {{"bench", bench_command, &kBenchHelp},
                                 {"cache", cache_command, &kCacheHelp},
                                 {"check-gradients", check_gradients_command, &kCheckGradientsHelp},
                                 {"check-op", check_op_command, &kCheckOpHelp},
                                 {"conformance", conformance_command, &kConformanceHelp},
                                 {"devices", devices_command, &kDevicesHelp},
                                 {"export-onnx", export_command, &kExportHelp},
                                 {"info", info_command, &kInfoHelp},
                                 {"new-op", new_op_command, &kNewOpHelp},
                                 {"refit", refit_command, &kRefitHelp},
                                 {"tune", tune_command, &kTuneHelp}};

// --man, and --completion SHELL.
int print_manual(std::string_view shell) {
  std::vector<command_line::Manual> manuals = {{"", kCompileHelp}};
  for (const Command& command : kCommands) manuals.push_back({command.name, *command.help});
  const std::string text = shell.empty()
                               ? command_line::man_page("oclc", oclc_version(), "compiles neural networks to OpenCL", manuals)
                               : command_line::completion(shell, "oclc", manuals);
  if (text.empty()) usage_error(fmt::format("wanted --completion bash|zsh|fish, found '{}'", shell));
  print_result(text);
  return 0;
}

int dispatch(int argc, char** argv, std::string& file) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--man") return print_manual("");
  if (first == "--completion") return print_manual(argc > 2 ? argv[2] : "none");
  for (const Command& command : kCommands) {
    if (first == command.name) return command.run(argc - 1, argv + 1, file);
  }
  const bool word = !first.empty() && first.find_first_of("./") == first.npos && first.front() != '-';
  std::error_code ignored;
  if (word && !std::filesystem::exists(first, ignored)) {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.emplace_back(command.name);
    const std::string meant = did_you_mean(first, names);
    usage_error(fmt::format("wanted a model file or a command ({}), found '{}'{}", fmt::join(names, ", "), first,
                            meant.empty() ? "" : "; " + meant));
  }
  return compile_command(argc, argv, file);
}

}  // namespace
}  // namespace oclc::tool

int main(int argc, char** argv) {
  using namespace oclc::tool;
  install_signal_handlers();
  std::string file;
  const int code = guarded(file, [&] { return dispatch(argc, argv, file); });
  const int flushed = guarded(file, [] {
    flush_results();
    return 0;
  });
  return code != 0 ? code : flushed;
}
