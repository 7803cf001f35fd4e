// From a schedule and the code of its launches to a plan: arguments, packed constants, live ranges. The stage `plan`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/launches/launches.h"
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"
#include "compiler/training/input_limit.h"
#include "runtime/package/writer.h"

namespace oclc {

struct PlanOptions {
  std::string precision = "fp32";
  std::string target;              // its name
  std::vector<std::string> notes;  // what the user asked for, for `oclc info`
  std::vector<InputLimit> limits;  // written down with the inputs so called, of all entries
  std::vector<Assumption> assumptions;
  std::string build_options;  // of every program, beside the runtime's own
  DeviceClass device_class = DeviceClass::cpu;
  std::vector<Property> metadata{};
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

// `launches` as generate_launches() makes them of the schedule.
BuiltPlan build_plan(const Schedule& schedule, std::vector<GeneratedLaunch> launches, const PlanOptions& options);

}  // namespace oclc
