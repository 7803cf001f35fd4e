// Software prefetch of a loop nest: what it reads for a point, a vector or a row some way ahead.
#pragma once
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// Floats that memory brings while a line is waited for.
inline constexpr std::int64_t kAheadFloats = 512;

// Windows of neighbouring points overlap: all but their ends were read before. Prefetches those of a point some way ahead,
// whose lines have arrived when it is computed.
void prefetch_next_point(Emitter& e, const Kernel& kernel);
// Prefetches what is as large as results that go past the caches, further ahead than processors do by themselves.
void prefetch_vectors(Emitter& e, const Kernel& kernel);
// The first loop over a row stalls on memory: prefetches what it reads of a row ahead.
void prefetch_next_row(Emitter& e, const Kernel& kernel);

}  // namespace oclc
