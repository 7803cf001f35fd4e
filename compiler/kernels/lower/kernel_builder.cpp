#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

std::string key_of(const std::vector<Expr>& list) {
  std::string key;
  for (const Expr& e : list) key += e.text() + ";";
  return key;
}

// Number of a constant tensor whose elements are all one number, small enough to look at.
std::optional<double> uniform_number(const Value* value) {
  const HostTensor* tensor = constant_of(value);
  if (!tensor || tensor->elements() == 0 || tensor->elements() > 64) return std::nullopt;
  const double first = tensor->at(0);
  if (tensor->dtype() == DType::string && first != 0) return std::nullopt;  // a plan gives texts its own numbers
  if (tensor->dtype() == DType::i64 || tensor->dtype() == DType::u64) {
    if (std::abs(first) > 9e15) return std::nullopt;
  }
  for (std::int64_t i = 1; i < tensor->elements(); ++i) {
    if (tensor->at(i) != first) return std::nullopt;
  }
  return first;
}

bool never_holds(const std::vector<Expr>& guard) {
  return std::any_of(guard.begin(), guard.end(), [](const Expr& e) { return e.is_constant() && e.value() < 0; });
}

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

DType computed_as(DType dtype) { return is_half(dtype) ? DType::f32 : dtype == DType::string ? DType::i32 : dtype; }

Expr KernelBuilder::axis_of(std::vector<Axis>& axes, std::string name, const Expr& extent) const {
  for (const Axis& known : axes) {
    if (shares_axes && known.name == name) return known.var;
  }
  axes.push_back({name, extent, Expr::axis(name, extent)});
  return axes.back().var;
}

Expr KernelBuilder::add_axis(std::string name, const Expr& extent) { return axis_of(kernel.axes, std::move(name), extent); }

Expr KernelBuilder::add_reduction(std::string name, const Expr& extent) {
  return axis_of(kernel.reduction, std::move(name), extent);
}

std::vector<Expr> KernelBuilder::axes_for(const Shape& shape, std::string_view prefix) {
  std::vector<Expr> coords;
  for (std::size_t i = 0; i < shape.size(); ++i) coords.push_back(add_axis(fmt::format("{}{}", prefix, i), shape[i]));
  return coords;
}

NodeId KernelBuilder::add(ScalarNode node) {
  kernel.nodes.push_back(std::move(node));
  return static_cast<NodeId>(kernel.nodes.size()) - 1;
}

NodeId KernelBuilder::number(DType dtype, double value) {
  dtype = computed_as(dtype);
  const std::string key = fmt::format("number {} {:a} {}", name_of(dtype), value, std::signbit(value));
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  ScalarNode node;
  node.dtype = dtype;
  node.number = value;
  return memo_[key] = add(std::move(node));
}

NodeId KernelBuilder::index(const Expr& e, DType dtype) {
  dtype = computed_as(dtype);
  if (const auto c = e.constant(); c && std::abs(static_cast<double>(*c)) < 9e15) return number(dtype, static_cast<double>(*c));
  const std::string key = fmt::format("index {} {}", name_of(dtype), e.text());
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  ScalarNode node;
  node.kind = ScalarNode::Kind::index;
  node.dtype = dtype;
  node.index = e;
  return memo_[key] = add(std::move(node));
}

NodeId KernelBuilder::apply(std::string_view name, std::vector<NodeId> args) {
  const OpDef& definition = op(name);
  OCLC_CHECK(definition.scalar, "no scalar form of " + std::string(name));
  ScalarNode node;
  node.kind = ScalarNode::Kind::apply;
  node.op = definition.scalar;
  node.op_name = definition.name;
  node.dtype = definition.scalar->result_is_bool ? DType::boolean : at(args.back()).dtype;
  node.args = std::move(args);
  return add(std::move(node));
}

NodeId KernelBuilder::cast(NodeId x, DType dtype) {
  dtype = computed_as(dtype);
  if (at(x).dtype == dtype) return x;
  if (at(x).kind == ScalarNode::Kind::index && is_integer(dtype) && size_bytes(dtype) >= 4) return index(at(x).index, dtype);
  ScalarNode node;
  node.kind = ScalarNode::Kind::cast;
  node.dtype = dtype;
  node.args = {x};
  return add(std::move(node));
}

NodeId KernelBuilder::convert(NodeId x, DType dtype) {
  const NodeId wide = cast(x, dtype);
  if (!is_half(dtype)) return wide;
  const ScalarNode& from = at(wide);
  if (from.kind == ScalarNode::Kind::load && kernel.operands[static_cast<std::size_t>(from.operand)].dtype == dtype)
    return wide;
  ScalarNode rounded;
  rounded.kind = ScalarNode::Kind::cast;
  rounded.dtype = dtype;
  rounded.args = {wide};
  return cast(add(std::move(rounded)), dtype);
}

NodeId KernelBuilder::reduced(int stage, DType dtype) {
  ScalarNode node;
  node.kind = ScalarNode::Kind::reduced;
  node.dtype = computed_as(dtype);
  node.stage = stage;
  return add(std::move(node));
}

NodeId KernelBuilder::guarded(NodeId x, const std::vector<Expr>& outer, const std::vector<Expr>& guard, double fill) {
  if (guard.empty()) return x;
  if (never_holds(guard)) return number(at(x).dtype, fill);
  std::vector<Expr> both = outer;
  for (const Expr& e : guard) add_condition(both, e);
  if (at(x).kind == ScalarNode::Kind::load && at(x).guard == both) {
    if (at(x).number == fill) return x;
    ScalarNode load = at(x);
    load.number = fill;
    return add(std::move(load));
  }
  ScalarNode node;
  node.kind = ScalarNode::Kind::select;
  node.dtype = at(x).dtype;
  node.guard = guard;
  node.number = fill;
  node.args = {x};
  return add(std::move(node));
}

void KernelBuilder::bind(const Value* value, std::vector<Expr> coords, NodeId node) {
  bound_[value] = {std::move(coords), node};
}

const std::vector<Expr>* KernelBuilder::bound_coords(const Value* value) const {
  const auto known = bound_.find(value);
  return known == bound_.end() ? nullptr : &known->second.coords;
}

NodeId KernelBuilder::element(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard) {
  const auto inside = bound_.find(value);
  if (inside != bound_.end()) {
    OCLC_CHECK(inside->second.coords == coords,
               "a value of the kernel is needed at other coordinates than it is computed at: " + text_of(coords));
    return inside->second.node;
  }
  const std::string key =
      fmt::format("v{} {}", value->id, static_cast<const void*>(value)) + key_of(coords) + "|" + key_of(guard);
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  const NodeId node = compute(value, coords, guard);
  memo_[key] = node;
  return node;
}

NodeId KernelBuilder::root(const Value* value, const std::vector<Expr>& coords) {
  root_ = value;
  return element(value, coords);
}

NodeId KernelBuilder::compute(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard) {
  if (const auto uniform = uniform_number(value)) return number(value->type.dtype, *uniform);
  const Storage* storage = value == root_ ? nullptr : inputs_.find_storage(value);
  if (storage) return load(value, *storage, coords, guard);
  OCLC_CHECK(value->producer, "input without storage");
  const Node& node = *value->producer;
  note(node);
  if (node.op->kind == OpKind::elementwise) {
    std::vector<NodeId> args;
    for (const Value* input : node.inputs) args.push_back(element(input, broadcast_coords(coords, input->type.shape), guard));
    if (node.op->name == "cast") return convert(args[0], value->type.dtype);
    const NodeId result = apply(node.op->name, std::move(args));
    kernel.nodes[static_cast<std::size_t>(result)].dtype = computed_as(value->type.dtype);
    return result;
  }
  if (node.op->name == "iota") {
    const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
    const auto expr_of = [&](std::string_view name, std::int64_t fallback) {
      const auto list = node.get_or<std::vector<Expr>>(name, {Expr(fallback)});
      return list.at(0);
    };
    return cast(index(expr_of("start", 0) + expr_of("step", 1) * coords[axis], DType::i64), value->type.dtype);
  }
  if (node.op->name == "exprs") {
    const auto& values = node.get<std::vector<Expr>>("values");
    Shape shape;
    for (const std::int64_t d : node.get<std::vector<std::int64_t>>("shape")) shape.emplace_back(d);
    const Expr flat = flatten(coords, shape);
    if (const auto c = flat.constant()) return cast(index(values[static_cast<std::size_t>(*c)], DType::i64), value->type.dtype);
    NodeId chosen = cast(index(values.back(), DType::i64), value->type.dtype);
    for (std::size_t i = values.size() - 1; i-- > 0;) {
      ScalarNode choose;
      choose.kind = ScalarNode::Kind::choose;
      choose.dtype = computed_as(value->type.dtype);
      choose.guard = {Expr(static_cast<std::int64_t>(i)) - flat};
      choose.args = {cast(index(values[i], DType::i64), value->type.dtype), chosen};
      chosen = add(std::move(choose));
    }
    return chosen;
  }
  const IndexMap* map = find_index_map(node.op->name);
  OCLC_CHECK(map, fmt::format("operator {} can not be computed inside a kernel", node.op->name));
  const IndexMapContext context{node, coords, [&](std::size_t input, const std::vector<Expr>& at, const Expr& bound) {
                                  return integer_at(node.inputs[input], at, guard, bound);
                                }};
  const auto sources = map->sources(context);
  const double fill = node.get_or<double>("value", 0.0);
  NodeId result = -1;
  for (std::size_t i = sources.size(); i-- > 0;) {
    const MappedElement& source = sources[i];
    std::vector<Expr> inner = guard;
    for (const Expr& e : source.guard) add_condition(inner, e);
    const NodeId x =
        never_holds(inner) ? number(value->type.dtype, fill) : element(node.inputs[source.input], source.coords, inner);
    if (source.guard.empty()) {
      result = x;
    } else if (result < 0) {
      // The last source of a concatenation needs no choice: some source always holds it.
      result = sources.size() > 1 ? x : guarded(x, guard, source.guard, fill);
    } else {
      ScalarNode choose;
      choose.kind = ScalarNode::Kind::choose;
      choose.dtype = computed_as(value->type.dtype);
      choose.guard = source.guard;
      choose.args = {x, result};
      result = add(std::move(choose));
    }
  }
  return result;
}

Expr KernelBuilder::integer_at(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard,
                               const Expr& bound) {
  const NodeId raw = element(value, coords, guard);
  if (at(raw).kind == ScalarNode::Kind::index) {
    const Expr e = at(raw).index;
    if (known_nonnegative(e) && known_less(e, bound)) return e;
  }
  if (at(raw).kind == ScalarNode::Kind::constant) {
    const Expr e(static_cast<std::int64_t>(at(raw).number));
    const Expr wrapped = known_nonnegative(e) ? e : e + bound;
    if (known_nonnegative(wrapped) && known_less(wrapped, bound)) return wrapped;
  }
  const NodeId wide = cast(raw, DType::i64);
  const NodeId size = index(bound, DType::i64);
  const NodeId zero = number(DType::i64, 0);
  const NodeId wrapped = apply("where", {apply("less", {wide, zero}), apply("add", {wide, size}), wide});
  const NodeId clamped = apply("max", {apply("min", {wrapped, index(bound - 1, DType::i64)}), zero});
  return Expr::axis(dynamic_symbol(clamped), bound);
}

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
  for (const Expr& e : guard) {
    if (concerns(e, node.index)) node.guard.push_back(e);
  }
  node.operand = operand(storage.buffer, buffer.dtype, false, buffer.name);
  count_read(node, value->type.elements(), buffer.elements);
  const std::string key = fmt::format("load {} {}|{}", node.operand, node.index.text(), key_of(node.guard));
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  return memo_[key] = add(std::move(node));
}

// Whether an element at `index` may lie outside of its tensor where `condition` does not hold: not if the condition is about
// axes that the index does not run over, as with what all positions of a channel share.
bool KernelBuilder::concerns(const Expr& condition, const Expr& index) const {
  const std::set<std::string> axes = axis_names(kernel);
  const auto is_axis = [&](const std::string& s) { return axes.count(s) != 0; };
  const auto asked = condition.symbols(), used = index.symbols();
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

void KernelBuilder::note(const Node& node) {
  if (!node.source.empty() && std::find(kernel.sources.begin(), kernel.sources.end(), node.source) == kernel.sources.end())
    kernel.sources.push_back(node.source);
  if (node.op->cost) kernel.flops += node.op->cost(node).flops;
  const std::string op_name(node.op->name);
  if (node.op->kind != OpKind::generator) kernel.formula += (kernel.formula.empty() ? "" : " ") + op_name;
}

}  // namespace oclc
