// From a kernel to OpenCL C: the stage `codegen`. The text is a tile function and a thin kernel whose group id is the tile.
#pragma once
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// One argument of the generated function, in order.
struct KernelArgument {
  enum class Kind { operand, dimension, table };
  Kind kind = Kind::operand;
  // operand: index into Kernel::operands, -1 for words of Contraction::asked_bytes; pointer and long offset. table: into
  // GeneratedKernel::tables; a pointer to longs.
  int operand = -1;
  std::string symbol{};  // dimension: model symbol, passed as long
};

// What a launch of several kernels of one text is told of each, see launches/ragged_kernel.h: numbers, of which `cells` depend
// on symbols and on where buffers lie.
struct MemberTable {
  struct Cell {
    std::size_t at = 0;  // in `numbers`
    Expr value = 0;
    int buffer = -1;  // not negative: the distance of this buffer from `base`, in elements, is added
    int base = -1;
    bool written = false;  // the buffer
    int plus = -1;         // not negative: the number there, which is known before, is added
  };
  std::vector<std::int64_t> numbers;
  std::vector<Cell> cells;
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
  std::vector<MemberTable> tables;
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
  bool own_kernels = false;  // these are bytes of the parts' own kernels, see MegakernelCode::Part::own_kernel
};

// A contraction has its choice, see contraction/choose.h. Throws CompileError for element types that have no kernel code.
GeneratedKernel generate(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);

// Functions of the prelude that `source` calls, directly or through one another, ready to be put before it.
std::string prelude_for(const std::string& source);

}  // namespace oclc
