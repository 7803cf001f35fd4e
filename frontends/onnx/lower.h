// From a checked model to a graph of core operators.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "compiler/ops/assumptions.h"
#include "frontends/onnx/inputs.h"
#include "frontends/onnx/model/model.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::onnx {

using Suggestions = std::map<std::string, std::pair<std::int64_t, std::string>>;

// Reads the graph's nodes. `suggested` receives bounds of symbols under which slices of the model reach no further than the
// tensors they cut; a model that makes no sense otherwise may do so with them.
// `states`: null, or receives the initializers that training changes. `assumptions` receives what the model
// asks of dimensions and is not known to hold.
std::unique_ptr<Graph> lower_model(oclc_onnx::GraphProto& graph, const CheckedModel& model, const Inputs& inputs,
                                   TensorStore& tensors, const ImportOptions& options, std::vector<StateVariable>* states,
                                   Suggestions& suggested, Assumptions& assumptions);

}  // namespace oclc::onnx
