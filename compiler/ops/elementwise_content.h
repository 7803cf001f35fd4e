// Elementwise operators on small integer tensors whose elements are known as expressions.
#pragma once
#include <optional>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

std::optional<std::vector<Expr>> elementwise_content(const Node& node);

}  // namespace oclc
