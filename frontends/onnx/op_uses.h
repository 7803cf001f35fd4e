// Which operators a graph uses and whether they can be read.
#pragma once
#include <string_view>
#include <vector>

#include "frontends/onnx/import.h"
#include "frontends/onnx/model/model.h"

namespace oclc {
class CustomOps;
}

namespace oclc::onnx {

// Sorted by domain and name; each function's nodes once, if the graph calls it. `branches`: nodes of sub-graphs too. `own`:
// null, or operators that the user brings.
std::vector<OpUse> op_uses(const CheckedModel& model, oclc_onnx::GraphProto& graph, const Opsets& opsets, bool only_needed,
                           bool branches, const CustomOps* own);

// What such an error wants.
inline constexpr std::string_view kSupportedOnly = "supported operators only";
// CompileError listing every operator that cannot be read, with counts and first nodes, unless there is none.
void require_supported(const std::vector<OpUse>& uses);

}  // namespace oclc::onnx
