// The kernels of a plan, each text once, spread over programs.
#pragma once
#include <array>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/launches/launches.h"
#include "compiler/plan/build_plan.h"
#include "plan_generated.h"

namespace oclc {

struct PlacedKernel {
  int program = 0;
  std::string name;
};

class PlacedKernels {
 public:
  // Kernels with the same text are one; the first one's name and head stand for all.
  PlacedKernel place(const GeneratedKernel& kernel);

  std::vector<flatbuffers::Offset<plan::Program>> tables(flatbuffers::FlatBufferBuilder& builder,
                                                         const std::string& build_options) const;
  // One a distinct kernel, each complete.
  std::vector<GeneratedFile>& files() { return files_; }

 private:
  struct ProgramText {
    std::string text;
    plan::Instructions instructions = plan::Instructions::opencl_c;
    std::string name{};                       // of its only kernel, if that has parts, or ""
    std::vector<std::uint32_t> part_bytes{};  // of that kernel
    bool own_kernels = false;                 // of its parts
  };
  // At most so many programs of each kind, of about equal text: the runtime builds them in parallel where the driver or other
  // processes can, and merges them where a build costs far more than a kernel more in it. A kernel of several parts has a
  // program of its own, since the runtime may build its parts apart.
  static constexpr std::size_t kPrograms = 16;
  std::size_t next_program(plan::Instructions instructions);

  std::vector<ProgramText> programs_;
  static constexpr std::size_t kKinds = static_cast<std::size_t>(plan::Instructions::MAX) + 1;
  std::array<std::vector<std::size_t>, kKinds> of_kind_;  // programs by what they use beyond OpenCL C
  std::unordered_map<std::string, PlacedKernel> known_;   // by text
  std::set<std::string> names_;
  std::vector<GeneratedFile> files_;
};

// The distinct kernels of the launches.
std::vector<GeneratedFile> files_of(std::vector<GeneratedLaunch>& launches);

}  // namespace oclc
