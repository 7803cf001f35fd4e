// Options that several commands share, and what they mean to the importer and the compiler.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/carry.h"
#include "compiler/tuning/database.h"
#include "frontends/onnx/import.h"
#include "oclc/oclc.h"
#include "tools/command_line/command_line.h"
#include "tools/oclc/progress.h"

namespace oclc::tool {

struct OutputOptions {
  bool json = false;
  std::string color = "auto", progress = "auto";
  ProgressForm progress_form() const;
};

// How models are read.
struct ReadOptions {
  std::vector<std::string> dims, shapes, lengths, values, typical;  // N=4, x=1x3x224x224, x=2, sr=16000, N=8
  std::vector<std::string> ops;                                     // files of operators
  std::string external_data_dir;
  bool allow_symlinks = false, allow_newer_opset = false;
};

// How they are compiled.
struct BuildOptions {
  std::string target, device;  // at most one of them
  std::vector<std::string> disabled;
  std::string tuned;  // database
  std::string conv = "auto", gemm = "own", precision = "fp32", subnormals = "keep";
};

void add_output_options(CLI::App& app, OutputOptions& options);
void add_read_options(CLI::App& app, ReadOptions& options);
void add_build_options(CLI::App& app, BuildOptions& options);

// "N=4" as name and number; usage error if it is not that.
SymbolValues parse_dims(const std::vector<std::string>& texts, std::string_view option = "--dim");
// "OUT=IN" or "OUT=IN,state".
std::vector<Carry> parse_carries(const std::vector<std::string>& texts);
// "NAME=TEXT" as properties of the model; one that it has takes the new text.
void set_metadata(Module& module, const std::vector<std::string>& texts);
ImportOptions import_options(const ReadOptions& options);
// The operators of all files (--op); null if there is none.
std::shared_ptr<const CustomOps> operators(const std::vector<std::string>& files);
// Checks the values; chooses the target (see choose_target). `progress` outlives the compilation.
CompileOptions compile_options(const BuildOptions& options, Progress& progress);

// Parses the command line. True: help or the version was asked for and has been printed. Usage error if it does not fit.
bool parse(CLI::App& app, int argc, char** argv, std::string_view help);

// Reads a model file, "-": standard input.
std::shared_ptr<Module> read_model(const std::string& file, const ImportOptions& options);
std::vector<OpUse> read_ops(const std::string& file, const ImportOptions& options);

// The device of `selection` (see oclc_device_select).
oclc_device_info find_device(const std::string& selection);
// The target named; else that of the device selected; else that of the device found; else "cpu".
// `found`: the device, for tuned choices; of a target by name nothing but its family.
Target choose_target(const std::string& target, const std::string& device, TunedDevice* found = nullptr);

}  // namespace oclc::tool
