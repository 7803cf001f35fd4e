// One kernel that runs several, one after another: its groups claim the tiles of one part after another.
#pragma once
#include <span>

#include "compiler/codegen/codegen.h"

namespace oclc {

struct MegakernelCode {
  // Arguments name operands by their position in `buffers`, then those of `kernel.packed`. Behind them stand the two ints that
  // choose the parts.
  GeneratedKernel kernel;
  struct Argument {
    // Of the schedule; or, from its number of buffers on, of kernel.packed; or the counters, see schedule/megakernel.h.
    static constexpr int kProgress = -1;
    static constexpr int kJoined = -2;  // the buffer in which `joined` lie one after another
    int buffer = kProgress;
    bool written = false;
  };
  std::vector<Argument> buffers;
  // Constants, numbered as Argument::buffer, each from a multiple of kJoinedAlignment bytes on.
  static constexpr std::int64_t kJoinedAlignment = 128;
  std::vector<int> joined;
  std::int64_t joined_bytes = 0;
  // A kernel, or the kernels of a loop.
  struct Part {
    std::string name;
    std::string anchor;
    std::vector<const Kernel*> kernels;
    std::vector<Argument> buffers;
    Expr flops = 0, bytes = 0;  // of all trips; what depends on the counter counts as in the first
    std::size_t instances = 0;  // kernels of a ragged group
    std::string own_kernel{};   // behind the kernel's name: one that does this part alone, as a launch; empty: none
  };
  std::vector<Part> parts;
  std::size_t kernels = 0;  // of all parts
};

// Claiming cannot deadlock, however many groups the device runs at once: a group waits only for tiles that running groups hold.
MegakernelCode generate_megakernel(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                   const Target& target);

}  // namespace oclc
