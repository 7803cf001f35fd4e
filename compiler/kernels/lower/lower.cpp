#include "compiler/kernels/lower/lower.h"

#include "compiler/kernels/lower/module_lowering.h"
#include "compiler/kernels/lower/state_hazards.h"
#include "compiler/support/error.h"

namespace oclc {

Schedule ModuleLowering::run() {
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

void ModuleLowering::lower_entry(const Graph& graph) {
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

void ModuleLowering::unite_state() {
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

EntrySchedule ModuleLowering::try_entry(const Graph& graph, const std::set<int>& copied) {
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

Schedule lower(const Module& module, const LowerOptions& options, std::vector<NodeFate>* report) {
  return ModuleLowering(module, options, report).run();
}

}  // namespace oclc
