// What an ONNX file says of its model beside the graph.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc_onnx {
class ModelProto;
}

namespace oclc {
struct ImportLimits;
}

namespace oclc::onnx {

// Its metadata_props under their own names, and what its fields hold as onnx.producer ("pytorch 2.1.0"), onnx.domain,
// onnx.version and onnx.doc, where they hold something. `warn` is told of what no plan can keep and that is left out: a second
// property of one name, one without a name, texts beyond the limits, and texts with a NUL.
std::vector<Property> metadata_of(const oclc_onnx::ModelProto& model, const ImportLimits& limits,
                                  const std::function<void(const std::string&)>& warn);

}  // namespace oclc::onnx
