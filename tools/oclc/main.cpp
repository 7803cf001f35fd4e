// oclc: compiles an ONNX model to a plan. The contract of its options and exit codes is docs/cli.md.
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"

namespace oclc::tool {
namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv, std::string& file);
};

constexpr Command kCommands[] = {{"bench", bench_command},
                                 {"cache", cache_command},
                                 {"check-gradients", check_gradients_command},
                                 {"conformance", conformance_command},
                                 {"devices", devices_command},
                                 {"export-onnx", export_command},
                                 {"info", info_command},
                                 {"tune", tune_command}};

int dispatch(int argc, char** argv, std::string& file) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  for (const Command& command : kCommands) {
    if (first == command.name) return command.run(argc - 1, argv + 1, file);
  }
  const bool word = !first.empty() && first.find_first_of("./") == first.npos && first.front() != '-';
  std::error_code ignored;
  if (word && !std::filesystem::exists(first, ignored))
    usage_error(
        fmt::format("wanted a model file or a command (bench, cache, check-gradients, conformance, devices, export-onnx, info, "
                    "tune), found '{}'",
                    first));
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
