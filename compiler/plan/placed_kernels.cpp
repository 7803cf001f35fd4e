#include "compiler/plan/placed_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/text/kernel_text.h"

namespace oclc {

PlacedKernel PlacedKernels::place(const GeneratedKernel& kernel) {
  const auto known = known_.find(kernel.source);
  if (known != known_.end()) return known->second;
  std::string name = kernel.name;
  for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}_{}", kernel.name, n);
  const std::string head = with_name(kernel.head, kPlaceholder, name), source = with_name(kernel.source, kPlaceholder, name);
  files_.push_back({name, head + prelude_for(source) + source});
  const plan::Instructions instructions = kernel.sm90a ? plan::Instructions::sm90a
                                          : kernel.amx ? plan::Instructions::amx
                                                       : plan::Instructions::opencl_c;
  std::size_t program = programs_.size();
  if (kernel.part_bytes.empty())
    program = next_program(instructions);
  else
    programs_.push_back({.text = {},
                         .instructions = instructions,
                         .name = name,
                         .part_bytes = kernel.part_bytes,
                         .own_kernels = kernel.own_kernels});
  programs_[program].text += head + source + "\n";
  return known_.emplace(kernel.source, PlacedKernel{static_cast<int>(program), name}).first->second;
}

std::vector<GeneratedFile> files_of(std::vector<GeneratedLaunch>& launches) {
  PlacedKernels kernels;
  for (GeneratedLaunch& launch : launches) kernels.place(launch.kernel());
  return std::move(kernels.files());
}

std::size_t PlacedKernels::next_program(plan::Instructions instructions) {
  const auto kind = static_cast<std::size_t>(instructions);
  std::vector<std::size_t>& of_kind = of_kind_.at(kind);
  if (of_kind.size() < kPrograms) {
    of_kind.push_back(programs_.size());
    programs_.push_back({.text = {}, .instructions = instructions});
    return of_kind.back();
  }
  return *std::min_element(of_kind.begin(), of_kind.end(), [this](std::size_t a, std::size_t b) {
    return programs_[a].text.size() < programs_[b].text.size();
  });
}

std::vector<flatbuffers::Offset<plan::Program>> PlacedKernels::tables(flatbuffers::FlatBufferBuilder& builder,
                                                                      const std::string& build_options) const {
  std::vector<flatbuffers::Offset<plan::Program>> out;
  for (const ProgramText& program : programs_) {
    const std::string text = prelude_for(program.text) + program.text;
    const std::string name = program.name.empty() ? fmt::format("program{}", out.size()) : program.name;
    out.push_back(plan::CreateProgramDirect(builder, name.c_str(), text.c_str(), build_options.c_str(), true,
                                            program.instructions, &program.part_bytes, program.own_kernels));
  }
  return out;
}

}  // namespace oclc
