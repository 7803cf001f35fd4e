// Attention in one launch of a GPU: the softmax of a product's rows times a second matrix, whose scores are never stored.
#pragma once
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Makes one step (Step::attention) of a product, the softmax of its rows and a product that sums over these, where nothing else
// reads the scores and the estimated time is less than that of three launches.
void attention(Schedule& schedule, const Target& target);

// Tiles of the templates attention_*gpu.cl: sub-groups of 16 rows, and keys of a block.
struct AttentionTiles {
  int warps, keys;

  // Of a group, 16 a warp as the matrix unit has them.
  int rows() const { return warps * 16; }
};

AttentionTiles attention_tiles(const Kernel& scores, const Kernel& product, const Target& target);

}  // namespace oclc
