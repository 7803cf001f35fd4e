// A graph of core operators as an ONNX file, for viewers.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace oclc::tool {

// The bytes of a ModelProto: every node in the domain "oclc" under its core name, attributes as ONNX has them (expressions as
// text), symbolic dimensions as parameters. Constants of at most 1024 elements are initializers; larger ones are inputs, so
// that the file stays small: it shows what the passes made of the model and cannot be run.
std::string graph_as_onnx(const Graph& graph);

}  // namespace oclc::tool
