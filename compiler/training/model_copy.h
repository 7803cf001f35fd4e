// Copies of a model's graph over flat state, as inference or as training runs it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ops/builder.h"
#include "compiler/support/error.h"
#include "compiler/training/loss_scale.h"

namespace oclc {

inline constexpr DType kTrainedType = DType::f32;
inline constexpr std::string_view kRandomStep = "random.step";

[[noreturn]] void refuse_training(std::string wanted, std::string found, ExitCode code = ExitCode::unsupported);

// The model's tensors of one kind as slices of one state variable.
struct FlatState {
  FlatState(std::string name, std::vector<const StateVariable*> members);
  bool empty() const { return state.parts.empty(); }

  StateVariable state;
};

// The values as one flat tensor.
Value* joined(Builder& b, const std::vector<Value*>& parts);

// What a copy is made of.
struct ModelSource {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<FlatState> parameters, statistics;
  std::vector<const StateVariable*> frozen;  // become constants
};

struct ModelCopy {
  // In `training`, layers use the statistics of the batch and dropout draws its masks.
  ModelCopy(const ModelSource& source, bool training);

  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::unordered_map<const Value*, Value*> values;  // by those of the source
  Value* parameters = nullptr;
  Value* statistics = nullptr;
  std::vector<Value*> trained;  // in the order of the parts
  Value* random_step = nullptr;
  Value* random_seed = nullptr;
  std::int64_t dropouts = 0;
  std::optional<LossScale> loss_scale;
  Value* bad = nullptr;  // true: the step changes no state but the loss scale

 private:
  void add_node(const Node& node, bool training);
};

}  // namespace oclc
