// One case of ONNX's backend tests: a folder with model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "frontends/op/custom_op.h"
#include "oclc/oclc.hpp"

namespace oclc::tool {

struct CaseResult {
  bool passed = false;
  std::string message;              // what is wrong, or empty
  std::vector<std::string> ops;     // operators of the model, sorted
  std::vector<std::string> report;  // with CompileOptions::report: a row a node of the model, where it runs
  std::vector<std::string> given;   // inputs whose values the compiler asked for: they decide shapes
  int kernels = 0, launches = 0;
  double seconds = 0;
};

// Largest difference that passes: |y - reference| <= atol + rtol * |reference|. The suite's own unless the case's data.json
// says otherwise.
struct CaseTolerance {
  double rtol = 1e-3, atol = 1e-7;
};

// The folders of cases below `root`, sorted.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& root);
// The last two parts of the path: "node/test_abs".
std::string case_name(const std::filesystem::path& folder);

// Compiles the model, runs it on the device and compares, for each data set. Whatever goes wrong is in the message.
// `ops`: null, or operators of one's own.
CaseResult run_case(const std::filesystem::path& folder, const CompileOptions& options, const rt::Context& context,
                    const std::shared_ptr<const CustomOps>& ops = nullptr);

}  // namespace oclc::tool
