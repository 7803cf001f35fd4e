// Sequences and optionals. They exist only while a model is read: lists of tensors whose lengths and positions are known then.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// The position that input `i` names in `count` places, counted from the end if it is negative.
std::size_t position(OpContext& c, std::size_t i, std::size_t count) {
  const Ints at = c.numbers(i, "the position");
  const auto n = static_cast<std::int64_t>(count);
  if (at.size() != 1) c.fail("one position", std::to_string(at.size()));
  if (at[0] < -n || at[0] >= n) c.fail(fmt::format("a position from {} to {}", -n, n - 1), std::to_string(at[0]));
  return static_cast<std::size_t>(at[0] < 0 ? at[0] + n : at[0]);
}

// Elements of a sequence are tensors of one element type.
Value* sequence_of(OpContext& c, std::vector<Value*> items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (c.is_bundle(items[i])) c.fail("tensors in a sequence", "a sequence or an empty optional");
    if (items[i]->type.dtype != items[0]->type.dtype)
      c.fail(fmt::format("elements of type {}, as the first is", name_of(items[0]->type.dtype)), items[i]->type.text());
  }
  return c.make_sequence(std::move(items));
}

Outputs construct(OpContext& c) {
  std::vector<Value*> items;
  for (std::size_t i = 0; i < c.inputs(); ++i) items.push_back(c.input(i));
  return {sequence_of(c, std::move(items))};
}

Outputs empty(OpContext& c) {
  c.ignore({"dtype"});
  return {c.make_sequence({})};
}

Outputs element(OpContext& c) {
  const std::vector<Value*>& items = c.sequence(0);
  return {items[position(c, 1, items.size())]};
}

Outputs insert(OpContext& c) {
  std::vector<Value*> items = c.sequence(0);
  const auto n = static_cast<std::int64_t>(items.size());
  const Ints given = c.optional_input(2) ? c.numbers(2, "the position") : Ints{n};
  if (given.size() != 1 || given[0] < -n || given[0] > n)
    c.fail(fmt::format("a position from {} to {}", -n, n), fmt::format("{}", fmt::join(given, ", ")));
  items.insert(given[0] < 0 ? items.end() + given[0] : items.begin() + given[0], c.input(1));
  return {sequence_of(c, std::move(items))};
}

Outputs erase(OpContext& c) {
  std::vector<Value*> items = c.sequence(0);
  if (items.empty()) c.fail("a sequence with elements", "an empty one");
  const std::size_t at = c.optional_input(1) ? position(c, 1, items.size()) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return {c.make_sequence(std::move(items))};
}

Outputs length(OpContext& c) { return {c.b.exprs({Expr(static_cast<std::int64_t>(c.sequence(0).size()))}, {})}; }

Outputs split(OpContext& c) {
  Value* x = c.input(0);
  const std::size_t axis = c.axis_attribute(0);
  const Expr& size = x->type.shape[axis];
  std::vector<Expr> sizes;
  const bool keep = c.flag("keepdims", true) || c.optional_input(1);
  if (c.optional_input(1)) sizes = c.content(1, "the lengths of the parts");
  if (!c.optional_input(1) || c.rank(1) == 0) {
    const Expr part = c.optional_input(1) ? sizes.at(0) : Expr(1);
    if (!size.is_constant() || !part.is_constant())
      c.unsupported("a split into a number of parts known when compiling", x->type.text(), "give the sizes with --dim");
    if (part.value() < 1) c.fail("parts of a length of 1 or more", part.text());
    c.count_made((size.value() - 1) / part.value() + 1);
    sizes.clear();
    for (std::int64_t at = 0; at < size.value(); at += part.value())
      sizes.emplace_back(std::min(part.value(), size.value() - at));
  }
  Expr at = 0;
  std::vector<Value*> items;
  for (const Expr& part : sizes) {
    if (known_less(part, Expr(0))) c.fail("lengths of 0 or more", part.text());
    Value* item = c.b.slice_axis(x, static_cast<std::int64_t>(axis), at, part);
    if (!keep) {
      Shape shape = x->type.shape;
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
      item = c.b.reshape(item, std::move(shape));
    }
    items.push_back(item);
    at += part;
  }
  if (!(at == size)) c.fail(fmt::format("parts of {} elements in all", size.text()), at.text());
  return {c.make_sequence(std::move(items))};
}

Outputs join(OpContext& c) {
  std::vector<Value*> items = c.sequence(0);
  if (items.empty()) c.fail("a sequence with elements", "an empty one");
  const bool fresh = c.flag("new_axis");
  const std::size_t rank = items[0]->type.rank() + (fresh ? 1 : 0), axis = c.axis(c.integer("axis"), rank);
  for (Value*& item : items) {
    if (!fresh) continue;
    Shape shape = item->type.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Expr(1));
    item = c.b.reshape(item, std::move(shape));
  }
  return {items.size() == 1 ? items[0] : c.b.concat(std::move(items), static_cast<std::int64_t>(axis))};
}

// An optional with content is its content.
Outputs optional(OpContext& c) {
  c.ignore({"type"});
  return {c.optional_input(0) ? c.input(0) : c.make_none()};
}

Outputs has_element(OpContext& c) {
  const bool has = c.optional_input(0) && !c.is_none(c.input(0));
  return {c.b.exprs({Expr(has ? 1 : 0)}, {}, DType::boolean)};
}

Outputs get_element(OpContext& c) {
  if (c.is_none(c.input(0))) c.fail("an optional with content", "an empty one");
  return {c.input(0)};
}

constexpr OpRow kSequenceRows[] = {
    {"ConcatFromSequence", 11, 1, 1, join, {}, true},
    {"Optional", 15, 0, 1, optional, {}, true},
    {"OptionalGetElement", 15, 1, 1, get_element, {}, true},
    {"OptionalHasElement", 15, 0, 1, has_element, {}, true},
    {"SequenceAt", 11, 2, 2, element, {}, true},
    {"SequenceConstruct", 11, 1, kAnyNumber, construct, {}, true},
    {"SequenceEmpty", 11, 0, 0, empty},
    {"SequenceErase", 11, 1, 2, erase, {}, true},
    {"SequenceInsert", 11, 2, 3, insert, {}, true},
    {"SequenceLength", 11, 1, 1, length, {}, true},
    {"SplitToSequence", 11, 1, 2, split},
};

}  // namespace

std::span<const OpRow> sequence_rows() { return kSequenceRows; }

}  // namespace oclc::onnx
