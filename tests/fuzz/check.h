// Imports a model, evaluates it by the reference, compiles it, runs it and compares.
#pragma once
#include <oclc_onnx.pb.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "tests/fuzz/draft.h"

namespace oclc::fuzz {

struct Result {
  std::string name;
  bool exact = false;
  double tolerance = 1, scale = 0;  // as in Draft
  HostTensor wanted;
  double precision = 0;  // of the least precise float that it is computed from; 0: its own type's
};

// The relative distance of neighbouring numbers of a type of floats.
double precision_of(DType dtype);

// A model, the values of its inputs by name and what it should give.
struct Case {
  oclc_onnx::ModelProto model;
  std::vector<std::pair<std::string, HostTensor>> inputs;
  std::vector<Result> results;
};

// An import with options from the case's model. Throws CompileError.
std::unique_ptr<Module> import_case(const Case& c);

// The results of the reference, in the order of the module's outputs.
std::vector<HostTensor> reference(const Module& module, const Case& c);

// The first difference of `found` from `wanted`, or empty.
std::string difference(const HostTensor& found, const Result& wanted);

// Compiles and runs the case; the first difference or failure, or empty.
std::string check(const Case& c, const CompileOptions& options);

// Writes model.onnx and a test_data_set_0 as `oclc conformance` reads them, and the failure's text.
void write_case(const Case& c, const std::filesystem::path& folder, const std::string& text);

}  // namespace oclc::fuzz
