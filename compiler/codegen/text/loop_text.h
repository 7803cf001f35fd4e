// Text of loops over axes: one by one, in vectors, or by the coordinates of a flat position.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// Opens a loop over each of the axes, outermost first, and returns how many scopes that were: an extent of 1 is no loop.
int open_loops(Emitter& e, const std::vector<const Axis*>& axes);
void close_scopes(Emitter& e, int count);

// Opens a loop, unrolled, of the variable `name` from 0 to `end` in steps of `step`; of one round it is a constant. `axes`:
// what the loop makes available.
void open_unrolled(Emitter& e, const std::string& name, std::int64_t end, std::int64_t step = 1,
                   const std::set<std::string>& axes = {});

// Declares the coordinates of position `flat` along `axes`, the last one fastest, and returns their names.
std::set<std::string> declare_coordinates(Emitter& e, const std::string& flat, const std::vector<const Axis*>& axes);

// Widest vector, of `most` lanes or less, that the extent fills at least once; 1 if there is none.
int vector_width_for(const Expr& extent, int most);

// The points that loops run over: C texts of the first and of one past the last.
struct LoopRange {
  const Axis& axis;
  std::string begin, end;
  bool whole = false;  // all points of the axis, from 0 on
};
// Calls `body` with the width within each of the loops.
using LoopBody = std::function<void(int width)>;
// Vectors of `width` lanes, then what they leave one by one.
void vector_loops(Emitter& e, const LoopRange& range, int width, const LoopBody& body);
// The same over all points from `begin` on of an axis of literal extent: what vectors of one width leave is done by vectors of
// half the width.
void literal_vector_loops(Emitter& e, const Axis& axis, int width, const LoopBody& body, std::int64_t begin = 0);

}  // namespace oclc
