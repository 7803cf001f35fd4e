#include "compiler/training/model_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/ir/copy.h"
#include "compiler/ir/op_def.h"
#include "compiler/training/init_entry.h"

namespace oclc {
namespace {

// A flat tensor begins with the parts whose sizes keep the next one aligned to this many elements.
constexpr std::int64_t kAlignment = 16;

Value* piece(Builder& b, Value* flat, const StatePart& part) {
  const Shape shape(part.shape.begin(), part.shape.end());
  return b.reshape(b.slice_axis(flat, 0, Expr(part.offset), product(shape)), shape);
}

// Batch statistics and random masks would have to leave the body.
void check_bodies(const Node& node) {
  for (const auto& body : node.bodies) {
    for (const Node* inner : body->nodes()) {
      if (inner->op->name == "batch_norm" || inner->op->name == "dropout")
        refuse_training("no batch normalisation or dropout inside of control flow", fmt::format("node '{}'", inner->source));
      check_bodies(*inner);
    }
  }
}

}  // namespace

void refuse_training(std::string wanted, std::string found, ExitCode code) {
  throw CompileError({.stage = "training", .wanted = std::move(wanted), .found = std::move(found), .exit_code = code});
}

FlatState::FlatState(std::string name, std::vector<const StateVariable*> members) {
  std::stable_partition(members.begin(), members.end(),
                        [](const StateVariable* m) { return m->initial.elements() % kAlignment == 0; });
  std::int64_t total = 0;
  for (const StateVariable* m : members) {
    if (m->type.dtype != kTrainedType) refuse_training("parameters of f32", fmt::format("'{}' of {}", m->name, m->type.text()));
    state.parts.push_back({m->name, total, m->initial.shape()});
    total += m->initial.elements();
  }
  state.name = std::move(name);
  state.type = {kTrainedType, {Expr(total)}};
  state.initial = HostTensor(kTrainedType, {total});
  std::byte* to = state.initial.mutable_data();
  for (const StateVariable* m : members) {
    std::memcpy(to, m->initial.data(), m->initial.bytes());
    to += m->initial.bytes();
  }
}

Value* joined(Builder& b, const std::vector<Value*>& parts) {
  std::vector<Value*> flat;
  for (Value* v : parts) flat.push_back(b.reshape(v, {v->type.elements()}));
  return flat.size() == 1 ? flat[0] : b.concat(flat, 0);
}

ModelCopy::ModelCopy(const ModelSource& source, bool training) {
  Builder b(*graph);
  parameters = graph->add_input(source.parameters->state.name, source.parameters->state.type);
  if (!source.statistics->empty()) statistics = graph->add_input(source.statistics->state.name, source.statistics->state.type);
  std::unordered_map<std::string, Value*> made;
  for (const StatePart& part : source.parameters->state.parts) {
    b.set_source(part.name);
    trained.push_back(made[part.name] = piece(b, parameters, part));
  }
  for (const StatePart& part : source.statistics->state.parts) {
    b.set_source(part.name);
    made[part.name] = piece(b, statistics, part);
  }
  for (const StateVariable* state : source.frozen) made[state->name] = b.constant(state->initial, state->name);
  for (const auto& input : source.graph->inputs()) {
    const auto state = made.find(input->name);
    values[input.get()] = state == made.end() ? graph->add_input(input->name, input->type) : state->second;
  }
  for (const Node* node : source.graph->nodes()) add_node(*node, training);
}

void ModelCopy::add_node(const Node& node, bool training) {
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs) inputs.push_back(input ? values.at(input) : nullptr);
  auto attributes = node.attributes;
  // With frozen statistics it normalises by them, in training too.
  if (node.op->name == "batch_norm") attributes["training"] = std::int64_t{training && !constant_of(inputs[3]) ? 1 : 0};
  if (node.op->name == "dropout" && training) {
    if (!random_step) {
      random_step = graph->add_input(std::string(kRandomStep), {DType::u32, {}});
      random_seed = graph->add_input(std::string(kRandomSeed), {DType::u32, {}});
    }
    inputs.insert(inputs.end(), {random_step, random_seed});
    attributes["layer"] = dropouts++;
  }
  if (training) check_bodies(node);
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies) bodies.push_back(copy_graph(*body));
  Node* copied = graph->add(*node.op, std::move(inputs), std::move(attributes), node.source, nullptr, std::move(bodies));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    copied->output(i)->name = node.output(i)->name;
    values[node.output(i)] = copied->output(i);
  }
}

}  // namespace oclc
