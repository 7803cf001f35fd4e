// From a schedule of kernels to a plan: generated code, packed constants, live ranges. The stage `plan`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/kernels/kernel.h"
#include "compiler/training/input_limit.h"
#include "runtime/package/writer.h"

namespace oclc {

struct PlanOptions {
  std::string precision = "fp32";
  bool resident = true;            // stretches of kernels are one launch, where the target can
  bool one_memory = true;          // buffers in one memory object are one argument and offsets, where that pays
  std::vector<std::string> notes;  // what the user asked for, for `oclc info`
  std::vector<InputLimit> limits;  // written down with the inputs so called, of all entries
  std::vector<Assumption> assumptions;
};

struct GeneratedFile {
  std::string name;
  std::string source;
};

struct BuiltPlan {
  std::vector<std::uint8_t> metadata;  // a FlatBuffer of oclc::plan::Plan
  package::ConstantSection constants;  // refers to `owned`
  std::vector<std::shared_ptr<const HostTensor>> owned;
  std::vector<GeneratedFile> files;  // one a distinct kernel
  int launches = 0, copies = 0;
};

BuiltPlan build_plan(const Schedule& schedule, const Target& target, const PlanOptions& options);

}  // namespace oclc
