// Which floats are integers, and how large: what quantised numbers are between their operators.
#pragma once
#include <optional>

#include "compiler/ir/graph.h"

namespace oclc {

struct IntegerRange {
  double low = 0, high = 0;  // infinite where nothing bounds it

  bool is_within(double least, double most) const { return low >= least && high <= most; }
};

// Of all elements, integers or floats that are integers; nothing where that cannot be shown. NaN is not counted.
std::optional<IntegerRange> integer_range(const Value* value);
// Of an integer type of at most 16 bits.
std::optional<IntegerRange> range_of_type(DType dtype);

}  // namespace oclc
