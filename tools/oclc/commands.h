// The commands of oclc. Each takes its own arguments (argv[0] is its name) and gives the exit code; failures are exceptions,
// see failure.h. `file` receives the file that the command works on, for messages.
#pragma once
#include <string>
#include <string_view>

namespace oclc::tool {

int compile_command(int argc, char** argv, std::string& file);
int bench_command(int argc, char** argv, std::string& file);
int cache_command(int argc, char** argv, std::string& file);
int conformance_command(int argc, char** argv, std::string& file);
int check_gradients_command(int argc, char** argv, std::string& file);
int check_op_command(int argc, char** argv, std::string& file);
int new_op_command(int argc, char** argv, std::string& file);
int devices_command(int argc, char** argv, std::string& file);
int info_command(int argc, char** argv, std::string& file);
int refit_command(int argc, char** argv, std::string& file);
int tune_command(int argc, char** argv, std::string& file);
int export_command(int argc, char** argv, std::string& file);

// The help of each, which is also the table that the man page and completion are made from (tools/command_line/manual.h).
extern const std::string_view kCompileHelp, kBenchHelp, kCheckGradientsHelp, kCheckOpHelp, kNewOpHelp, kConformanceHelp,
    kDevicesHelp, kExportHelp, kInfoHelp, kRefitHelp, kTuneHelp, kCacheHelp;

}  // namespace oclc::tool
