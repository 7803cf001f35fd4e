// What moves elements in ways that torch makes of simpler ones. Shapes are those that torch found.
#include <algorithm>

#include "frontends/pt2/axes.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

std::size_t place(std::int64_t axis) { return static_cast<std::size_t>(axis); }

Outputs move_axes(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::size_t rank = x->type.rank();
  if (rank == 0) return {x};
  Ints from = c.integers("source"), to = c.integers("destination"), perm(rank, -1), rest = all_axes(rank);
  if (from.size() != to.size()) c.refuse("as many destinations as sources", std::to_string(to.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t axis = c.axis(from[i], rank);
    perm[place(c.axis(to[i], rank))] = axis;
    rest.erase(std::remove(rest.begin(), rest.end(), axis), rest.end());
  }
  auto next = rest.begin();
  for (std::int64_t& axis : perm)
    if (axis < 0) axis = *next++;
  return {c.b.transpose(x, perm)};
}

// All axes from the last on, or the last two changed over.
Outputs transposed(AtenContext& c) {
  Value* x = c.tensor("self");
  Ints perm = all_axes(x->type.rank());
  if (perm.size() < 2) return {x};
  if (c.core() == "all")
    std::reverse(perm.begin(), perm.end());
  else
    std::swap(perm[perm.size() - 2], perm.back());
  return {c.b.transpose(x, perm)};
}

Outputs narrow(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Expr start = c.size("start");
  if (known_less(start, Expr(0))) start += x->type.shape[place(axis)];
  return {c.b.slice_axis(x, axis, start, c.size("length"))};
}

// ---- several tensors

Value* in_shape(AtenContext& c, Value* x, Shape shape, DType dtype) {
  return c.b.reshape(c.b.cast(x, dtype), std::move(shape));
}

// At least `rank` axes: the given ones behind, of three between new ones.
Shape at_least(const Value* x, std::size_t rank) {
  Shape shape = x->type.shape;
  if (rank == 3 && shape.size() == 2) shape.emplace_back(1);
  if (rank == 3 && shape.size() == 1) shape = {Expr(1), shape[0], Expr(1)};
  while (shape.size() < rank) shape.insert(shape.begin(), Expr(1));
  return shape;
}

Outputs with_axes(AtenContext& c) {
  if (c.has("self")) return {c.b.reshape(c.tensor("self"), c.result().shape)};
  Outputs list;
  for (Value* x : c.tensors("tensors")) list.push_back(c.b.reshape(x, c.result(list.size()).shape));
  return list;
}

// Concatenation along axis 0, 1 or 2 ("column": of vectors as columns).
Outputs stacked(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const bool columns = c.core() == "column", across = c.core() == "across", deep = c.core() == "deep";
  std::vector<Value*> parts;
  for (Value* x : c.tensors("tensors")) {
    Shape shape = at_least(x, deep ? 3 : across ? 1 : 2);
    if (columns && x->type.rank() < 2) shape = {x->type.elements(), Expr(1)};
    parts.push_back(in_shape(c, x, shape, dtype));
  }
  const std::int64_t axis = deep ? 2 : columns || (across && c.result().rank() > 1) ? 1 : 0;
  return {parts.size() == 1 ? parts[0] : c.b.concat(parts, axis)};
}

// In pieces of the sizes that torch found; those between given indices begin there.
Outputs split_at(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::size_t rank = x->type.rank();
  const std::int64_t axis = c.core() == "dim" ? c.axis(c.integer("dim", 0), rank)
                            : c.core() == "0" ? 0
                            : c.core() == "2" ? 2
                            : rank > 1        ? 1
                                              : 0;
  const Expr& size = x->type.shape[place(axis)];
  const Shape indices = c.has("indices") ? c.sizes("indices") : Shape{};
  Outputs list;
  Expr start = 0;
  for (std::size_t i = 0; i < c.results(); ++i) {
    if (i > 0 && i <= indices.size()) {
      start = indices[i - 1];
      if (known_less(start, Expr(0))) start += size;
      if (start.is_constant() && size.is_constant()) start = std::clamp<std::int64_t>(start.value(), 0, size.value());
    }
    const Expr piece = c.result(i).shape[place(axis)];
    list.push_back(c.b.slice_axis(x, axis, start, piece));
    start += piece;
  }
  return list;
}

// Tensor i along axis i; of "xy" the first two axes are exchanged.
Outputs mesh(AtenContext& c) {
  const bool columns_first = c.text("indexing", "ij") == "xy";
  Outputs list;
  for (Value* x : c.tensors("tensors")) {
    const std::size_t i = list.size(), axis = columns_first && i < 2 ? 1 - i : i;
    const Shape& shape = c.result(i).shape;
    Shape line(shape.size(), Expr(1));
    if (axis < line.size()) line[axis] = x->type.elements();
    list.push_back(c.b.expand(c.b.reshape(x, line), shape));
  }
  return list;
}

Outputs broadcast(AtenContext& c) {
  Outputs list;
  for (Value* x : c.tensors("tensors")) list.push_back(c.b.expand(x, c.result(list.size()).shape));
  return list;
}

// Matrices along the diagonal of one of zeros.
Outputs block_diagonal(AtenContext& c) {
  const Shape& shape = c.result().shape;
  std::vector<Value*> rows;
  Expr left = 0;
  for (Value* x : c.tensors("tensors")) {
    Value* block = in_shape(c, x, at_least(x, 2), c.result().dtype);
    const Expr width = block->type.shape[1];
    rows.push_back(c.b.pad(block, {Expr(0), left}, {Expr(0), shape[1] - left - width}));
    left += width;
  }
  return {rows.size() == 1 ? rows[0] : c.b.concat(rows, 0)};
}

// ---- diagonals

// The last axis on a diagonal: [.., n] as [.., n + |offset|, n + |offset|].
Value* on_diagonal(AtenContext& c, Value* x, std::int64_t offset) {
  const std::int64_t more = std::abs(offset);
  const std::size_t rank = x->type.rank();
  Shape line = x->type.shape;
  const Expr size = line.back() + more;
  std::vector<Expr> none(rank, Expr(0)), behind = none;
  behind[rank - 1] = more;
  if (more > 0) x = c.b.pad(x, none, behind);
  line.back() = size;
  line.insert(offset >= 0 ? line.end() : line.end() - 1, Expr(1));
  Value *row = c.b.iota({size, Expr(1)}, 0, DType::i64, Expr(offset)), *column = c.b.iota({Expr(1), size}, 1, DType::i64);
  return c.b.where(c.b.call("equal", {row, column}), c.b.reshape(x, line), c.b.scalar(x->type.dtype, 0));
}

Outputs diagonal_of(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t offset = c.integer(c.core() == "flat" ? "offset" : "diagonal", 0);
  if (c.core() == "flat") x = c.b.reshape(x, {x->type.elements()});
  if (x->type.rank() == 1) return {on_diagonal(c, x, offset)};
  return {diagonal_elements(c, x, offset, c.result().shape[0])};
}

Outputs diagonal_along(AtenContext& c) {
  Value* y = on_diagonal(c, c.tensor("self"), c.integer("offset", 0));
  const std::size_t rank = y->type.rank();
  const std::int64_t first = c.axis(c.integer("dim1", -2), rank), second = c.axis(c.integer("dim2", -1), rank);
  Ints perm(rank, -1);
  perm[place(first)] = static_cast<std::int64_t>(rank) - 2;
  perm[place(second)] = static_cast<std::int64_t>(rank) - 1;
  std::int64_t next = 0;
  for (std::int64_t& axis : perm)
    if (axis < 0) axis = next++;
  return {reordered(c, y, perm)};
}

Outputs trace(AtenContext& c) {
  Value* x = c.tensor("self");
  const Shape& s = x->type.shape;
  Value *row = c.b.iota({s[0], Expr(1)}, 0, DType::i64), *column = c.b.iota({Expr(1), s[1]}, 1, DType::i64);
  Value* kept = c.b.where(c.b.call("equal", {row, column}), x, c.b.scalar(x->type.dtype, 0));
  return {c.b.reduce("reduce_sum", c.b.cast(kept, c.result().dtype), {0, 1}, false)};
}

// ---- order of elements

Outputs flip_matrix(AtenContext& c) { return {flipped(c, c.tensor("self"), {c.core() == "columns" ? 1 : 0})}; }

Outputs rotate(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t turns = (c.integer("k", 1) % 4 + 4) % 4;
  Ints dims = c.integers("dims", {0, 1});
  for (std::int64_t& d : dims) d = c.axis(d, x->type.rank());
  if (turns == 0) return {x};
  if (turns == 2) return {flipped(c, x, dims)};
  Ints perm = all_axes(x->type.rank());
  std::swap(perm[place(dims.at(0))], perm[place(dims.at(1))]);
  return {c.b.transpose(flipped(c, x, {dims[turns == 1 ? 1 : 0]}), perm)};
}

// The element of frequency 0 in the middle, or back at the begin.
Outputs shift_frequencies(AtenContext& c) {
  Value* x = c.tensor("self");
  for (const std::int64_t axis : c.axes("dim", x->type.rank())) {
    const Expr& size = x->type.shape[place(axis)];
    const Expr half = floor_div(size, Expr(2)), first = c.core() == "back" ? half : size - half;
    x = c.b.concat({c.b.slice_axis(x, axis, first, size - first), c.b.slice_axis(x, axis, Expr(0), first)}, axis);
  }
  return {x};
}

// [N, groups * n, ..] as [N, n * groups, ..].
Outputs shuffle_channels(AtenContext& c) {
  Value* x = c.tensor("self");
  const Shape shape = x->type.shape;
  const Expr groups = c.size("groups");
  const Expr plane = product(std::span<const Expr>(shape).subspan(2));
  Value* y = c.b.reshape(x, {shape[0], groups, floor_div(shape[1], groups), plane});
  return {c.b.reshape(c.b.transpose(y, {0, 2, 1, 3}), shape)};
}

Outputs pixel_unshuffle(AtenContext& c) {
  Value* x = c.tensor("self");
  const Expr r = c.integer("downscale_factor");
  const Shape& result = c.result().shape;
  const std::size_t rank = result.size();
  const Expr rows = result[rank - 2], columns = result[rank - 1], channels = x->type.shape[rank - 3];
  const Expr batch = product(std::span<const Expr>(result).first(rank - 3));
  Value* y = c.b.transpose(c.b.reshape(x, {batch, channels, rows, r, columns, r}), {0, 1, 3, 5, 2, 4});
  return {c.b.reshape(y, result)};
}

// Each element so many times, one after another.
Outputs repeat_each(AtenContext& c) {
  Value* x = c.tensor("self");
  const bool flat = !c.has("dim");
  if (flat || x->type.rank() == 0) x = c.b.reshape(x, {x->type.elements()});
  const std::int64_t axis = flat ? 0 : c.axis(c.integer("dim"), x->type.rank());
  Shape apart = x->type.shape;
  apart.insert(apart.begin() + axis + 1, Expr(1));
  Shape wide = apart;
  wide[place(axis) + 1] = c.size("repeats");
  return {c.b.reshape(c.b.expand(c.b.reshape(x, apart), wide), c.result().shape)};
}

Outputs one_hot(AtenContext& c) {
  Value* x = c.tensor("self");
  Shape column = x->type.shape;
  column.emplace_back(1);
  const Expr& classes = c.result().shape.back();
  Value* y = c.b.call("equal", {c.b.reshape(x, column), c.b.iota({classes}, 0, x->type.dtype)});
  return {c.b.cast(y, c.result().dtype)};
}

Outputs take_along(AtenContext& c) {
  Value *x = c.tensor("self"), *places = c.tensor("indices");
  const Shape result = c.result().shape;
  if (!c.has("dim")) {
    const auto flat = [&](Value* v) { return c.b.reshape(v, {v->type.elements()}); };
    return {c.b.gather_elements(flat(x), flat(places), 0)};
  }
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Shape of_x = result;
  of_x[place(axis)] = x->type.shape[place(axis)];
  return {c.b.gather_elements(c.b.expand(x, of_x), c.b.expand(places, result), axis)};
}

// Elements at the index along a dimension become a number, or rows of a source.
Outputs fill_at(AtenContext& c) {
  Value *x = c.tensor("self"), *places = c.tensor("index");
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  if (x->type.rank() == 0) return {c.operand("value", x->type.dtype)};
  const Expr& size = x->type.shape[place(axis)];
  Value* flat = c.b.reshape(c.b.cast(places, DType::i64), {places->type.elements(), Expr(1)});
  flat = c.b.where(c.b.call("less", {flat, c.b.scalar(DType::i64, 0)}),
                   c.b.add(flat, c.b.cast(c.b.exprs({size}, {}), DType::i64)), flat);
  Value* hit = c.b.cast(c.b.call("equal", {flat, c.b.iota({Expr(1), size}, 1, DType::i64)}), DType::i32);
  Shape line(x->type.rank(), Expr(1));
  line[place(axis)] = size;
  Value* any = c.b.cast(c.b.reduce("reduce_max", hit, {0}, false), DType::boolean);
  return {c.b.where(c.b.reshape(any, line), c.operand("value", x->type.dtype), x)};
}

Outputs copy_at(AtenContext& c) {
  Value *x = c.tensor("self"), *places = c.tensor("index"), *source = c.tensor("source");
  if (x->type.rank() == 0) return {c.b.reshape(source, {})};
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Shape line(x->type.rank(), Expr(1)), wide = x->type.shape;
  line[place(axis)] = wide[place(axis)] = places->type.elements();
  places = c.b.expand(c.b.reshape(places, line), wide);
  return onnx_call(c, "ScatterElements", {x, places, c.b.reshape(source, wide)}, {{"axis", axis}});
}

constexpr OpRow kRearrangementRows[] = {
    {"aten.movedim.int", move_axes},
    {"aten.movedim.intlist", move_axes},
    {"aten.mT.default", transposed},
    {"aten.mH.default", transposed},
    {"aten.adjoint.default", transposed},
    {"aten.matrix_H.default", transposed},
    {"aten.numpy_T.default", transposed, "all"},
    {"aten.narrow.default", narrow},
    {"aten.atleast_1d.default", with_axes},
    {"aten.atleast_2d.default", with_axes},
    {"aten.atleast_3d.default", with_axes},
    {"aten.atleast_1d.Sequence", with_axes},
    {"aten.atleast_2d.Sequence", with_axes},
    {"aten.atleast_3d.Sequence", with_axes},
    {"aten.hstack.default", stacked, "across"},
    {"aten.vstack.default", stacked},
    {"aten.dstack.default", stacked, "deep"},
    {"aten.column_stack.default", stacked, "column"},
    {"aten.tensor_split.sections", split_at, "dim"},
    {"aten.tensor_split.indices", split_at, "dim"},
    {"aten.hsplit.int", split_at},
    {"aten.hsplit.array", split_at},
    {"aten.vsplit.int", split_at, "0"},
    {"aten.vsplit.array", split_at, "0"},
    {"aten.dsplit.int", split_at, "2"},
    {"aten.dsplit.array", split_at, "2"},
    {"aten.meshgrid.default", mesh},
    {"aten.meshgrid.indexing", mesh},
    {"aten.broadcast_tensors.default", broadcast},
    {"aten.block_diag.default", block_diagonal},
    {"aten.diag.default", diagonal_of},
    {"aten.diagflat.default", diagonal_of, "flat"},
    {"aten.diag_embed.default", diagonal_along},
    {"aten.trace.default", trace},
    {"aten.fliplr.default", flip_matrix, "columns"},
    {"aten.flipud.default", flip_matrix, "rows"},
    {"aten.rot90.default", rotate},
    {"aten.fft_fftshift.default", shift_frequencies},
    {"aten.fft_ifftshift.default", shift_frequencies, "back"},
    {"aten.channel_shuffle.default", shuffle_channels},
    {"aten.native_channel_shuffle.default", shuffle_channels},
    {"aten.pixel_unshuffle.default", pixel_unshuffle},
    {"aten.repeat_interleave.self_int", repeat_each},
    {"aten.one_hot.default", one_hot},
    {"aten.take_along_dim.default", take_along},
    {"aten.index_fill.int_Scalar", fill_at},
    {"aten.index_fill.int_Tensor", fill_at},
    {"aten.index_copy.default", copy_at},
};

}  // namespace

std::span<const OpRow> rearrangement_rows() { return kRearrangementRows; }

}  // namespace oclc::pt2
