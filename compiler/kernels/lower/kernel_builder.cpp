#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"
#include "compiler/support/hash.h"
#include "compiler/support/integer_of.h"

namespace oclc {
namespace {

// Where a kernel ends growing: the size of the expressions of one element's position, places at which one value is computed,
// nodes and operands of one value, values that are computed for each other. A tile of Winograd has 64 places.
constexpr std::size_t kLargestPosition = 512, kMostNodes = 1024, kMostOperands = 60;
constexpr int kMostPlaces = 72, kDeepestValue = 256;
// Choices among more expressions are made by halves.
constexpr std::size_t kLongestChoice = 64;

std::size_t size_of(const std::vector<Expr>& list) {
  std::size_t size = 0;
  for (const Expr& e : list) size += e.size();
  return size;
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

std::size_t KernelBuilder::MemoHash::operator()(const MemoKey& key) const {
  std::size_t result = hash_with(static_cast<std::size_t>(key.kind), static_cast<std::size_t>(key.dtype));
  for (const std::size_t part :
       {static_cast<std::size_t>(key.operand), std::hash<const void*>()(key.value), static_cast<std::size_t>(key.bits)})
    result = hash_with(result, part);
  for (const auto* list : {&key.position, &key.guard}) {
    for (const Expr& e : *list) result = hash_with(result, e.hash());
    result = hash_with(result, list->size());
  }
  return result;
}

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
  const double one_nan = std::isnan(value) ? std::copysign(std::numeric_limits<double>::quiet_NaN(), value) : value;
  MemoKey key{.kind = 'n', .dtype = dtype, .bits = std::bit_cast<std::uint64_t>(one_nan)};
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  ScalarNode node;
  node.dtype = dtype;
  node.number = value;
  return memo_[std::move(key)] = add(std::move(node));
}

NodeId KernelBuilder::index(const Expr& e, DType dtype) {
  dtype = computed_as(dtype);
  if (const auto c = e.constant(); c && std::abs(static_cast<double>(*c)) < 9e15) return number(dtype, static_cast<double>(*c));
  MemoKey key{.kind = 'i', .dtype = dtype, .position = {e}};
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  ScalarNode node;
  node.kind = ScalarNode::Kind::index;
  node.dtype = dtype;
  node.index = e;
  return memo_[std::move(key)] = add(std::move(node));
}

NodeId KernelBuilder::apply(std::string_view name, std::vector<NodeId> args) { return apply(op(name), std::move(args)); }

NodeId KernelBuilder::apply(const OpDef& definition, std::vector<NodeId> args) {
  OCLC_CHECK(definition.scalar, "no scalar form of " + std::string(definition.name));
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

NodeId KernelBuilder::bits(NodeId x, DType from, DType to) {
  ScalarNode node;
  node.kind = ScalarNode::Kind::bits;
  node.dtype = computed_as(to);
  node.bits_from = from;
  node.bits_to = to;
  node.args = {x};
  return add(std::move(node));
}

NodeId KernelBuilder::converted(const Node& node, NodeId x) {
  const DType to = node.output()->type.dtype;
  return node.op->name == "cast" ? convert(x, to) : bits(x, node.inputs[0]->type.dtype, to);
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
    ++bound_uses_;
    return inside->second.node;
  }
  MemoKey key{.kind = 'v', .value = value, .bits = static_cast<std::uint64_t>(value->id), .position = coords, .guard = guard};
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  const std::size_t nodes = kernel.nodes.size(), operands = kernel.operands.size(), bound = bound_uses_;
  if (can_be_stored(value) && (++computed_[value] > kMostPlaces || depth_ > kDeepestValue)) throw StoreFirst{value};
  ++depth_;
  const NodeId node = compute(value, coords, guard);
  --depth_;
  store_if_large(value, nodes, operands, bound);
  memo_[std::move(key)] = node;
  return node;
}

// What this kernel computes in its loads and another can compute before it.
bool KernelBuilder::can_be_stored(const Value* value) const {
  const Node* node = value->producer;
  if (!node || value == root_ || node->has("gathered")) return false;
  const OpKind kind = node->op->kind;
  const bool computes = kind == OpKind::elementwise || kind == OpKind::movement || kind == OpKind::indexing;
  return computes && !inputs_.find_storage(value);  // in this order: to look for a constant's storage gives it some
}

// `value` took the nodes and operands beyond those counts, and uses of bound values: what depends on this kernel's own results
// cannot stand before it.
void KernelBuilder::store_if_large(const Value* value, std::size_t nodes, std::size_t operands, std::size_t bound) const {
  if (kernel.nodes.size() - nodes <= kMostNodes && kernel.operands.size() - operands <= kMostOperands) return;
  if (bound == bound_uses_ && can_be_stored(value)) throw StoreFirst{value};
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
    if (!node.op->scalar) return converted(node, args[0]);
    const NodeId result = apply(*node.op, std::move(args));
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
  if (node.op->name == "exprs") return expression_of(node, value->type.dtype, coords);
  return mapped(value, coords, guard);
}

// One of the node's expressions, by where it stands among them: by halves where they are many.
NodeId KernelBuilder::expression_of(const Node& node, DType dtype, const std::vector<Expr>& coords) {
  const auto& values = node.get<std::vector<Expr>>("values");
  Shape shape;
  for (const std::int64_t d : node.get<std::vector<std::int64_t>>("shape")) shape.emplace_back(d);
  const Expr flat = flatten(coords, shape);
  if (const auto c = flat.constant()) return cast(index(values[static_cast<std::size_t>(*c)], DType::i64), dtype);
  const std::function<NodeId(std::size_t, std::size_t)> among = [&](std::size_t first, std::size_t count) {
    if (count == 1) return cast(index(values[first], DType::i64), dtype);
    const std::size_t low = count > kLongestChoice ? count / 2 : 1;
    const NodeId above = among(first + low, count - low), below = among(first, low);
    ScalarNode choose;
    choose.kind = ScalarNode::Kind::choose;
    choose.dtype = computed_as(dtype);
    choose.guard = {Expr(static_cast<std::int64_t>(first + low) - 1) - flat};
    choose.args = {below, above};
    return add(std::move(choose));
  };
  return among(0, values.size());
}

// Of operators that move elements: by where each source has them.
NodeId KernelBuilder::mapped(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard) {
  const Node& node = *value->producer;
  const IndexMap* map = find_index_map(node.op->name);
  OCLC_CHECK(map, fmt::format("operator {} can not be computed inside a kernel", node.op->name));
  const IndexMapContext context{node, coords, [&](std::size_t input, const std::vector<Expr>& at, const Expr& bound) {
                                  return integer_at(node.inputs[input], at, guard, bound);
                                }};
  const auto sources = [&] {
    try {
      return map->sources(context);
    } catch (const ExprTooLarge&) {
      if (can_be_stored(value)) throw StoreFirst{value};
      throw;
    }
  }();
  for (const MappedElement& source : sources) {
    const bool is_large = size_of(source.coords) + size_of(source.guard) + size_of(guard) > kLargestPosition;
    if (is_large && can_be_stored(value)) throw StoreFirst{value};
  }
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
    const Expr e(integer_of(at(raw).number));
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

void KernelBuilder::note(const Node& node) {
  if (const UserOp* own = as_user_op(*node.op); own && !own->doubles) {
    for (const Value* input : node.inputs) {
      if (!input || input->type.dtype != DType::f64) continue;
      throw CompileError({.stage = "kernels",
                          .node = node.source,
                          .op = own->title,
                          .wanted = "f64 among the operator's 'types', and a text that computes with double",
                          .found = "operands of f64",
                          .exit_code = ExitCode::unsupported});
    }
  }
  if (!node.source.empty() && std::find(kernel.sources.begin(), kernel.sources.end(), node.source) == kernel.sources.end())
    kernel.sources.push_back(node.source);
  if (node.op->cost) kernel.flops += node.op->cost(node).flops;
  const std::string op_name(node.op->name);
  if (node.op->kind != OpKind::generator) kernel.formula += (kernel.formula.empty() ? "" : " ") + op_name;
}

}  // namespace oclc
