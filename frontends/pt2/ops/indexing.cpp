// Reads and writes at positions given by tensors, and orders.
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/ops/shape_rules.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// Tensors without axes take part as vectors of one.
Value* at_least_vector(AtenContext& c, Value* x) { return x->type.rank() == 0 ? c.b.reshape(x, {Expr(1)}) : x; }

Outputs gather(AtenContext& c) {
  Value *x = c.tensor("self"), *index = c.tensor("index");
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  if (index->type.elements() == Expr(0)) return {c.b.expand(c.b.scalar(x->type.dtype, 0), c.result().shape)};
  Value* data = at_least_vector(c, x);
  Value* places = at_least_vector(c, index);
  // Along the other axes the index may be shorter.
  for (std::size_t i = 0; i < data->type.rank(); ++i)
    if (static_cast<std::int64_t>(i) != axis && !(data->type.shape[i] == places->type.shape[i]))
      data = c.b.slice_axis(data, static_cast<std::int64_t>(i), Expr(0), places->type.shape[i]);
  return {c.b.reshape(c.b.gather_elements(data, places, axis), c.result().shape)};
}

Outputs index_select(AtenContext& c) {
  Value *x = at_least_vector(c, c.tensor("self")), *index = at_least_vector(c, c.tensor("index"));
  return {c.b.reshape(c.b.gather(x, index, c.axis(c.integer("dim"), x->type.rank())), c.result().shape)};
}

Outputs embedding(AtenContext& c) { return {c.b.gather(c.tensor("weight"), c.tensor("indices"), 0)}; }

// The indexed axes, the shape of their indices together, and the indices as rows of a matrix [.., k].
struct Indexed {
  std::vector<std::int64_t> axes;
  Shape shape;
  Value* tuples = nullptr;
};

Indexed indexed(AtenContext& c, const Value* x, const std::vector<Value*>& indices) {
  Indexed found;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (indices[i]->type.dtype == DType::boolean || indices[i]->type.dtype == DType::u8)
      c.refuse("indices of integers", "a mask", "its positions depend on its values; use torch.where, or multiply by the mask");
    found.axes.push_back(static_cast<std::int64_t>(i));
    found.shape = broadcast(found.shape, indices[i]->type.shape);
  }
  if (found.axes.empty() || found.axes.size() > x->type.rank()) c.refuse("indices", "none");
  Shape column = found.shape;
  column.emplace_back(1);
  std::vector<Value*> columns;
  for (const std::int64_t a : found.axes)
    columns.push_back(c.b.reshape(c.b.expand(c.b.cast(indices[static_cast<std::size_t>(a)], DType::i64), found.shape), column));
  found.tuples = columns.size() == 1 ? columns[0] : c.b.concat(columns, static_cast<std::int64_t>(found.shape.size()));
  return found;
}

// The indexed axes first, then the others in order.
Ints to_the_front(const Indexed& found, std::size_t rank) {
  Ints perm = found.axes;
  for (std::size_t i = 0; i < rank; ++i)
    if (std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(i)) == perm.end())
      perm.push_back(static_cast<std::int64_t>(i));
  return perm;
}

Ints inverse_of(const Ints& perm) {
  Ints back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return back;
}

Value* permuted(AtenContext& c, Value* x, const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : c.b.transpose(x, perm);
}

// Where the axes of the indices stand in the result: in the place of neighbouring axes, else in front.
std::size_t place_of(const Indexed& found) {
  const bool neighbours = found.axes.back() - found.axes.front() + 1 == static_cast<std::int64_t>(found.axes.size());
  return neighbours ? static_cast<std::size_t>(found.axes.front()) : 0;
}

// Order of axes from [indices.., others..] to that of the result.
Ints to_their_place(const Indexed& found, std::size_t rank) {
  const std::size_t count = found.shape.size(), others = rank - found.axes.size(), place = place_of(found);
  Ints perm;
  for (std::size_t i = 0; i < place; ++i) perm.push_back(static_cast<std::int64_t>(count + i));
  for (std::size_t i = 0; i < count; ++i) perm.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = place; i < others; ++i) perm.push_back(static_cast<std::int64_t>(count + i));
  return perm;
}

Outputs index(AtenContext& c) {
  Value* x = c.tensor("self");
  const Indexed found = indexed(c, x, c.optional_tensors("indices"));
  const std::size_t rank = x->type.rank();
  if (found.axes.size() == 1) return {c.b.gather(x, c.b.reshape(found.tuples, found.shape), found.axes[0])};
  Value* y = c.b.gather_nd(permuted(c, x, to_the_front(found, rank)), found.tuples);
  return {permuted(c, y, to_their_place(found, rank))};
}

Outputs index_put(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::vector<Value*> indices = c.optional_tensors("indices");
  const std::size_t rank = x->type.rank();
  Value* values = c.b.cast(c.tensor("values"), x->type.dtype);
  if (indices.size() == 1 && indices[0] && indices[0]->type.dtype == DType::boolean && values->type.elements() == Expr(1)) {
    Shape shape = indices[0]->type.shape;
    shape.resize(rank, Expr(1));
    Value* one = c.b.reshape(values, {});
    return {c.b.where(c.b.reshape(indices[0], shape),
                      c.flag("accumulate") ? c.b.call(x->type.dtype == DType::boolean ? "or" : "add", {x, one}) : one, x)};
  }
  const Indexed found = indexed(c, x, indices);
  const Ints front = to_the_front(found, rank), place = to_their_place(found, rank);
  Value* data = permuted(c, x, front);
  // The values as the result of reading there would be, then with the indices' axes in front.
  Shape updates = found.shape;
  updates.insert(updates.end(), data->type.shape.begin() + static_cast<std::ptrdiff_t>(found.axes.size()),
                 data->type.shape.end());
  Shape read;
  for (const std::int64_t a : place) read.push_back(updates[static_cast<std::size_t>(a)]);
  values = permuted(c, c.b.expand(values, read), inverse_of(place));
  const bool truth = x->type.dtype == DType::boolean && c.flag("accumulate");
  const std::string reduction = truth ? "max" : c.flag("accumulate") ? "add" : "none";
  if (truth) {
    data = c.b.cast(data, DType::i32);
    values = c.b.cast(values, DType::i32);
  }
  Outputs y = onnx_call(c, "ScatterND", {data, found.tuples, values}, {{"reduction", reduction}});
  return {permuted(c, c.b.cast(y[0], x->type.dtype), inverse_of(front))};
}

Value* first_of(AtenContext& c, Value* x, const Shape& shape) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!(x->type.shape[i] == shape[i])) x = c.b.slice_axis(x, static_cast<std::int64_t>(i), Expr(0), shape[i]);
  return x;
}

// The number that a reduction leaves what it meets as it is.
Value* neutral(AtenContext& c, std::string_view reduction, DType dtype) {
  if (reduction == "mul") return c.b.scalar(dtype, 1);
  if (reduction != "max" && reduction != "min") return c.b.scalar(dtype, 0);
  const bool low = reduction == "max";
  HostTensor number(dtype, {});
  if (is_float(dtype)) {
    number.set(0, low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  } else {
    const int bits = static_cast<int>(size_bytes(dtype)) * 8;
    const std::int64_t top =
        bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (is_signed(dtype) ? bits - 1 : bits)) - 1;
    number.set_int(0, low ? (is_signed(dtype) ? -top - 1 : 0) : top);
  }
  return c.b.constant(std::move(number));
}

// Truth values are added by "or" and multiplied by "and", as the larger and the smaller of 0 and 1.
std::string of_truth_values(const std::string& reduction) {
  return reduction == "add" ? "max" : reduction == "mul" ? "min" : reduction;
}

Value* scattered(AtenContext& c, Value* x, Value* places, Value* updates, std::int64_t axis, const std::string& reduction) {
  if (x->type.dtype == DType::boolean && reduction != "none")
    return c.b.cast(
        scattered(c, c.b.cast(x, DType::i32), places, c.b.cast(updates, DType::i32), axis, of_truth_values(reduction)),
        DType::boolean);
  return onnx_call(c, "ScatterElements", {x, places, updates}, {{"axis", axis}, {"reduction", reduction}})[0];
}

// What torch calls sum, prod, mean, amax and amin (and add and multiply): of the updates at each place, and of the element
// there too if `with_self`, or if there are no updates.
Value* reduced_into(AtenContext& c, Value* x, Value* places, Value* updates, std::int64_t axis, const std::string& kind,
                    bool with_self) {
  const bool mean = kind == "mean";
  const std::string reduction = kind == "sum" || kind == "add" || mean ? "add"
                                : kind == "prod" || kind == "multiply" ? "mul"
                                : kind == "amax"                       ? "max"
                                : kind == "amin"                       ? "min"
                                                                       : "";
  if (reduction.empty()) c.refuse("a reduction sum, prod, mean, amax or amin", kind);
  const DType dtype = x->type.dtype;
  if (!mean && with_self) return scattered(c, x, places, updates, axis, reduction);
  Value* none = c.b.expand(c.b.scalar(DType::i32, 0), x->type.shape);
  Value* count = scattered(c, none, places, c.b.expand(c.b.scalar(DType::i32, 1), places->type.shape), axis, "add");
  Value* hit = c.b.call("greater", {count, c.b.scalar(DType::i32, 0)});
  Value* from = with_self ? x : c.b.where(hit, neutral(c, reduction, dtype), x);
  Value* y = scattered(c, from, places, updates, axis, reduction);
  if (!mean) return y;
  Value* divisor = c.b.cast(c.b.max(with_self ? c.b.add(count, 1) : count, c.b.scalar(DType::i32, 1)), dtype);
  if (is_float(dtype)) return c.b.div(y, divisor);
  return c.b.div(c.b.sub(y, c.b.call("mod", {y, divisor})), divisor);
}

Outputs scatter(AtenContext& c) {
  const Shape result = c.result().shape;
  Value *x = at_least_vector(c, c.tensor("self")), *places = at_least_vector(c, c.tensor("index"));
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  if (places->type.elements() == Expr(0)) return {c.tensor("self")};
  Value* updates = c.has("value") ? c.b.expand(c.operand("value", x->type.dtype), places->type.shape)
                                  : first_of(c, at_least_vector(c, c.tensor("src")), places->type.shape);
  const std::string kind = c.text("reduce");
  Value* y = c.core() == "add" ? scattered(c, x, places, updates, axis, "add")
             : kind.empty()    ? scattered(c, x, places, updates, axis, "none")
                               : reduced_into(c, x, places, updates, axis, kind, c.flag("include_self", true));
  return {c.b.reshape(y, result)};
}

// The same of slices along an axis.
Outputs index_reduce(AtenContext& c) {
  Value *x = at_least_vector(c, c.tensor("self")), *source = at_least_vector(c, c.tensor("source")),
        *index = at_least_vector(c, c.tensor("index"));
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Shape line(x->type.rank(), Expr(1));
  line[static_cast<std::size_t>(axis)] = index->type.elements();
  Value* places = c.b.expand(c.b.reshape(index, line), source->type.shape);
  Value* y = reduced_into(c, x, places, source, axis, c.text("reduce"), c.flag("include_self", true));
  return {c.b.reshape(y, c.result().shape)};
}

// Elements of the tensor as one row: torch's own decomposition reads at an index without axes on the host.
Outputs take(AtenContext& c) {
  Value* x = c.tensor("self");
  return {c.b.gather(c.b.reshape(x, {x->type.elements()}), c.tensor("index"), 0)};
}

Outputs put(AtenContext& c) {
  Value *x = c.tensor("self"), *index = c.tensor("index");
  const Expr count = index->type.elements();
  if (count == Expr(0)) return {x};
  Value* flat = c.b.reshape(x, {x->type.elements()});
  Value* y = scattered(c, flat, c.b.reshape(index, {count}), c.b.reshape(c.tensor("source"), {count}), 0,
                       c.flag("accumulate") ? "add" : "none");
  return {c.b.reshape(y, x->type.shape)};
}

// self + the source's slices added at the places
Outputs index_add(AtenContext& c) {
  Value *x = at_least_vector(c, c.tensor("self")), *source = at_least_vector(c, c.tensor("source"));
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  const bool truth = x->type.dtype == DType::boolean;
  if (truth) source = c.b.cast(source, DType::i32);
  Value* sums = c.b.call("scatter_add", {at_least_vector(c, c.tensor("index")), source},
                         {{"axis", axis}, {"size", std::vector<Expr>{x->type.shape[static_cast<std::size_t>(axis)]}}});
  if (c.has("alpha") && c.real("alpha") != 1) sums = c.b.mul(sums, c.operand("alpha", source->type.dtype));
  if (truth) return {c.b.reshape(c.b.call("or", {x, c.b.cast(sums, DType::boolean)}), c.result().shape)};
  return {c.b.reshape(c.b.add(x, sums), c.result().shape)};
}

// The source where column - row is the offset.
Outputs write_diagonal(AtenContext& c) {
  Value *x = c.tensor("self"), *src = c.b.cast(c.tensor("src"), x->type.dtype);
  const std::size_t rank = x->type.rank();
  const std::int64_t offset = c.integer("offset", 0), first = c.axis(c.integer("dim1", 0), rank),
                     second = c.axis(c.integer("dim2", 1), rank);
  Ints perm;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i)
    if (i != first && i != second) perm.push_back(i);
  perm.insert(perm.end(), {first, second});
  x = permuted(c, x, perm);
  const Expr rows = x->type.shape[rank - 2], columns = x->type.shape[rank - 1];
  Value *row = c.b.iota({rows, Expr(1)}, 0, DType::i64), *column = c.b.iota({Expr(1), columns}, 1, DType::i64);
  Value* on = c.b.call("equal", {c.b.sub(column, row), c.b.scalar(DType::i64, static_cast<double>(offset))});
  Value* last = c.b.add(c.b.exprs({src->type.shape.back()}, {}), -1);
  Value* place = c.b.expand(c.b.min(offset >= 0 ? row : column, last), {rows, columns});
  Value* y = c.b.where(on, c.b.gather(src, place, static_cast<std::int64_t>(src->type.rank()) - 1), x);
  return {permuted(c, y, inverse_of(perm))};
}

Outputs embedding_backward(AtenContext& c) {
  Value *g = c.tensor("grad_output"), *indices = c.tensor("indices");
  if (c.flag("scale_grad_by_freq")) c.refuse("embeddings without scale_grad_by_freq", "it");
  const Expr count = indices->type.elements(), width = g->type.shape.back();
  Value* rows = c.b.reshape(g, {count, width});
  Value* places = c.b.reshape(indices, {count});
  if (const std::int64_t padding = c.integer("padding_idx", -1); padding >= 0) {
    Value* skipped = c.b.call("equal", {places, c.b.scalar(places->type.dtype, static_cast<double>(padding))});
    rows = c.b.where(c.b.reshape(skipped, {count, Expr(1)}), c.b.scalar(g->type.dtype, 0), rows);
  }
  return {
      c.b.call("scatter_add", {places, rows}, {{"axis", std::int64_t{0}}, {"size", std::vector<Expr>{c.size("num_weights")}}})};
}

Outputs top(AtenContext& c, const Expr& k, bool largest) {
  Value* x = c.tensor("self");
  if (x->type.rank() == 0) return {x, c.b.scalar(DType::i64, 0)};
  const std::int64_t axis = c.axis(c.integer("dim", -1), x->type.rank());
  Value* numbers = x->type.dtype == DType::boolean ? c.b.cast(x, DType::u8) : x;
  Outputs out = onnx_call(c, "TopK", {numbers, c.b.exprs({k}, {1})}, {{"axis", axis}, {"largest", std::int64_t{largest}}}, 2);
  out[0] = c.b.cast(out[0], x->type.dtype);
  return out;
}

Outputs topk(AtenContext& c) { return top(c, c.size("k"), c.flag("largest", true)); }

Outputs sort(AtenContext& c) {
  const Value* x = c.tensor("self");
  if (x->type.rank() == 0) return top(c, Expr(1), false);
  return top(c, x->type.shape[static_cast<std::size_t>(c.axis(c.integer("dim", -1), x->type.rank()))], c.flag("descending"));
}

Outputs places_of_sorted(AtenContext& c) { return {sort(c).at(1)}; }

constexpr OpRow kIndexingRows[] = {
    {"aten.gather.default", gather},
    {"aten.index_select.default", index_select},
    {"aten.embedding.default", embedding},
    {"aten.embedding_dense_backward.default", embedding_backward},
    {"aten.index.Tensor", index},
    {"aten._unsafe_index.Tensor", index},
    {"aten.index_put.default", index_put},
    {"aten._unsafe_index_put.default", index_put},
    {"aten.index_add.default", index_add},
    {"aten.scatter.src", scatter},
    {"aten.scatter.value", scatter},
    {"aten.scatter.reduce", scatter},
    {"aten.scatter.value_reduce", scatter},
    {"aten.scatter_add.default", scatter, "add"},
    {"aten.scatter_reduce.two", scatter},
    {"aten.index_reduce.default", index_reduce},
    {"aten.take.default", take},
    {"aten.put.default", put},
    {"aten.diagonal_scatter.default", write_diagonal},
    {"aten.topk.default", topk},
    {"aten.sort.default", sort},
    {"aten.sort.stable", sort},
    {"aten.argsort.default", places_of_sorted},
    {"aten.argsort.stable", places_of_sorted},
};

}  // namespace

std::span<const OpRow> indexing_rows() { return kIndexingRows; }

}  // namespace oclc::pt2
