// The launches of a plan: their kernels' code, their arguments, and when they use which buffer.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/launches/one_memory.h"
#include "compiler/codegen/launches/persistent_kernel.h"
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
    bool one_memory;  // as in PlanOptions
  };

  LaunchTables(const Schedule& schedule, const Target& target, const Plan& plan)
      : schedule_(schedule), target_(target), plan_(plan) {}

  // A kernel that multiplies a row by many weights, and how many launches come before its own; null: none.
  struct Later {
    const Kernel* kernel = nullptr;
    std::int64_t launches_before = 0;
  };
  // So many launches ask for a piece of such weights each, in their order: what lies in the second-level cache when it is read,
  // beside what these launches read and write themselves. Measured on an H100, whose cache has 50 MB: 2 to 8 MiB gain, 6 most.
  static constexpr std::int64_t kAskingLaunches = 3, kAskedBytes = 6 << 20;
  // The launch asks for its piece of the weights of `later`, if its code does such things.
  flatbuffers::Offset<plan::Launch> single(const Kernel& kernel, const Later& later);
  flatbuffers::Offset<plan::Launch> persistent(const Step& step);
  flatbuffers::Offset<plan::Launch> chain(const Step& step);
  flatbuffers::Offset<plan::Launch> attention(const Step& step);
  flatbuffers::Offset<plan::Launch> side_by_side(std::span<const Step> steps);
  flatbuffers::Offset<plan::Launch> resident(std::span<const Step> stretch);
  flatbuffers::Offset<plan::BlasGemm> blas(const Gemm& gemm);

  // Constants that lie one after another, by the buffer that they make.
  const std::unordered_map<int, std::vector<int>>& joined() const { return joined_; }
  int launches() const { return launches_; }
  // Of the kernels, those that only move data.
  int copies() const { return copies_; }

 private:
  using Args = std::vector<flatbuffers::Offset<plan::Arg>>;
  struct Work {
    std::vector<std::string> sources;
    Expr flops{0}, bytes{0};
  };

  flatbuffers::Offset<plan::Launch> table(const PlacedKernel& code, const GeneratedKernel& g, const Args& args,
                                          std::string_view anchor, const Work& work,
                                          const std::vector<flatbuffers::Offset<plan::Part>>& parts = {});
  // One kernel for several of the schedule, each buffer an argument.
  flatbuffers::Offset<plan::Launch> several(PersistentKernel all, std::string_view anchor);
  // A buffer that a launch uses; -1 stands for a dimension.
  struct Passed {
    int buffer = -1;
    bool written = false;
    std::int64_t offset = 0;  // elements
  };

  // Of all buffers, those that lie in one memory object whatever the sizes: what depends on open dimensions is laid out late.
  MemoryObject memory_object(int index) const;
  // The launch's arguments; the kernel's text becomes one with those parameters.
  Args arguments(GeneratedKernel& g, const std::vector<Passed>& passed);
  flatbuffers::Offset<plan::Arg> buffer(int buffer, bool written, const Expr& offset = Expr(0), bool shared = false);
  flatbuffers::Offset<plan::Arg> dimension(const KernelArgument& argument);
  // Returns the first one's number.
  int add_packed(GeneratedKernel& g);
  // A kernel's code, and the number of the first buffer that it packs.
  struct Made {
    const Kernel* kernel;
    GeneratedKernel code;
    int first_packed;
  };
  Made make(const Kernel& kernel, std::int64_t asked_bytes = 0);
  // What a launch is to ask for; nothing if weights have other places in memory, or are too few.
  std::optional<Passed> asked_piece(const Later& later);

  const Schedule& schedule_;
  const Target& target_;
  Plan plan_;
  std::unordered_map<int, std::vector<int>> joined_;
  std::optional<Made> later_;  // made before its launch
  int progress_ = -1;          // buffer in which resident launches count
  int launches_ = 0, copies_ = 0;
};

}  // namespace oclc
