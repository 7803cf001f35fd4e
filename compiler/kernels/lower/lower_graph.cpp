#include <fmt/format.h>

#include <algorithm>

#include "compiler/kernels/lower/lower_blas.h"
#include "compiler/kernels/lower/module_lowering.h"
#include "compiler/passes/gradients/mixed_precision.h"

namespace oclc {
namespace {

// The constant's elements in the order of `layout`.
HostTensor physical(const HostTensor& tensor, const Layout& layout) {
  if (layout.is_row_major()) return tensor;
  const auto& shape = tensor.shape();
  std::vector<std::int64_t> order_shape;
  for (const int d : layout.order) order_shape.push_back(shape[static_cast<std::size_t>(d)]);
  HostTensor out(tensor.dtype(), order_shape);
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  const std::size_t size = size_bytes(tensor.dtype());
  std::vector<std::int64_t> at(shape.size(), 0);
  std::byte* to = out.mutable_data();
  for (std::int64_t i = 0, n = tensor.elements(); i < n; ++i) {
    std::int64_t from = 0;
    for (std::size_t k = 0; k < at.size(); ++k) from += at[k] * strides[static_cast<std::size_t>(layout.order[k])];
    std::copy_n(tensor.data() + static_cast<std::size_t>(from) * size, size, to);
    to += size;
    for (std::size_t k = at.size(); k-- > 0;) {
      if (++at[k] < order_shape[k]) break;
      at[k] = 0;
    }
  }
  return out;
}

// What a value that only kernels see lies in memory as.
DType stored_type(const Value& value) {
  return value.producer ? value.producer->get_or<DType>(kStoredAs, value.type.dtype) : value.type.dtype;
}

bool by_kernel(const Value* value, const Grouping& grouping) {
  const Node* node = value->producer;
  return node && node->op->kind != OpKind::control && node->op->kind != OpKind::host && !grouping.placed_concats.count(node);
}

// The last value that a loop carries lies in one of its two slots; what the trips collect may lie anywhere.
bool is_carried_result(const Value* value) {
  return value->producer && value->producer->op->kind == OpKind::control &&
         value->index < value->producer->get_or<std::int64_t>("carried", 0);
}

}  // namespace

std::vector<Expr> strides_of(const Shape& shape, const Layout& layout) {
  std::vector<Expr> strides(shape.size());
  Expr next(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::size_t d = layout.is_row_major() ? i : static_cast<std::size_t>(layout.order[i]);
    strides[d] = next;
    next *= shape[d];
  }
  return strides;
}

std::string label_of(const Value& value) {
  if (!value.name.empty()) return value.name;
  return value.producer && !value.producer->source.empty() ? value.producer->source : fmt::format("v{}", value.id);
}

int ModuleLowering::add_buffer(std::string name, BufferKind kind, DType dtype, Expr elements) {
  schedule_.buffers.push_back({std::move(name), kind, dtype, std::move(elements), {}, -1});
  return static_cast<int>(schedule_.buffers.size()) - 1;
}

Storage ModuleLowering::fresh(const Value& value, BufferKind kind, const std::string& name, const Layout& layout) {
  return {add_buffer(name, kind, value.type.dtype, value.type.elements()), Expr(0), strides_of(value.type.shape, layout)};
}

const Storage* ModuleLowering::find(const Value* value) {
  const auto known = storage_.find(value);
  if (known != storage_.end()) return &known->second;
  const HostTensor* tensor = constant_of(value);
  if (!tensor) return nullptr;
  const auto key = std::make_pair(tensor->data(), value->layout.order);
  auto shared = constants_.find(key);
  if (shared == constants_.end() || schedule_.buffers[static_cast<std::size_t>(shared->second)].dtype != tensor->dtype() ||
      tensor->bytes() == 0) {
    const int buffer = add_buffer(label_of(*value), BufferKind::constant, tensor->dtype(), Expr(tensor->elements()));
    schedule_.buffers[static_cast<std::size_t>(buffer)].constant = physical(*tensor, value->layout);
    shared = constants_.insert_or_assign(key, buffer).first;
  }
  return &(storage_[value] = {shared->second, Expr(0), strides_of(value->type.shape, value->layout)});
}

LoweringInputs ModuleLowering::lowering_inputs() {
  LoweringInputs inputs;
  inputs.buffers = &schedule_.buffers;
  inputs.also = &also_;
  inputs.even_positions = options_.even_positions;
  inputs.find_storage = [this](const Value* v) {
    const Storage* storage = find(v);
    if (storage) touched_.push_back(v);
    return storage;
  };
  return inputs;
}

void ModuleLowering::emit(Kernel kernel, std::vector<Step>& steps) {
  if (std::any_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.extent == Expr(0); })) return;
  if (kernel.code && product(kernel.code->space.extents) == Expr(0)) return;
  steps.push_back({KernelStep{static_cast<int>(schedule_.kernels.size())}});
  schedule_.kernels.push_back(std::move(kernel));
}

bool ModuleLowering::emit_blas(const Kernel& kernel, std::vector<Step>& steps) {
  if (!options_.blas || !kernel.contraction) return false;
  std::string why_not;
  auto blas = lower_blas(
      kernel,
      [&](const Expr& elements) { return add_buffer(kernel.name + ".product", BufferKind::arena, DType::f32, elements); },
      why_not);
  if (!blas) {
    if (report_ && !report_->empty()) report_->back().fate += "; not by the library: " + why_not;
    return false;
  }
  steps.push_back({GemmStep{static_cast<int>(schedule_.gemms.size())}});
  schedule_.gemms.push_back(std::move(blas->gemm));
  if (blas->epilogue) emit(std::move(*blas->epilogue), steps);
  return true;
}

Group ModuleLowering::stored_apart(const Value* value) {
  storage_[value] = fresh(*value, BufferKind::arena, label_of(*value), value->layout);
  schedule_.buffers.back().dtype = stored_type(*value);
  return {nullptr, {value->producer}, {value}};
}

Kernel ModuleLowering::lower_fitting(const Group& group, std::vector<Step>& steps) {
  std::vector<Group> waiting{group};  // each for the one behind it
  for (;;) {
    try {
      touched_.clear();
      const Group& next = waiting.back();
      Kernel kernel = lower_group(next, lowering_inputs());
      complete_concats(steps);
      report(next, kernel);
      if (waiting.size() == 1) return kernel;
      emit(std::move(kernel), steps);
      waiting.pop_back();
    } catch (const StoreFirst& first) {
      waiting.push_back(stored_apart(first.value));
    }
  }
}

void ModuleLowering::copy_to(const Value* value, const Storage& target, std::vector<Step>& steps) {
  for (;;) {
    try {
      Kernel kernel = lower_copy(value, target, lowering_inputs());
      complete_concats(steps);
      return emit(std::move(kernel), steps);
    } catch (const StoreFirst& first) {
      touched_.clear();
      emit(lower_fitting(stored_apart(first.value), steps), steps);
    }
  }
}

void ModuleLowering::complete_concats(std::vector<Step>& steps) {
  std::vector<const Value*> touched = std::move(touched_);
  touched_.clear();
  for (const Value* value : touched) complete_concat(value, steps);
}

void ModuleLowering::complete_concat(const Value* value, std::vector<Step>& steps) {
  const Node* node = value->producer;
  if (!node || !grouping_ || !grouping_->placed_concats.count(node) || !completed_.insert(node).second) return;
  const auto axis = static_cast<std::size_t>(node->get<std::int64_t>("axis"));
  Storage slice = storage_.at(value);
  for (const Value* operand : node->inputs) {
    const auto placed = grouping_->placed_in.find(operand);
    if (placed != grouping_->placed_in.end() && placed->second == node)
      complete_concat(operand, steps);
    else
      copy_to(operand, slice, steps);
    slice.offset += operand->type.shape[axis] * slice.strides[axis];
  }
}

void ModuleLowering::assign_storage(const Value* value) {
  if (storage_.count(value)) return;
  const auto placed = grouping_->placed_in.find(value);
  if (placed == grouping_->placed_in.end()) {
    storage_[value] = fresh(*value, BufferKind::arena, label_of(*value), value->layout);
    schedule_.buffers.back().dtype = stored_type(*value);
    return;
  }
  const Node* concat = placed->second;
  assign_storage(concat->output());
  Storage slice = storage_.at(concat->output());
  const auto axis = static_cast<std::size_t>(concat->get<std::int64_t>("axis"));
  for (const Value* operand : concat->inputs) {
    if (operand == value) break;
    slice.offset += operand->type.shape[axis] * slice.strides[axis];
  }
  storage_[value] = slice;
}

void ModuleLowering::share_storage(const Group& group) {
  const UserOp* own = group.anchor ? as_user_op(*group.anchor->op) : nullptr;
  if (!own) return;
  for (const auto& [output, input] : own->inplace) {
    const Value* from = input < group.anchor->inputs.size() ? group.anchor->inputs[input] : nullptr;
    const Value* to = group.anchor->output(output);
    const bool stored = std::find(group.outputs.begin(), group.outputs.end(), to) != group.outputs.end();
    if (!from || !from->producer || from->users.size() != 1 || !stored || storage_.count(from) == 0 || storage_.count(to) != 0)
      continue;
    const Storage& place = storage_.at(from);
    const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(place.buffer)];
    if (buffer.kind == BufferKind::arena && buffer.dtype == stored_type(*to) && buffer.elements == to->type.elements() &&
        from->type == to->type && grouping_->placed_in.count(to) == 0)
      storage_[to] = place;
  }
}

void ModuleLowering::lower_graph(const Graph& graph, const std::vector<Storage>& targets, std::vector<Step>& steps) {
  const Grouping grouping =
      group_nodes(graph, {options_.fuse, options_.lays_out_operands, options_.copies_operands, options_.costs});
  const Grouping* outer = std::exchange(grouping_, &grouping);
  std::vector<bool> direct(targets.size(), false), shared(targets.size(), false);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Value* value = graph.outputs()[i].second;
    const auto first = std::find_if(graph.outputs().begin(), graph.outputs().begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const auto& known) { return known.second == value; });
    if (const auto at = static_cast<std::size_t>(first - graph.outputs().begin());
        at < i && direct[at] && by_kernel(value, grouping)) {
      shared[i] = true;
      also_.emplace(value, targets[i]);
      continue;
    }
    if (!grouping.stored.count(value) || storage_.count(value) || grouping.placed_in.count(value) || is_carried_result(value))
      continue;
    storage_[value] = targets[i];
    direct[i] = true;
  }
  for (const Node* node : graph.nodes()) {
    if (grouping.placed_concats.count(node)) assign_storage(node->output());
  }
  for (const Group& group : grouping.groups) {
    if (group.anchor && group.anchor->op->kind == OpKind::control) {
      if (group.anchor->op->name == "bind_dims")
        lower_bind_dims(*group.anchor, steps);
      else
        lower_loop(*group.anchor, steps);
      continue;
    }
    if (group.anchor && group.anchor->op->kind == OpKind::host) {
      lower_host(*group.anchor, steps);
      continue;
    }
    share_storage(group);
    for (const Value* output : group.outputs) assign_storage(output);
    Kernel kernel = lower_fitting(group, steps);
    if (!emit_blas(kernel, steps)) emit(std::move(kernel), steps);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Value* value = graph.outputs()[i].second;
    if (shared[i]) continue;
    if (direct[i])
      complete_concat(value, steps);
    else if (!is_in_place(value, targets[i]))
      copy_to(value, targets[i], steps);
  }
  grouping_ = outer;
}

bool ModuleLowering::is_in_place(const Value* value, const Storage& target) const {
  const auto known = storage_.find(value);
  return known != storage_.end() && known->second.buffer == target.buffer && known->second.offset == target.offset;
}

void ModuleLowering::report(const Group& group, const Kernel& kernel) {
  if (!report_) return;
  for (const Node* node : group.nodes) {
    std::string fate = node == group.nodes.front() ? "kernel " + kernel.name : "fused into " + kernel.name;
    if (const auto reason = node->get_or<std::string>("strategy_reason", ""); !reason.empty()) fate += ": " + reason;
    const auto why = grouping_->why_not.find(node);
    report_->push_back({node->source, std::string(node->op->name), std::move(fate),
                        why == grouping_->why_not.end() ? std::string() : why->second});
  }
}

}  // namespace oclc
