// Views, and what moves elements without computing. Shapes are those that torch found.
#include <algorithm>

#include "compiler/ops/shape_rules.h"
#include "frontends/pt2/axes.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// Primitive operators call it so.
Value* operand(AtenContext& c) { return c.tensor(c.has("a") ? "a" : "self"); }

Outputs same(AtenContext& c) { return {operand(c)}; }

Outputs reshape(AtenContext& c) { return {c.b.reshape(operand(c), c.result().shape)}; }

// The operand's axis i becomes axis broadcast_dimensions[i].
Outputs broadcast_into(AtenContext& c) {
  Value* x = operand(c);
  Shape apart(c.result().rank(), Expr(1));
  const Ints places = c.integers("broadcast_dimensions");
  for (std::size_t i = 0; i < places.size(); ++i) apart.at(static_cast<std::size_t>(places[i])) = x->type.shape.at(i);
  return {c.b.expand(c.b.reshape(x, apart), c.result().shape)};
}

Outputs expand(AtenContext& c) { return {c.b.expand(c.tensor("self"), c.result().shape)}; }

Outputs permute(AtenContext& c) {
  Value* x = operand(c);
  Ints perm = c.integers(c.has("permutation") ? "permutation" : "dims");
  for (std::int64_t& a : perm) a = c.axis(a, x->type.rank());
  return {reordered(c, x, perm)};
}

Outputs transpose(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::size_t rank = x->type.rank();
  Ints perm = all_axes(rank);
  if (rank < 2) return {x};
  const bool matrix = c.core() == "t";
  const auto axis = [&](const char* name, const char* of_swapaxes) {
    return c.axis(c.integer(c.has(name) ? name : of_swapaxes), rank);
  };
  const std::int64_t first = matrix ? 0 : axis("dim0", "axis0"), second = matrix ? 1 : axis("dim1", "axis1");
  std::swap(perm[static_cast<std::size_t>(first)], perm[static_cast<std::size_t>(second)]);
  return {reordered(c, x, perm)};
}

Value* taken(AtenContext& c, Value* x, std::int64_t axis, Expr index) {
  const Expr& size = x->type.shape[static_cast<std::size_t>(axis)];
  if (known_less(index, Expr(0))) index = index + size;
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + axis);
  return c.b.reshape(c.b.slice_axis(x, axis, index, Expr(1)), std::move(shape));
}

Outputs select(AtenContext& c) {
  Value* x = c.tensor("self");
  return {taken(c, x, c.axis(c.integer("dim"), x->type.rank()), c.size("index"))};
}

struct Cut {
  std::int64_t axis, step;
  SliceRange range;
};

Cut cut_of(AtenContext& c, const Value* x) {
  const std::int64_t axis = c.axis(c.integer("dim", 0), x->type.rank()), step = c.integer("step", 1);
  const Expr& size = x->type.shape[static_cast<std::size_t>(axis)];
  return {axis, step, slice_range(size, c.size("start", Expr(0)), c.size("end", Expr(kSliceEnd)), step)};
}

Outputs slice(AtenContext& c) {
  Value* x = c.tensor("self");
  const Cut cut = cut_of(c, x);
  std::vector<Expr> starts(x->type.rank(), Expr(0));
  Shape sizes = x->type.shape;
  Ints steps(x->type.rank(), 1);
  const auto at = static_cast<std::size_t>(cut.axis);
  starts[at] = cut.range.start;
  sizes[at] = cut.range.size;
  steps[at] = cut.step;
  if (sizes == x->type.shape && cut.step == 1) return {x};
  return {c.b.slice(x, starts, sizes, steps)};
}

Outputs pieces(AtenContext& c, Value* x, std::int64_t axis, const std::vector<Expr>& sizes) {
  Outputs list;
  Expr start = 0;
  for (const Expr& size : sizes) {
    list.push_back(c.b.slice_axis(x, axis, start, size));
    start += size;
  }
  return list;
}

Outputs split_sizes(AtenContext& c) {
  Value* x = c.tensor("self");
  return pieces(c, x, c.axis(c.integer("dim", 0), x->type.rank()), c.sizes("split_sizes"));
}

// Sizes as torch found them, whatever the operator's arguments say.
Outputs split(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t axis = c.axis(c.integer("dim", 0), x->type.rank());
  std::vector<Expr> sizes;
  for (std::size_t i = 0; i < c.results(); ++i) sizes.push_back(c.result(i).shape[static_cast<std::size_t>(axis)]);
  return pieces(c, x, axis, sizes);
}

Outputs unbind(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t axis = c.axis(c.integer("dim", 0), x->type.rank());
  Outputs list;
  for (std::size_t i = 0; i < c.results(); ++i) list.push_back(taken(c, x, axis, Expr(static_cast<std::int64_t>(i))));
  return list;
}

Outputs cat(AtenContext& c) {
  const DType dtype = c.result().dtype;
  std::vector<Value*> parts;
  for (Value* x : c.tensors("tensors"))
    if (!(x->type.rank() == 1 && x->type.shape[0] == Expr(0))) parts.push_back(c.b.cast(x, dtype));  // "legacy" empty ones
  if (parts.empty()) return {c.b.constant(HostTensor(dtype, {0}))};
  return {parts.size() == 1 ? parts[0] : c.b.concat(parts, c.axis(c.integer("dim", 0), parts[0]->type.rank()))};
}

Outputs stack(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const std::int64_t axis = c.axis(c.integer("dim", 0), c.result().rank());
  std::vector<Value*> parts;
  for (Value* x : c.tensors("tensors")) {
    Shape shape = x->type.shape;
    shape.insert(shape.begin() + axis, Expr(1));
    parts.push_back(c.b.reshape(c.b.cast(x, dtype), std::move(shape)));
  }
  return {parts.size() == 1 ? parts[0] : c.b.concat(parts, axis)};
}

Outputs flip(AtenContext& c) {
  Value* x = operand(c);
  Ints axes = c.integers("dims");
  for (std::int64_t& axis : axes) axis = c.axis(axis, x->type.rank());
  return {flipped(c, x, axes)};
}

Outputs roll(AtenContext& c) {
  Value* x = c.tensor("self");
  const Shape shape = x->type.shape;
  Ints dims = c.integers("dims");
  const Shape shifts = c.sizes("shifts");
  const bool flat = dims.empty();
  if (flat) {
    x = c.b.reshape(x, {x->type.elements()});
    dims = {0};
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t axis = c.axis(dims[i], x->type.rank());
    const Expr& size = x->type.shape[static_cast<std::size_t>(axis)];
    if (size == Expr(0)) continue;
    const Expr back = floor_mod(shifts.at(i), size);
    if (back == Expr(0)) continue;
    x = c.b.concat({c.b.slice_axis(x, axis, size - back, back), c.b.slice_axis(x, axis, Expr(0), size - back)}, axis);
  }
  return {flat ? c.b.reshape(x, shape) : x};
}

// [a, b] as [r, a, s, b] as [r a, s b].
Outputs repeat(AtenContext& c) {
  Value* x = c.tensor("self");
  Shape repeats = c.sizes(c.has("repeats") ? "repeats" : "dims");
  while (repeats.size() < x->type.rank()) repeats.insert(repeats.begin(), Expr(1));
  const std::size_t added = repeats.size() - x->type.rank();
  Shape apart, wide;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const Expr size = i < added ? Expr(1) : x->type.shape[i - added];
    apart.insert(apart.end(), {Expr(1), size});
    wide.insert(wide.end(), {repeats[i], size});
  }
  return {c.b.reshape(c.b.expand(c.b.reshape(x, apart), wide), c.result().shape)};
}

// linalg's: of the last two axes unless it is told.
Outputs diagonal(AtenContext& c) {
  const bool last = c.core() == "last";
  Value* x = c.tensor(last ? "A" : "self");
  const std::size_t rank = x->type.rank();
  const std::int64_t offset = c.integer("offset", 0), first = c.axis(c.integer("dim1", last ? -2 : 0), rank),
                     second = c.axis(c.integer("dim2", last ? -1 : 1), rank);
  Ints perm;
  for (std::size_t i = 0; i < rank; ++i)
    if (static_cast<std::int64_t>(i) != first && static_cast<std::int64_t>(i) != second)
      perm.push_back(static_cast<std::int64_t>(i));
  perm.insert(perm.end(), {first, second});
  return {diagonal_elements(c, reordered(c, x, perm), offset, c.result().shape.back())};
}

// Windows along one axis become a new last axis.
Outputs unfold(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::size_t rank = x->type.rank();
  const std::int64_t axis = rank == 0 ? 0 : c.axis(c.integer("dimension"), rank), size = c.integer("size"),
                     step = c.integer("step");
  if (rank == 0) return {c.b.reshape(x, c.result().shape)};
  const Expr count = c.result().shape[static_cast<std::size_t>(axis)];
  Value* y = c.b.gather(x, window_places(c, count, Expr(size), Expr(step)), axis);
  Ints perm = all_axes(rank + 1);
  perm.erase(perm.begin() + axis + 1);
  perm.push_back(axis + 1);
  return {reordered(c, y, perm)};
}

// What is written lies between what stays before and after it.
Outputs write_slice(AtenContext& c) {
  Value *x = c.tensor("self"), *src = c.b.cast(c.tensor("src"), x->type.dtype);
  Cut cut{c.axis(c.integer("dim", 0), x->type.rank()), 1, {}};
  if (c.core() == "select") {
    Expr index = c.size("index");
    const Expr& size = x->type.shape[static_cast<std::size_t>(cut.axis)];
    cut.range = {known_less(index, Expr(0)) ? index + size : index, Expr(1)};
    Shape shape = src->type.shape;
    shape.insert(shape.begin() + cut.axis, Expr(1));
    src = c.b.reshape(src, std::move(shape));
  } else {
    cut = cut_of(c, x);
  }
  Shape wanted = x->type.shape;
  wanted[static_cast<std::size_t>(cut.axis)] = cut.range.size;
  src = c.b.expand(src, wanted);
  const Expr& size = x->type.shape[static_cast<std::size_t>(cut.axis)];
  if (cut.step == 1) {
    if (cut.range.size == size) return {src};
    const Expr end = cut.range.start + cut.range.size;
    std::vector<Value*> parts;
    if (!(cut.range.start == Expr(0))) parts.push_back(c.b.slice_axis(x, cut.axis, Expr(0), cut.range.start));
    parts.push_back(src);
    if (!(end == size)) parts.push_back(c.b.slice_axis(x, cut.axis, end, size - end));
    return {parts.size() == 1 ? parts[0] : c.b.concat(parts, cut.axis)};
  }
  Shape line(x->type.rank(), Expr(1));
  line[static_cast<std::size_t>(cut.axis)] = cut.range.size;
  Value* places = c.b.iota(line, cut.axis, DType::i64, cut.range.start, Expr(cut.step));
  return onnx_call(c, "ScatterElements", {x, c.b.expand(places, wanted), src}, {{"axis", cut.axis}});
}

constexpr OpRow kViewRows[] = {
    {"aten.alias.default", same},
    {"aten.detach.default", same},
    {"aten.clone.default", same},
    {"aten.contiguous.default", same},
    {"aten.lift_fresh_copy.default", same},
    {"aten.view.default", reshape},
    {"aten.reshape.default", reshape},
    {"aten._unsafe_view.default", reshape},
    {"aten._reshape_copy.default", reshape},
    {"aten.view_as.default", reshape},
    {"aten.flatten.using_ints", reshape},
    {"aten.unflatten.int", reshape},
    {"aten.squeeze.default", reshape},
    {"aten.squeeze.dim", reshape},
    {"aten.squeeze.dims", reshape},
    {"aten.unsqueeze.default", reshape},
    {"prims.view_of.default", same},
    {"prims.collapse_view.default", reshape},
    {"prims.split_dim.default", reshape},
    {"prims.squeeze.default", reshape},
    {"prims.reshape.default", reshape},
    {"prims.transpose.default", permute},
    {"prims.broadcast_in_dim.default", broadcast_into},
    {"prims.rev.default", flip},
    {"aten.expand.default", expand},
    {"aten.expand_as.default", expand},
    {"aten.permute.default", permute},
    {"aten.transpose.int", transpose},
    {"aten.swapaxes.default", transpose},
    {"aten.t.default", transpose, "t"},
    {"aten.select.int", select},
    {"aten.slice.Tensor", slice},
    {"aten.split_with_sizes.default", split_sizes},
    {"aten.split.Tensor", split},
    {"aten.chunk.default", split},
    {"aten.unbind.int", unbind},
    {"aten.cat.default", cat},
    {"aten.stack.default", stack},
    {"aten.flip.default", flip},
    {"aten.roll.default", roll},
    {"aten.repeat.default", repeat},
    {"aten.tile.default", repeat},
    {"aten.diagonal.default", diagonal},
    {"aten.linalg_diagonal.default", diagonal, "last"},
    {"aten.unfold.default", unfold},
    {"aten.slice_scatter.default", write_slice, "slice"},
    {"aten.select_scatter.default", write_slice, "select"},
};

}  // namespace

std::span<const OpRow> view_rows() { return kViewRows; }

}  // namespace oclc::pt2
