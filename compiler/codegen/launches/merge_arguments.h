// Buffers that lie in one memory object, which a kernel's arguments name once: NVIDIA's driver takes 0.3 to 0.4 us of a launch
// for each memory object among the arguments, and a tenth of that for a number.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Where the memory object of an argument comes from: an object of the buffer's own, or that of all scratch buffers of an entry
// point, or of all constants.
enum class MemoryObject { own, arena, constants };

// Makes the kernel's arguments that lie in one object offsets into that of the first of them; `objects` by argument, dimensions
// any. True for those that are passed without a memory object.
std::vector<bool> share_memory(GeneratedKernel& g, const std::vector<MemoryObject>& objects);

}  // namespace oclc
