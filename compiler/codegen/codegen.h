// From a kernel to OpenCL C: the stage `codegen`. The text is a tile function and a thin kernel whose group id is the tile.
#pragma once
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// One argument of the generated function, in order.
struct KernelArgument {
  enum class Kind { operand, dimension };
  Kind kind = Kind::operand;
  int operand = -1;  // operand: index into Kernel::operands, -1 for words of Contraction::asked_bytes; pointer and long offset
  std::string symbol{};  // dimension: model symbol, passed as long
};

// A launch of a generated kernel: everything the plan needs to know.
struct GeneratedKernel {
  std::string name;
  std::string head;    // comment: formula, nodes, shapes, cost, launch
  std::string source;  // OpenCL C: tile function and kernel; the prelude's functions are not part of it
  std::vector<KernelArgument> arguments;
  std::vector<Expr> groups;          // work-groups, one to three dimensions
  std::vector<std::uint32_t> local;  // work-items of a group
  // Buffers of the kernel's own making, packed weights, what its groups tell one another: they follow the operands in
  // `arguments` as further operands.
  std::vector<Buffer> packed;
  bool sm90a = false;    // the source has a branch `#ifdef OCLC_SM90A`, see package/plan.fbs
  bool amx = false;      // the source has a branch `#ifdef OCLC_AMX`, likewise
  std::string schedule;  // e.g. "12x32 tiles", for the report
  // The tile function alone, `<name>_tile`, for kernels that call several: its parameters are `arguments`, pointers without
  // offsets, then the tile's number, then a pointer to local memory for `local_floats` floats if that is not empty. Empty: the
  // kernel has its launches to itself.
  std::string tile_source;
  std::string local_floats;
  std::string local_type = "float";  // what that pointer points to
  // Of a megakernel of several parts: bytes of text that each part adds to those before it. The source holds the parts
  // from NAME_FIRST up to NAME_LAST alone where these macros are defined, see package/plan.fbs.
  std::vector<std::uint32_t> part_bytes;
};

// A contraction has its choice, see contraction/choose.h. Throws CompileError for element types that have no kernel code.
GeneratedKernel generate(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);

// Functions of the prelude that `source` calls, directly or through one another, ready to be put before it.
std::string prelude_for(const std::string& source);

}  // namespace oclc
