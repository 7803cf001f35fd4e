// Names of dimensions that are expressions, as exporters write them: "2*h", "past_length + length", "(s0//2)".
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace oclc::onnx {

struct DimExpression {
  std::string text;             // as parse_expr reads it
  std::set<std::string> names;  // of the dimensions in it
};

// None if the name is just a name: "batch", "batch-size", "seq len". A minus counts between blanks alone, a division by a
// number alone.
std::optional<DimExpression> dim_expression(std::string_view name);

}  // namespace oclc::onnx
