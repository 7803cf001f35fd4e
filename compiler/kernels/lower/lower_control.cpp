#include <algorithm>

#include "compiler/kernels/lower/module_lowering.h"
#include "compiler/ops/host_op.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

bool is_dense(const Storage& storage, const Shape& shape) {
  const std::vector<Expr> dense = strides_of(shape, {});
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!(shape[i] == Expr(1)) && !(storage.strides[i] == dense[i])) return false;
  }
  return true;
}

}  // namespace

Storage ModuleLowering::captured(const Value* value) {
  const Storage* storage = find(value);
  OCLC_CHECK(storage, "a body reads a value that is not stored");
  touched_.push_back(value);
  return *storage;
}

void ModuleLowering::lower_bind_dims(const Node& node, std::vector<Step>& steps) {
  const Graph& body = *node.bodies.at(0);
  const Storage read = captured(node.inputs[0]);
  for (std::size_t i = 0; i < body.inputs().size(); ++i) storage_[body.inputs()[i].get()] = captured(node.inputs[i + 1]);
  complete_concats(steps);
  steps.push_back({ReadingStep{static_cast<int>(schedule_.readings.size())}});
  schedule_.readings.push_back(
      {read.buffer, read.offset, node.get<std::vector<Expr>>("dims"), node.get<std::vector<Expr>>("upper"), {node.source}});
  std::vector<Storage> targets;
  for (const auto& output : node.outputs) {
    assign_storage(output.get());
    targets.push_back(storage_.at(output.get()));
  }
  lower_graph(body, targets, steps);
}

void ModuleLowering::lower_host(const Node& node, std::vector<Step>& steps) {
  const package::HostSettings settings = host_settings_of(node);
  HostCall call{std::string(node.op->name), settings.integers, settings.texts, {}, {}, {node.source}};
  for (const Value* input : node.inputs) {
    Storage storage = captured(input);
    complete_concats(steps);
    if (!is_dense(storage, input->type.shape)) {
      storage = fresh(*input, BufferKind::arena, label_of(*input) + ".dense", {});
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
  steps.push_back({HostStep{static_cast<int>(schedule_.hosts.size())}});
  schedule_.hosts.push_back(std::move(call));
}

void ModuleLowering::lower_loop(const Node& node, std::vector<Step>& steps) {
  const Graph& body = *node.bodies.at(0);
  const auto carried = static_cast<std::size_t>(node.get<std::int64_t>("carried"));
  const Expr trip = node.get<std::vector<Expr>>("trip").at(0);
  const std::string& counter_name = node.get<std::string>("counter");
  const Expr counter =
      Expr::symbol(counter_name, 0, trip.is_constant() ? std::max<std::int64_t>(trip.value() - 1, 0) : kUnbounded);
  const bool conditional = node.get_or<std::int64_t>("conditional", 0) != 0;
  std::vector<Storage> targets, begins;
  for (std::size_t i = 0; i < carried; ++i) {
    const Value& slot = *body.inputs()[i];
    const Expr elements = slot.type.elements();
    Storage base{add_buffer(label_of(*node.inputs[i]) + ".carried", BufferKind::arena, slot.type.dtype, elements * Expr(2)),
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
  LoopStep loop{.trip = trip, .counter = counter_name, .body = {}};
  if (conditional) {
    loop.condition = counter_name + "_goes_on";
    loop.body.push_back({ReadingStep{static_cast<int>(schedule_.readings.size())}});
    schedule_.readings.push_back({begins[0].buffer, begins[0].offset, {Expr::symbol(loop.condition, 0, 1)}, {Expr(1)}, {}});
  }
  lower_graph(body, targets, loop.body);
  if (conditional) {
    for (std::size_t i = 0; i < carried; ++i) {
      storage_[body.outputs()[i].second] = targets[i];
      copy_to(body.outputs()[i].second, begins[i], loop.body);
    }
  }
  steps.push_back({std::move(loop)});
}

}  // namespace oclc
