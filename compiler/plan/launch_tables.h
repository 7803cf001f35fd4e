// The launches of a plan: their kernels' code, their arguments, and when they use which buffer.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/launches/equal_constants.h"
#include "compiler/codegen/launches/launches.h"
#include "compiler/kernels/kernel.h"
#include "compiler/plan/buffer_lives.h"
#include "compiler/plan/placed_kernels.h"
#include "compiler/plan/plan_symbols.h"
#include "plan_generated.h"

namespace oclc {

// Texts of the model as the plan holds them, without NUL.
std::vector<flatbuffers::Offset<flatbuffers::String>> plan_texts(flatbuffers::FlatBufferBuilder& builder,
                                                                 const std::vector<std::string>& list);
std::string plan_text(std::string text);

// Makes one table a launch, in the order of the schedule; what kernels pack becomes a buffer more of the plan.
class LaunchTables {
 public:
  struct Plan {
    std::vector<Buffer>& buffers;
    BufferLives& lives;
    PlanSymbols& symbols;
    PlacedKernels& kernels;
    flatbuffers::FlatBufferBuilder& builder;
  };

  // `launches`: the code of all launches, in the order in which the calls below take one each.
  LaunchTables(const Schedule& schedule, std::vector<GeneratedLaunch> launches, const Plan& plan)
      : schedule_(schedule), generated_(std::move(launches)), plan_(plan), packed_(generated_.size()) {}

  // The next launch, of a step of one kernel, of several that are `anchor`, of steps beside each other, or of a megakernel
  // step.
  flatbuffers::Offset<plan::Launch> single(const KernelStep& step);
  flatbuffers::Offset<plan::Launch> several(std::string_view anchor);
  flatbuffers::Offset<plan::Launch> horizontal_fusion(std::span<const Step> steps);
  flatbuffers::Offset<plan::Launch> megakernel();
  flatbuffers::Offset<plan::Launch> ragged(const RaggedStep& group);
  flatbuffers::Offset<plan::BlasGemm> blas(const Gemm& gemm);

  // Constants that lie one after another, by the buffer that they make.
  const std::unordered_map<int, std::vector<int>>& joined() const { return joined_; }
  // Buffers whose storage has to be a part of a pool.
  const std::set<int>& pooled() const { return pooled_; }
  int launches() const { return launches_; }
  // Of the kernels, those that only move data.
  int copies() const { return copies_; }

 private:
  using Args = std::vector<flatbuffers::Offset<plan::Arg>>;
  struct Work {
    std::vector<std::string> sources;
    Expr flops{0}, bytes{0};
    std::string title{};        // none: the kernel's name
    std::size_t instances = 0;  // of one text
  };

  flatbuffers::Offset<plan::Launch> table(const PlacedKernel& code, const GeneratedKernel& g, const Args& args,
                                          std::string_view anchor, const Work& work,
                                          const std::vector<flatbuffers::Offset<plan::Part>>& parts = {});
  // A buffer that a launch uses; -1 stands for a dimension, or a table.
  struct Passed {
    int buffer = -1;
    bool written = false;
    std::int64_t offset = 0;  // elements
  };

  Args arguments(const GeneratedLaunch& launch, const std::vector<Passed>& passed);
  flatbuffers::Offset<plan::Arg> buffer(int buffer, bool written, const Expr& offset = Expr(0), bool shared = false);
  flatbuffers::Offset<plan::Arg> dimension(const KernelArgument& argument);
  // Uses of one buffer, or of it as a memory object, by kernels of a ragged group.
  void touch_members(std::span<const Kernel* const> members, int buffer, int at);
  void pool(std::span<const Kernel* const> members);
  flatbuffers::Offset<plan::Arg> rows(const MemberTable& table);
  // The plan's numbers of the buffers that a launch packs. Equal constants are one.
  const std::vector<int>& packed_of(int launch);

  const Schedule& schedule_;
  std::vector<GeneratedLaunch> generated_;
  Plan plan_;
  std::vector<std::optional<std::vector<int>>> packed_;  // by launch; none: its buffers have no numbers yet
  EqualConstants constants_;
  std::unordered_map<int, std::vector<int>> joined_;
  std::set<int> pooled_;
  int next_ = 0;       // launch
  int progress_ = -1;  // buffer in which megakernels count
  int launches_ = 0, copies_ = 0;
};

}  // namespace oclc
