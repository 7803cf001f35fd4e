// Sums, means and largest of bags of embeddings, with their gradients.
#include <limits>

#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

constexpr std::int64_t kSumOfBag = 0, kMeanOfBag = 1, kMaxOfBag = 2;  // torch's numbers of modes

Value* column_of(AtenContext& c, Value* x) { return c.b.reshape(x, {x->type.elements(), Expr(1)}); }

Value* i64(AtenContext& c, double value) { return c.b.scalar(DType::i64, value); }

// Whether each index counts: all but the padding.
Value* counting(AtenContext& c, Value* indices) {
  const std::int64_t padding = c.integer("padding_idx", -1);
  if (padding < 0) return c.b.expand(c.b.cast(c.b.scalar(DType::u8, 1), DType::boolean), indices->type.shape);
  return c.b.unary("not", c.b.call("equal", {indices, i64(c, static_cast<double>(padding))}));
}

Value* added_to_rows(AtenContext& c, Value* places, Value* rows, const Expr& count) {
  return c.b.call("scatter_add", {places, rows}, {{"axis", std::int64_t{0}}, {"size", std::vector<Expr>{count}}});
}

// The largest over the indices of each bag; where none counts 0, and index 0.
Outputs largest_of_bags(AtenContext& c, Value* rows, Value* indices, Value* bags, Value* counts, const Expr& count) {
  const Expr entries = indices->type.elements();
  Value* of_bag = c.b.call("equal", {c.b.iota({count, Expr(1)}, 0, DType::i64), c.b.reshape(bags, {Expr(1), entries})});
  Value* member = c.b.call("and", {of_bag, c.b.reshape(counts, {Expr(1), entries})});
  Value* lowest = c.b.scalar(rows->type.dtype, -std::numeric_limits<double>::infinity());
  Value* candidates = c.b.where(c.b.reshape(member, {count, entries, Expr(1)}),
                                c.b.reshape(rows, {Expr(1), entries, rows->type.shape[1]}), lowest);
  Value* any = c.b.reduce("reduce_max", c.b.cast(member, DType::i32), {1}, true);
  Value* filled = c.b.cast(any, DType::boolean);
  Value* best = c.b.where(filled, c.b.reduce("reduce_max", candidates, {1}, false), c.b.scalar(rows->type.dtype, 0));
  Value* winner = c.b.gather(indices, c.b.arg("argmax", candidates, 1, false));
  return {best, c.b.where(filled, winner, i64(c, 0))};
}

// Of each index the bag that the last offset which is not behind it begins.
Value* bags_of(AtenContext& c, const Value* indices, Value* offsets) {
  offsets = c.b.cast(offsets, DType::i64);
  Value* place = c.b.iota({indices->type.elements(), Expr(1)}, 0, DType::i64);
  Value* begun = c.b.call("less_equal", {c.b.reshape(offsets, {Expr(1), offsets->type.elements()}), place});
  return c.b.add(c.b.reduce("reduce_sum", c.b.cast(begun, DType::i64), {1}, false), -1);
}

// Whether the bag's number is in [0, count): indices before the first offset, and those behind a last offset that ends the
// bags, belong to none.
Value* is_bag(AtenContext& c, Value* bags, const Expr& count) {
  return c.b.call("and", {c.b.call("less", {bags, c.b.exprs({count}, {})}), c.b.call("greater_equal", {bags, i64(c, 0)})});
}

// Of each index its bag, and whether it counts.
struct Members {
  Value *bags, *counts;
};

// As a forward pass computed them, of `count` bags.
Members members_of(AtenContext& c, Value* indices, const Expr& count) {
  Value* bags = c.tensor("offset2bag");
  bags = bags->type.elements() == Expr(0) ? bags_of(c, indices, c.tensor("offsets")) : c.b.cast(bags, DType::i64);
  Value* counts = c.b.call("and", {counting(c, indices), is_bag(c, bags, count)});
  return {c.b.where(counts, bags, i64(c, 0)), counts};
}

// result, bag of each index, size of each bag, and of kMaxOfBag the index of each largest.
Outputs embedding_bag(AtenContext& c) {
  Value *weight = c.tensor("weight"), *indices = c.b.cast(c.tensor("indices"), DType::i64);
  const std::int64_t mode = c.integer("mode", kSumOfBag);
  const Expr count = c.result().shape[0];
  const DType dtype = weight->type.dtype;
  Value* bags = bags_of(c, indices, c.tensor("offsets"));
  Value* in_bags = is_bag(c, bags, count);
  Value* counts = c.b.call("and", {counting(c, indices), in_bags});
  Value* rows = c.b.gather(weight, indices, 0);
  Value* size = added_to_rows(c, c.b.where(in_bags, bags, i64(c, 0)), c.b.cast(counts, DType::i64), count);
  const auto as_index = [&](Value* x, std::size_t i) -> Value* {
    if (!c.wants(i)) return nullptr;
    const TensorType& type = c.result(i);
    if (type.elements() == Expr(0)) return c.b.expand(c.b.scalar(type.dtype, 0), type.shape);
    return c.b.cast(x, type.dtype);
  };
  Outputs out;
  if (mode == kMaxOfBag) {
    out = largest_of_bags(c, rows, indices, bags, counts, count);
  } else {
    if (Value* weights = c.optional_tensor("per_sample_weights")) rows = c.b.mul(rows, column_of(c, weights));
    rows = c.b.where(column_of(c, counts), rows, c.b.scalar(dtype, 0));
    Value* sums = added_to_rows(c, c.b.where(in_bags, bags, i64(c, 0)), rows, count);
    if (mode == kMeanOfBag) sums = c.b.div(sums, column_of(c, c.b.cast(c.b.max(size, i64(c, 1)), dtype)));
    out = {sums, size};
  }
  return {out[0], as_index(bags, 1), as_index(size, 2), as_index(out[1], 3)};
}

// How often each index counts in all bags.
Value* frequency(AtenContext& c, Value* indices, const Expr& words) {
  Value* ones = c.b.expand(i64(c, 1), indices->type.shape);
  return c.b.gather(added_to_rows(c, indices, ones, words), indices);
}

Outputs embedding_bag_backward(AtenContext& c) {
  Value *g = c.tensor("grad"), *indices = c.b.cast(c.tensor("indices"), DType::i64);
  const std::int64_t mode = c.integer("mode");
  const Expr words = c.size("num_weights");
  const DType dtype = g->type.dtype;
  Value* zero = c.b.scalar(dtype, 0);
  if (mode == kMaxOfBag) {
    Value* filled = c.b.call("greater", {column_of(c, c.tensor("bag_size")), c.b.scalar(c.tensor("bag_size")->type.dtype, 0)});
    Value* zeros = c.b.expand(zero, c.result().shape);
    return onnx_call(c, "ScatterElements", {zeros, c.tensor("maximum_indices"), c.b.where(filled, g, zero)},
                     {{"axis", std::int64_t{0}}, {"reduction", std::string("add")}});
  }
  const auto [bags, counts] = members_of(c, indices, g->type.shape[0]);
  Value* rows = c.b.gather(g, bags, 0);
  if (Value* weights = c.optional_tensor("per_sample_weights")) rows = c.b.mul(rows, column_of(c, weights));
  if (mode == kMeanOfBag) {
    Value* size = c.b.gather(c.b.cast(c.tensor("bag_size"), DType::i64), bags);
    rows = c.b.div(rows, column_of(c, c.b.cast(c.b.max(size, i64(c, 1)), dtype)));
  }
  if (c.flag("scale_grad_by_freq")) rows = c.b.div(rows, column_of(c, c.b.cast(frequency(c, indices, words), dtype)));
  rows = c.b.where(column_of(c, counts), rows, zero);
  return {added_to_rows(c, indices, rows, words)};
}

// Of the weight of each index: what its row and the gradient of its bag have in common.
Outputs sample_weights_backward(AtenContext& c) {
  Value *g = c.tensor("grad"), *weight = c.tensor("weight"), *indices = c.b.cast(c.tensor("indices"), DType::i64);
  const auto [bags, counts] = members_of(c, indices, g->type.shape[0]);
  Value* of_bag = c.b.gather(g, bags, 0);
  Value* sums = c.b.reduce("reduce_sum", c.b.mul(of_bag, c.b.gather(weight, indices, 0)), {1}, false);
  return {c.b.where(counts, sums, c.b.scalar(g->type.dtype, 0))};
}

constexpr OpRow kBagRows[] = {
    {"aten._embedding_bag.default", embedding_bag},
    {"aten._embedding_bag_forward_only.default", embedding_bag},
    {"aten.embedding_bag.padding_idx", embedding_bag},
    {"aten._embedding_bag_backward.default", embedding_bag_backward},
    {"aten._embedding_bag_dense_backward.default", embedding_bag_backward},
    {"aten._embedding_bag_per_sample_weights_backward.default", sample_weights_backward},
};

}  // namespace

std::span<const OpRow> bag_rows() { return kBagRows; }

}  // namespace oclc::pt2
