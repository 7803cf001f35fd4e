#include "compiler/kernels/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/kernels/lower_blas.h"
#include "compiler/kernels/lower_kernel.h"
#include "compiler/kernels/state_hazards.h"
#include "compiler/ops/host_op.h"
#include "compiler/passes/mixed_precision.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

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

class ModuleLowering {
 public:
  ModuleLowering(const Module& module, const LowerOptions& options, std::vector<NodeFate>* report)
      : module_(module), options_(options), report_(report) {}

  Schedule run() {
    schedule_.model = module_.name;
    schedule_.symbols = module_.symbols;
    for (const StateVariable& state : module_.states) {
      const int buffer = add_buffer(state.name, BufferKind::state, state.type.dtype, state.type.elements());
      state_buffers_[state.name] = buffer;
      schedule_.states.push_back({state, buffer});
    }
    for (const auto& graph : module_.entries) lower_entry(*graph);
    return std::move(schedule_);
  }

 private:
  int add_buffer(std::string name, BufferKind kind, DType dtype, Expr elements) {
    schedule_.buffers.push_back({std::move(name), kind, dtype, std::move(elements), {}, -1});
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  Storage fresh(const Value& value, BufferKind kind, const std::string& name, const Layout& layout) {
    return {add_buffer(name, kind, value.type.dtype, value.type.elements()), Expr(0), strides_of(value.type.shape, layout)};
  }

  // What a value that only kernels see lies in memory as.
  static DType stored_type(const Value& value) {
    return value.producer ? value.producer->get_or<DType>(kStoredAs, value.type.dtype) : value.type.dtype;
  }

  static std::string label(const Value& value) {
    if (!value.name.empty()) return value.name;
    return value.producer && !value.producer->source.empty() ? value.producer->source : fmt::format("v{}", value.id);
  }

  const Storage* find(const Value* value) {
    const auto known = storage_.find(value);
    if (known != storage_.end()) return &known->second;
    const HostTensor* tensor = constant_of(value);
    if (!tensor) return nullptr;
    const auto key = std::make_pair(tensor->data(), value->layout.order);
    auto shared = constants_.find(key);
    if (shared == constants_.end() || schedule_.buffers[static_cast<std::size_t>(shared->second)].dtype != tensor->dtype() ||
        tensor->bytes() == 0) {
      const int buffer = add_buffer(label(*value), BufferKind::constant, tensor->dtype(), Expr(tensor->elements()));
      schedule_.buffers[static_cast<std::size_t>(buffer)].constant = physical(*tensor, value->layout);
      shared = constants_.insert_or_assign(key, buffer).first;
    }
    return &(storage_[value] = {shared->second, Expr(0), strides_of(value->type.shape, value->layout)});
  }

  LoweringInputs lowering_inputs() {
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

  // Kernels without elements have nothing to do.
  void emit(Kernel kernel, std::vector<Step>& steps) {
    if (std::any_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.extent == Expr(0); })) return;
    Step step;
    step.kernel = static_cast<int>(schedule_.kernels.size());
    schedule_.kernels.push_back(std::move(kernel));
    steps.push_back(std::move(step));
  }

  // The kernel's product by a library and its epilogue as a kernel, if asked for and possible.
  bool emit_blas(const Kernel& kernel, std::vector<Step>& steps) {
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
    Step step;
    step.gemm = static_cast<int>(schedule_.gemms.size());
    schedule_.gemms.push_back(std::move(blas->gemm));
    steps.push_back(std::move(step));
    if (blas->epilogue) emit(std::move(*blas->epilogue), steps);
    return true;
  }

  void copy_to(const Value* value, const Storage& target, std::vector<Step>& steps) {
    Kernel kernel = lower_copy(value, target, lowering_inputs());
    complete_concats(steps);
    emit(std::move(kernel), steps);
  }

  // Writes the operands of placed concatenations that no kernel stores in place, before the first reader.
  void complete_concats(std::vector<Step>& steps) {
    std::vector<const Value*> touched = std::move(touched_);
    touched_.clear();
    for (const Value* value : touched) complete_concat(value, steps);
  }

  void complete_concat(const Value* value, std::vector<Step>& steps) {
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

  void assign_storage(const Value* value) {
    if (storage_.count(value)) return;
    const auto placed = grouping_->placed_in.find(value);
    if (placed == grouping_->placed_in.end()) {
      storage_[value] = fresh(*value, BufferKind::arena, label(*value), value->layout);
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

  // Stores each target's value where the caller wants it: in place if a kernel of this graph computes it, else by a copy.
  void lower_graph(const Graph& graph, const std::vector<Storage>& targets, std::vector<Step>& steps) {
    const Grouping grouping = group_nodes(graph, {options_.fuse});
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
      for (const Value* output : group.outputs) assign_storage(output);
      touched_.clear();
      Kernel kernel = lower_group(group, lowering_inputs());
      complete_concats(steps);
      report(group, kernel);
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

  static bool by_kernel(const Value* value, const Grouping& grouping) {
    const Node* node = value->producer;
    return node && node->op->kind != OpKind::control && node->op->kind != OpKind::host && !grouping.placed_concats.count(node);
  }

  // State that the entry leaves as it is.
  bool is_in_place(const Value* value, const Storage& target) const {
    const auto known = storage_.find(value);
    return known != storage_.end() && known->second.buffer == target.buffer && known->second.offset == target.offset;
  }

  // The last value that a loop carries lies in one of its two slots; what the trips collect may lie anywhere.
  static bool is_carried_result(const Value* value) {
    return value->producer && value->producer->op->kind == OpKind::control &&
           value->index < value->producer->get_or<std::int64_t>("carried", 0);
  }

  // State is updated in place where no kernel reads the old value later. Which updates that excludes is known only of the
  // finished steps, so the entry is lowered again with copies for those.
  void lower_entry(const Graph& graph) {
    const Schedule before = schedule_;
    const auto constants = constants_;
    const std::size_t reported = report_ ? report_->size() : 0;
    for (std::set<int> copied;;) {
      EntrySchedule entry = try_entry(graph, copied);
      const std::set<int> unsafe = overwritten_too_early(schedule_, entry.steps);
      const std::size_t known = copied.size();
      copied.insert(unsafe.begin(), unsafe.end());
      if (copied.size() == known) {
        OCLC_CHECK(unsafe.empty(), "state is overwritten before its last reader");
        unite_state();
        schedule_.entries.push_back(std::move(entry));
        return;
      }
      schedule_ = before;
      constants_ = constants;
      completed_.clear();
      if (report_) report_->resize(reported);
    }
  }

  // New values take the place of the old ones.
  void unite_state() {
    const auto resolve = [&](int& buffer) {
      const int replaced = schedule_.buffers[static_cast<std::size_t>(buffer)].replaces;
      if (replaced >= 0) buffer = replaced;
    };
    for (Kernel& kernel : schedule_.kernels) {
      for (Operand& operand : kernel.operands) resolve(operand.buffer);
    }
    for (Gemm& gemm : schedule_.gemms) {
      for (int* buffer : {&gemm.a, &gemm.b, &gemm.c}) resolve(*buffer);
    }
    for (Reading& reading : schedule_.readings) resolve(reading.buffer);
    for (HostCall& call : schedule_.hosts) {
      for (auto* list : {&call.inputs, &call.outputs})
        for (HostOperand& operand : *list) resolve(operand.buffer);
    }
    for (Buffer& buffer : schedule_.buffers) {
      if (buffer.replaces >= 0) buffer = {buffer.name, BufferKind::arena, buffer.dtype, Expr(0), {}, -1};
    }
  }

  EntrySchedule try_entry(const Graph& graph, const std::set<int>& copied) {
    storage_.clear();
    also_.clear();
    EntrySchedule entry;
    entry.name = graph.name;
    for (const auto& input : graph.inputs()) {
      if (const auto state = state_buffers_.find(input->name); state != state_buffers_.end()) {
        storage_[input.get()] = {state->second, Expr(0), strides_of(input->type.shape, {})};
        continue;
      }
      storage_[input.get()] = fresh(*input, BufferKind::input, input->name, {});
      entry.inputs.emplace_back(input->name, input->type);
      entry.input_buffers.push_back(storage_[input.get()].buffer);
    }
    // Updates that may not be made in place are collected first and copied when everything else is done.
    std::vector<Storage> targets;
    std::vector<std::pair<Storage, std::size_t>> late;
    for (const auto& [name, value] : graph.outputs()) {
      const auto state = state_buffers_.find(name);
      if (state == state_buffers_.end()) {
        targets.push_back(fresh(*value, BufferKind::output, name, {}));
        entry.outputs.emplace_back(name, value->type);
        entry.output_buffers.push_back(targets.back().buffer);
        continue;
      }
      Storage place{state->second, Expr(0), strides_of(value->type.shape, {})};
      if (copied.count(state->second)) {
        late.emplace_back(place, targets.size());
        targets.push_back(fresh(*value, BufferKind::arena, name + ".next", {}));
      } else if (storage_.count(value) && storage_.at(value).buffer == state->second) {
        targets.push_back(place);  // as it was
      } else {
        place.buffer = add_buffer(name + ".new", BufferKind::state, value->type.dtype, value->type.elements());
        schedule_.buffers.back().replaces = state->second;
        targets.push_back(place);
      }
    }
    lower_graph(graph, targets, entry.steps);
    for (const auto& [place, i] : late) {
      const Value* value = graph.outputs()[i].second;
      storage_[value] = targets[i];
      copy_to(value, place, entry.steps);
    }
    return entry;
  }

  // Where a value lies that the body of a control operator reads.
  Storage captured(const Value* value) {
    const Storage* storage = find(value);
    OCLC_CHECK(storage, "a body reads a value that is not stored");
    touched_.push_back(value);
    return *storage;
  }

  // The steps of the body follow the reading.
  void lower_bind_dims(const Node& node, std::vector<Step>& steps) {
    const Graph& body = *node.bodies.at(0);
    const Storage read = captured(node.inputs[0]);
    for (std::size_t i = 0; i < body.inputs().size(); ++i) storage_[body.inputs()[i].get()] = captured(node.inputs[i + 1]);
    complete_concats(steps);
    Step step;
    step.reading = static_cast<int>(schedule_.readings.size());
    schedule_.readings.push_back(
        {read.buffer, read.offset, node.get<std::vector<Expr>>("dims"), node.get<std::vector<Expr>>("upper"), {node.source}});
    steps.push_back(std::move(step));
    std::vector<Storage> targets;
    for (const auto& output : node.outputs) {
      assign_storage(output.get());
      targets.push_back(storage_.at(output.get()));
    }
    lower_graph(body, targets, steps);
  }

  static bool is_dense(const Storage& storage, const Shape& shape) {
    const std::vector<Expr> dense = strides_of(shape, {});
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!(shape[i] == Expr(1)) && !(storage.strides[i] == dense[i])) return false;
    }
    return true;
  }

  void lower_host(const Node& node, std::vector<Step>& steps) {
    const package::HostSettings settings = host_settings_of(node);
    HostCall call{std::string(node.op->name), settings.integers, settings.texts, {}, {}, {node.source}};
    for (const Value* input : node.inputs) {
      Storage storage = captured(input);
      complete_concats(steps);
      if (!is_dense(storage, input->type.shape)) {
        storage = fresh(*input, BufferKind::arena, label(*input) + ".dense", {});
        copy_to(input, storage, steps);
      }
      call.inputs.push_back({storage.buffer, storage.offset, input->type.shape});
    }
    for (const auto& output : node.outputs) {
      assign_storage(output.get());
      const Storage& storage = storage_.at(output.get());
      OCLC_CHECK(is_dense(storage, output->type.shape), "a result of the host lies apart");
      call.outputs.push_back({storage.buffer, storage.offset, output->type.shape});
    }
    if (report_) report_->push_back({node.source, std::string(node.op->name), "host", {}});
    Step step;
    step.host = static_cast<int>(schedule_.hosts.size());
    schedule_.hosts.push_back(std::move(call));
    steps.push_back(std::move(step));
  }

  // Carried values live in two slots, read from slot counter % 2 and written to the other, so that no trip copies. Where a
  // condition ends the loop the number of trips is not known: each is read from the first slot, and copied there.
  void lower_loop(const Node& node, std::vector<Step>& steps) {
    const Graph& body = *node.bodies.at(0);
    const auto carried = static_cast<std::size_t>(node.get<std::int64_t>("carried"));
    const Expr trip = node.get<std::vector<Expr>>("trip").at(0);
    const std::string& counter_name = node.get<std::string>("counter");
    const Expr counter = Expr::symbol(counter_name, 0);
    const bool conditional = node.get_or<std::int64_t>("conditional", 0) != 0;
    std::vector<Storage> targets, begins;
    for (std::size_t i = 0; i < carried; ++i) {
      const Value& slot = *body.inputs()[i];
      const Expr elements = slot.type.elements();
      Storage base{add_buffer(label(*node.inputs[i]) + ".carried", BufferKind::arena, slot.type.dtype, elements * Expr(2)),
                   Expr(0), strides_of(slot.type.shape, {})};
      copy_to(node.inputs[i], base, steps);
      Storage read = base, write = base, last = base;
      if (conditional) {
        write.offset = elements;
      } else {
        read.offset = floor_mod(counter, Expr(2)) * elements;
        write.offset = floor_mod(counter + 1, Expr(2)) * elements;
        last.offset = floor_mod(trip, Expr(2)) * elements;
      }
      begins.push_back(read);
      storage_[&slot] = read;
      targets.push_back(write);
      storage_[node.output(i)] = last;
    }
    for (std::size_t i = carried; i < node.inputs.size(); ++i) storage_[body.inputs()[i].get()] = captured(node.inputs[i]);
    complete_concats(steps);
    for (std::size_t i = carried; i < node.outputs.size(); ++i) {
      assign_storage(node.output(i));
      Storage piece = storage_.at(node.output(i));
      piece.offset += counter * piece.strides[0];
      piece.strides.erase(piece.strides.begin());
      targets.push_back(piece);
    }
    Step loop;
    loop.trip = trip;
    loop.counter = counter_name;
    if (conditional) {
      loop.condition = counter_name + "_goes_on";
      Step reading;
      reading.reading = static_cast<int>(schedule_.readings.size());
      schedule_.readings.push_back({begins[0].buffer, begins[0].offset, {Expr::symbol(loop.condition, 0, 1)}, {Expr(1)}, {}});
      loop.body.push_back(std::move(reading));
    }
    lower_graph(body, targets, loop.body);
    if (conditional) {
      for (std::size_t i = 0; i < carried; ++i) {
        storage_[body.outputs()[i].second] = targets[i];
        copy_to(body.outputs()[i].second, begins[i], loop.body);
      }
    }
    steps.push_back(std::move(loop));
  }

  void report(const Group& group, const Kernel& kernel) {
    if (!report_) return;
    for (const Node* node : group.nodes) {
      std::string fate = node == group.nodes.front() ? "kernel " + kernel.name : "fused into " + kernel.name;
      if (const auto reason = node->get_or<std::string>("strategy_reason", ""); !reason.empty()) fate += ": " + reason;
      const auto why = grouping_->why_not.find(node);
      report_->push_back({node->source, std::string(node->op->name), std::move(fate),
                          why == grouping_->why_not.end() ? std::string() : why->second});
    }
  }

  const Module& module_;
  const LowerOptions options_;
  std::vector<NodeFate>* report_;
  Schedule schedule_;
  const Grouping* grouping_ = nullptr;
  std::unordered_map<const Value*, Storage> storage_;
  std::map<std::pair<const std::byte*, std::vector<int>>, int> constants_;
  std::map<std::string, int> state_buffers_;
  std::multimap<const Value*, Storage> also_;
  std::vector<const Value*> touched_;
  std::unordered_set<const Node*> completed_;
};

}  // namespace

Schedule lower(const Module& module, const LowerOptions& options, std::vector<NodeFate>* report) {
  return ModuleLowering(module, options, report).run();
}

}  // namespace oclc
