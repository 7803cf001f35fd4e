// What kernels read and write, by the bounds of their indices: whether two may change places, or run at the same time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Elements [first, last] of a piece of memory.
struct MemoryAccess {
  int storage = -1;  // a buffer of the schedule; of a state and its new value the state
  bool written = false;
  std::int64_t first = 0, last = kUnbounded;
};

// The buffer whose memory one has: new values of states share that of the old ones.
int storage_of(const std::vector<Buffer>& buffers, int buffer);

// Elements that the bounds of an index name; all of them where a product reads or packs, which name no elements one by one.
std::vector<MemoryAccess> accesses_of(const Kernel& kernel, const std::vector<Buffer>& buffers);

// Whether one of both writes what the other reads or writes.
bool do_conflict(std::span<const MemoryAccess> a, std::span<const MemoryAccess> b);

// A lower bound of e wherever all guards hold; -kUnbounded if none is known. Multiples of guards are taken away where that
// helps.
std::int64_t lower_bound(Expr e, const std::vector<Expr>& guards);

// Whether 0 <= index < size wherever all guards hold, as far as can be shown; false otherwise.
bool lies_within(const Expr& index, const std::vector<Expr>& guards, std::int64_t size);

}  // namespace oclc
