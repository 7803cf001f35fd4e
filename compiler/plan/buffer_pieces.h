// Arena buffers that several launches write one after another, as the gradients of all parameters, are alive in pieces.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Bytes [begin, end) of a buffer used at schedule index `at`.
struct BufferUse {
  std::int64_t begin = 0, end = 0;
  int at = 0;
};

// The bytes from `offset` up to the next piece's are first used at `first`.
struct BufferPiece {
  std::int64_t offset = 0;
  int first = 0;
};

// What `kernel` uses of its operand: the bounds of each store's addresses; all of the `bytes` if it reads it or the bounds are
// not known.
std::vector<BufferUse> uses_of(const Kernel& kernel, std::size_t operand, std::int64_t bytes, int at);

// Pieces of a buffer of `bytes` with these uses, at most kMostPieces with offsets in multiples of the arena's alignment; none
// if it is small or begins to live all at once.
std::vector<BufferPiece> pieces_of(std::int64_t bytes, std::span<const BufferUse> uses);

}  // namespace oclc
