// Activations that other operators have fused to their results.
#pragma once
#include <string_view>
#include <vector>

#include "frontends/onnx/context.h"

namespace oclc::onnx {

// y under the activation so named, with its parameters in the order of the operator's attributes; those left out are the
// operator's defaults. An empty name leaves y as it is.
Value* activated(OpContext& c, Value* y, std::string_view name, const std::vector<double>& parameters);

}  // namespace oclc::onnx
