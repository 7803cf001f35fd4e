// Functions stored in the model.
#pragma once
#include "frontends/onnx/model/model.h"

namespace oclc {
struct ImportLimits;
}

namespace oclc::onnx {

// Counts each function's nodes after expansion. CompileError if functions call each other in a circle, or if the expanded graph
// exceeds the limit of nodes.
void count_calls(CheckedModel& model, oclc_onnx::GraphProto& graph, const ImportLimits& limits);

}  // namespace oclc::onnx
