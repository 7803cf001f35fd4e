#include "compiler/codegen/loops/strips.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/loops/element_loops.h"
#include "compiler/ir/division.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

void emit_vectors(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& inner, const StripVectors& vectors) {
  e.set_vector_axis(inner.name, vector.width);
  emit_strip(e, kernel, vector, inner, vectors);
  e.set_vector_axis({}, 1);
}

// From the variable `strip` on.
void emit_strip_of(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& inner, int vectors) {
  emit_vectors(e, kernel, vector, inner, {vectors, fmt::format("strip + u * {}", vector.width)});
}

}  // namespace

Strips choose_strips(const Kernel& kernel, const VectorAxis& vector, const Axis& inner, const LoopTiles& tiles,
                     const Target& target) {
  const int vectors = strip_vectors(kernel, inner.extent, target), step = vectors * vector.width;
  if (tiles.chunk == 0 && inner.extent.is_constant()) {
    const std::int64_t columns = inner.extent.value(), all = ceil_div(columns, std::int64_t{vector.width});
    if (columns > vector.width && columns % step != 0 && !loads_what_it_stores(kernel))
      return {static_cast<int>(ceil_div(all, ceil_div(all, std::int64_t{vectors}))), true};
  }
  const bool room = (tiles.chunk == 0 || tiles.chunk >= step) && !known_less(inner.extent, Expr(step));
  return {room ? vectors : 0, false};
}

void emit_strips(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& inner, const Strips& strips,
                 const std::string& begin, const std::string& end) {
  const int step = strips.vectors * vector.width;
  if (!strips.overlap) {
    e.line(fmt::format("{} strip = {};", e.index_type(), begin));
    e.open(fmt::format("for (; strip + {0} <= {1}; strip += {0})", step, end), {});
    emit_strip_of(e, kernel, vector, inner, strips.vectors);
    e.close();
    return;
  }
  const std::int64_t columns = inner.extent.value();
  if (columns <= step) {
    const std::string begin_of = fmt::format("min(u * {0}, ({1})({2}))", vector.width, e.index_type(), columns - vector.width);
    return emit_vectors(e, kernel, vector, inner, {strips.vectors, begin_of});
  }
  e.open(fmt::format("for ({0} from = 0; from < {1}; from += {2})", e.index_type(), columns, step), {});
  e.line(fmt::format("const {0} strip = min(from, ({0})({1}));", e.index_type(), columns - step));
  emit_strip_of(e, kernel, vector, inner, strips.vectors);
  e.close();
}

}  // namespace oclc
