// One kernel that runs a loop-kernel step: the tile functions of its kernels one after another, inside its loops.
#pragma once
#include <set>

#include "compiler/codegen/codegen.h"

namespace oclc {

struct SeveralKernels {
  GeneratedKernel kernel;  // arguments name operands by their position in `buffers`
  struct Argument {
    int buffer = -1;  // of the schedule
    bool written = false;
  };
  std::vector<Argument> buffers;
  std::vector<std::string> sources;  // names of the model's nodes
  Expr flops = 0, bytes = 0;

  // Where an operand's buffer is among `buffers`, to which it is added if need be.
  std::size_t argument(const Operand& operand);
  // The kernel's arguments: all buffers, then symbols.
  void add_arguments(const std::set<std::string>& symbols);
  // C text of a buffer's parameter, named b and its position.
  std::string pointer(std::size_t position, const Schedule& schedule) const;
};

// On a CPU one work-item runs everything. Elsewhere the work-items of one work-group share each kernel, wait for one another
// after it, and buffers that nothing else uses lie in local memory while it lasts, smallest first.
SeveralKernels generate_loop_kernel(const std::string& name, const Step& step, const Schedule& schedule, const Target& target);

}  // namespace oclc
