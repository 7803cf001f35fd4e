// What a kernel loads and stores: operands, positions, and the bytes that pass.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/support/error.h"

namespace oclc {

int KernelBuilder::operand(int buffer, DType dtype, bool written, const std::string& name) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    Operand& known = kernel.operands[i];
    if (known.buffer == buffer && known.written == written) return static_cast<int>(i);
  }
  // Names tell the role, not the value: kernels that differ in their buffers alone have one text.
  const auto role = static_cast<std::size_t>(
      std::count_if(kernel.operands.begin(), kernel.operands.end(), [&](const Operand& o) { return o.written == written; }));
  kernel.operands.push_back(
      {buffer, dtype == DType::string ? DType::i32 : dtype, written, fmt::format("{}{}", written ? "y" : "x", role), name});
  return static_cast<int>(kernel.operands.size()) - 1;
}

NodeId KernelBuilder::load(const Value* value, const Storage& storage, const std::vector<Expr>& coords,
                           const std::vector<Expr>& guard) {
  ScalarNode node;
  node.kind = ScalarNode::Kind::load;
  const Buffer& buffer = (*inputs_.buffers)[static_cast<std::size_t>(storage.buffer)];
  node.dtype = computed_as(value->type.dtype);
  node.index = storage.offset;
  for (std::size_t i = 0; i < coords.size(); ++i) node.index += coords[i] * storage.strides[i];
  if (!guard.empty()) {
    const std::set<std::string> axes = axis_names(kernel);
    const std::vector<std::string> used = node.index.symbols();
    std::copy_if(guard.begin(), guard.end(), std::back_inserter(node.guard),
                 [&](const Expr& e) { return concerns(e, used, axes); });
  }
  node.operand = operand(storage.buffer, buffer.dtype, false, buffer.name);
  count_read(node, value->type.elements(), buffer.elements);
  MemoKey key{.kind = 'l', .operand = node.operand, .position = {node.index}, .guard = node.guard};
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  return memo_[std::move(key)] = add(std::move(node));
}

// Whether an element whose index uses these symbols may lie outside of its tensor where `condition` does not hold: not if the
// condition is about axes that the index does not run over, as with what all positions of a channel share.
bool KernelBuilder::concerns(const Expr& condition, const std::vector<std::string>& used, const std::set<std::string>& axes) {
  const auto is_axis = [&](const std::string& s) { return axes.count(s) != 0; };
  const auto asked = condition.symbols();
  return asked.empty() || !std::all_of(asked.begin(), asked.end(), is_axis) ||
         std::any_of(used.begin(), used.end(), [&](const std::string& s) {
           return !is_axis(s) || std::find(asked.begin(), asked.end(), s) != asked.end();
         });
}

// Elements of one operand at different positions are different elements, as long as the buffer holds so many.
void KernelBuilder::count_read(const ScalarNode& load, const Expr& elements, const Expr& held) {
  Reads& reads = reads_[load.operand];
  if (!reads.positions.insert(load.index).second) return;
  const Expr before = reads.elements, sum = before + elements_read(elements, load.index);
  if (known_less_equal(sum, held)) {
    reads.elements = sum;
  } else {
    // Where neither can be shown to be less, what one position reads stands for all of them.
    reads.elements = known_less_equal(held, sum) ? held : before == Expr(0) ? sum : before;
  }
  kernel.bytes += (reads.elements - before) *
                  Expr(static_cast<std::int64_t>(size_bytes(kernel.operands[static_cast<std::size_t>(load.operand)].dtype)));
}

// How many of `elements` are read at `index`: never more than the axes that it runs over have points. What a tensor gives for
// an index, as in a gather, runs over the axes that compute it; the counter of a loop stays where it is.
Expr KernelBuilder::elements_read(const Expr& elements, const Expr& index) const {
  std::set<std::string> used;
  std::vector<bool> seen(kernel.nodes.size(), false);
  bool whole = true, every_axis = false;
  std::vector<Expr> stack = {index};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    for (const std::string& s : e.symbols()) {
      used.insert(s);
      const auto id = dynamic_index(s);
      if (!id) continue;
      std::vector<NodeId> nodes = {*id};
      while (!nodes.empty()) {
        const auto at = static_cast<std::size_t>(nodes.back());
        nodes.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        const ScalarNode& node = kernel.nodes[at];
        every_axis = every_axis || node.kind == ScalarNode::Kind::reduced;
        stack.push_back(node.index);
        nodes.insert(nodes.end(), node.args.begin(), node.args.end());
      }
    }
  }
  Expr points(1);
  for (const auto* list : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *list) {
      if (every_axis || used.count(axis.name)) points *= axis.extent;
      used.erase(axis.name);
    }
  }
  for (const std::string& s : used) whole = whole && !dynamic_index(s) && elements.uses(s);
  if (known_less(points, elements)) return points;
  return whole ? elements : min(points, elements);
}

void KernelBuilder::store(const Value* value, const std::vector<Expr>& coords, NodeId node, std::vector<int> row_axes,
                          std::vector<Expr> guard) {
  const Storage* storage = inputs_.find_storage(value);
  OCLC_CHECK(storage, "store to a value without storage");
  const auto put = [&](const Storage& target) {
    store_to(target, value->type.dtype, coords, node, value->name.empty() ? "y" : value->name, row_axes);
    kernel.stores.back().guard = guard;
  };
  put(*storage);
  if (!inputs_.also) return;
  for (auto [at, end] = inputs_.also->equal_range(value); at != end; ++at) put(at->second);
}

void KernelBuilder::store_to(const Storage& target, DType dtype, const std::vector<Expr>& coords, NodeId node,
                             const std::string& name, const std::vector<int>& row_axes) {
  Store store;
  store.index = target.offset;
  store.row_axes = row_axes;
  Expr elements(1);
  for (std::size_t i = 0; i < coords.size(); ++i) store.index += coords[i] * target.strides[i];
  for (const Axis& axis : kernel.axes) elements *= axis.extent;
  for (const int axis : row_axes) elements *= kernel.reduction[static_cast<std::size_t>(axis)].extent;
  const DType held = (*inputs_.buffers)[static_cast<std::size_t>(target.buffer)].dtype;
  store.operand = operand(target.buffer, held, true, name);
  store.value = cast(node, dtype);
  kernel.bytes += elements * Expr(static_cast<std::int64_t>(size_bytes(held)));
  kernel.stores.push_back(std::move(store));
}

}  // namespace oclc
