// Views by strides: elements of the memory that a tensor lies in, wherever they stand.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// The memory of a tensor as a vector, how the tensor lies there, and whether it fills the memory itself: by which order of its
// axes then.
struct Memory {
  Value* elements = nullptr;
  Layout layout;
  Ints order;
  bool filled = false;
};

// The axes from the outermost to the innermost one in memory; nothing unless the tensor fills it from its begin without gaps.
std::optional<Ints> order_in_memory(const Shape& shape, const Layout& layout) {
  if (!(layout.offset == Expr(0)) || layout.strides.size() != shape.size()) return std::nullopt;
  Ints order;
  std::vector<bool> placed(shape.size(), false);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == Expr(1)) {
      placed[i] = true;
      order.push_back(static_cast<std::int64_t>(i));
    }
  for (Expr step = 1; order.size() < shape.size();) {
    std::size_t next = shape.size();
    while (next > 0 && (placed[next - 1] || !(layout.strides[next - 1] == step))) --next;
    if (next == 0) return std::nullopt;
    placed[next - 1] = true;
    order.push_back(static_cast<std::int64_t>(next - 1));
    step *= shape[next - 1];
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Ints inverse(const Ints& order) {
  Ints back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return back;
}

Value* in_order(AtenContext& c, Value* x, const Ints& order) {
  return std::is_sorted(order.begin(), order.end()) ? x : c.b.transpose(x, order);
}

Memory memory_of(AtenContext& c, std::string_view argument) {
  const ReadSoFar& read = c.so_far();
  const Arg& given = c.need(argument);
  const auto known = read.roots.find(given.name);
  const std::string& root = known == read.roots.end() ? given.name : known->second;
  const auto value = read.values.find(root);
  const auto layout = read.program.layouts.find(given.name), of_root = read.program.layouts.find(root);
  const auto end = read.program.layouts.end();
  const auto order = value != read.values.end() && layout != end && of_root != end
                         ? order_in_memory(value->second->type.shape, of_root->second)
                         : std::nullopt;
  if (!order)
    c.refuse("as_strided of a tensor that fills its memory, or of a view of one", "'" + root + "'",
             "call .contiguous() before it");
  Value* x = in_order(c, value->second, *order);
  return {c.b.reshape(x, {x->type.elements()}), layout->second, *order, root == given.name};
}

// Where elements that lie so stand.
Value* places(AtenContext& c, const Memory& memory, const Shape& size, const Layout& layout) {
  if (size.size() != layout.strides.size())
    c.refuse(fmt::format("a stride for each of {} sizes", size.size()), std::to_string(layout.strides.size()));
  Expr last = layout.offset;
  Value* place = c.b.exprs({layout.offset}, {});
  for (std::size_t i = 0; i < size.size(); ++i) {
    Shape line(size.size(), Expr(1));
    line[i] = size[i];
    place = c.b.add(place, c.b.iota(line, static_cast<std::int64_t>(i), DType::i64, Expr(0), layout.strides[i]));
    last += (size[i] - 1) * layout.strides[i];
  }
  const Expr count = memory.elements->type.elements();
  if (known_less(count - 1, last))
    c.refuse("places inside the " + count.text() + " elements of the tensor's memory", "place " + last.text());
  return place;
}

// The places that the operator's arguments name.
Value* named_places(AtenContext& c, const Memory& memory) {
  return places(c, memory, c.sizes("size"), {c.sizes("stride"), c.size("storage_offset", memory.layout.offset)});
}

Outputs as_strided(AtenContext& c) {
  const Memory memory = memory_of(c, "self");
  return {c.b.reshape(c.b.gather(memory.elements, named_places(c, memory)), c.result().shape)};
}

// The tensor, with its memory written at the places.
Outputs write_strided(AtenContext& c) {
  const Memory memory = memory_of(c, "self");
  const Value* x = c.tensor("self");
  Value* src = c.b.cast(c.tensor("src"), x->type.dtype);
  const Expr count = src->type.elements();
  Value* at = c.b.reshape(c.b.expand(named_places(c, memory), src->type.shape), {count});
  Value* y = onnx_call(c, "ScatterElements", {memory.elements, at, c.b.reshape(src, {count})}, {{"axis", std::int64_t{0}}})[0];
  if (!memory.filled) return {c.b.reshape(c.b.gather(y, places(c, memory, x->type.shape, memory.layout)), x->type.shape)};
  Shape ordered;
  for (const std::int64_t axis : memory.order) ordered.push_back(x->type.shape[static_cast<std::size_t>(axis)]);
  return {in_order(c, c.b.reshape(y, ordered), inverse(memory.order))};
}

constexpr OpRow kStridedRows[] = {
    {"aten.as_strided.default", as_strided},
    {"aten.as_strided_copy.default", as_strided},
    {"aten.as_strided_scatter.default", write_strided},
    {"prims.as_strided_scatter.default", write_strided},
};

}  // namespace

std::span<const OpRow> strided_rows() { return kStridedRows; }

}  // namespace oclc::pt2
