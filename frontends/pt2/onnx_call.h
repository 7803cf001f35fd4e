// Operators that ONNX has too are read by the rows of its front end.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontends/pt2/context.h"

namespace oclc::pt2 {

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, double, std::string, Ints, std::vector<double>, std::vector<std::string>> value;
};

// The outputs of ONNX's operator (of its newest version) on these values; null: an absent input. `outputs`: how many are
// wanted.
Outputs onnx_call(AtenContext& c, std::string_view op, std::vector<Value*> inputs, std::vector<OnnxAttribute> attributes = {},
                  int outputs = 1);

}  // namespace oclc::pt2
