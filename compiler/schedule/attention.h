// Attention in one kernel: the softmax of a product's rows times a second matrix, whose scores are never stored.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes one step (AttentionStep) of a product, the softmax of its rows and a product that sums over these, where nothing else
// reads the scores and the estimated time is less than that of three launches. On a CPU's tile units vectors copy the operands
// of both products.
void attention(Schedule& schedule, const ScheduleContext& context);

// Tiles of the templates attention_*gpu.cl: sub-groups of 16 rows, and keys of a block.
struct AttentionTiles {
  int warps, keys;

  // Of a group, 16 a warp as the matrix unit has them.
  int rows() const { return warps * 16; }
};

AttentionTiles attention_tiles(const Kernel& scores, const Kernel& product, const Target& target);

// Of the template attention_amx.cl: blocks of 32 rows of a work-item; 0 where a group's keys and values do not fit.
std::int64_t attention_row_blocks(const Kernel& scores, const Kernel& product, const Target& target);

}  // namespace oclc
