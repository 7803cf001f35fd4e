// How much of a contraction is copied at a time: template contraction_chunks_cpu.cl.
#pragma once
#include <optional>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// Longest chain of fused multiply-adds within a chunk. Where registers are many, chunks of 64 terms are the shorter wait for
// copies.
std::int64_t longest_chain_of_chunk(const Target& target);

// Cycles of a vector of an operand that is computed and copied.
double copy_cycles(const ContractionOperand& operand);

struct TimedChunks {
  ChunkTiles tiles;
  double cycles = 0;  // of a core
};

// Beside a right operand of run time; nothing where `fma`, what else computes it (nothing: nothing does), is as fast.
// `if_few`: also of few rows, columns or terms, which do not pay for the copies.
std::optional<TimedChunks> choose_chunks(const Problem& problem, const std::optional<FmaTiles>& fma, const Target& target,
                                         bool if_few = false);
// Beside a left operand that is a constant; nothing for few rows, columns or terms, and where B's columns are no vectors.
std::optional<TimedChunks> choose_chunks_beside_panels(const Problem& problem, const Target& target, bool if_few = false);

}  // namespace oclc
