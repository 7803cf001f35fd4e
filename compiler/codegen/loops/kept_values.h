// Values of a row that several of its loops need and that are dear to compute: the first loop keeps them.
#pragma once
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Loops are numbered in their order: the kernel's stages, then its stores.
struct KeptValue {
  NodeId node = -1;
  int first = 0;            // the loop that computes it
  std::vector<int> others;  // those that read what was kept
  std::string name;         // of the array
};

// For a kernel whose loops all run along its only reduction axis. None where a row is too long to be kept.
std::vector<KeptValue> values_to_keep(const Kernel& kernel);

// Floats that a row has at most, or 0: they are not kept.
std::int64_t kept_floats(const Kernel& kernel);

}  // namespace oclc
