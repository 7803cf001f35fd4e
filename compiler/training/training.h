// Makes training entries of an inference graph: loss, gradients and optimizer in one graph over the module's state.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ops/builder.h"
#include "compiler/training/input_limit.h"

namespace oclc {

// "NAME[,KEY=VALUE...]" as on the command line.
struct NamedNumbers {
  std::string name;
  std::map<std::string, double, std::less<>> numbers;
  // The number, or `otherwise` if it was not given.
  double get(std::string_view key, double otherwise) const;
};

// A loss: what it is called, the numbers it takes, and the scalar it adds to a graph. The formulas stand in loss.cpp.
struct LossRow {
  std::string_view name;
  std::vector<std::string_view> numbers;
  bool labels_are_classes = false;  // i64 class numbers without the class axis; else a tensor like the prediction
  Value* (*build)(Builder& b, Value* prediction, Value* target, const NamedNumbers& options);
  bool takes_labels = true;  // else the prediction is the loss, and the model's inputs hold what it needs: target is null
};
const std::vector<LossRow>& losses();

// What an optimizer's rule works with, all over one flat tensor of parameters.
struct OptimizerContext {
  Builder& b;
  Value* parameters;
  Value* gradients;
  // A hyper-parameter: scalar state with the given number, or `otherwise`, as initial value. Run time may change it.
  std::function<Value*(std::string_view name, double otherwise)> number;
  // A number that shapes the graph and cannot change later.
  std::function<double(std::string_view name, double otherwise)> fixed;
  // Old value of a state tensor like the parameters, initially zero.
  std::function<Value*(std::string_view name)> moment;
  // Old value of a scalar state.
  std::function<Value*(std::string_view name, double initial)> scalar;
  // New value of a moment or scalar.
  std::function<void(std::string_view name, Value* value)> update;
};

// An optimizer: the new parameters from the old ones and the gradients. The rules stand in optimizer.cpp.
struct OptimizerRow {
  std::string_view name;
  std::vector<std::string_view> numbers;
  Value* (*build)(OptimizerContext& c);
};
const std::vector<OptimizerRow>& optimizers();

// What training entries store activations and their gradients as. f16 takes loss scaling: see loss_scale.h.
struct MixedRow {
  std::string_view name;
  std::vector<std::string_view> numbers;
  DType storage = DType::f32;
  bool scales_loss = false;
};
const std::vector<MixedRow>& mixed_types();

// CompileError (usage) naming the known ones if the name or a key is unknown or a value is no number.
NamedNumbers parse_loss(std::string_view text);
NamedNumbers parse_optimizer(std::string_view text);
NamedNumbers parse_mixed(std::string_view text);

struct TrainingOptions {
  NamedNumbers loss, optimizer;
  std::string prediction;           // the output that the loss reads; empty: the first
  std::vector<std::string> frozen;  // parameters and statistics whose names begin so keep their values, as constants
  std::uint32_t seed = 0;           // initial value of "random.seed"
  bool accumulate = false;          // add the entry accumulate_step
  bool init = false;                // add the entry init
  NamedNumbers mixed{};             // of mixed_types(); no name: all in single precision
  std::function<void(const std::string&)> warn{};  // told what is likely a mistake; may be empty
};

// The module's only entry, which has its parameters as state variables (see ImportOptions::training), becomes
//   predict     as it was, over the shared state
//   train_step  the entry's inputs and, if the loss takes them, "labels"; result "loss"; updates parameters, statistics and the
//   optimizer's state accumulate_step  on demand: the same inputs and result; adds the gradients to the state "gradients" and 1
//   to "gradients.count".
//               train_step then descends along the mean of these and its own, and clears them
//   init        on demand: a fresh start, see init_entry.h
//   eval_step   the same inputs; result "loss", without updates, and "correct" where labels are classes: rows predicted right
// State: "parameters" and "statistics" are flat and have the model's tensors as parts; the optimizer's tensors are flat like
// the parameters, with parts "<parameter>/<name>"; hyper-parameters are scalars "lr", ... Dropout draws from the scalars
// "random.seed" and "random.step", which each train_step advances; predict and eval_step leave its input as it is. Returns what
// labels may be where they are classes whose number is known. CompileError listing all operators without a gradient.
std::vector<InputLimit> build_training(Module& module, const TrainingOptions& options);

// Replaces batch normalisation and dropout by arithmetic. Nodes in training form use the statistics of the batch.
void expand_training_layers(Graph& graph);

}  // namespace oclc
