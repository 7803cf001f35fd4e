// What a window over an image asks for while it computes another point.
#pragma once
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// What memory brings while a line is waited for.
inline constexpr std::int64_t kAheadFloats = 512;

struct AskedAhead {
  int operand = -1;
  Expr place;
};

// Windows of neighbouring points overlap: all but their ends were read before. Those of a point some way ahead, at whose lines
// memory has arrived when it is computed, for vectors along `vector_axis`.
std::vector<AskedAhead> asked_ahead(const Kernel& kernel, const std::string& vector_axis);

}  // namespace oclc
