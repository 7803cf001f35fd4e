// Nodes of operators that the user brings.
#include <oclc_onnx.pb.h>

#include "frontends/onnx/lowering.h"
#include "frontends/op/custom_op.h"

namespace oclc::onnx {
namespace {

// The attributes that the node has, of the types that the operator declares.
Attributes given_attributes(OpContext& c, const custom::CustomOp& op) {
  Attributes given;
  for (const custom::AttributeRow& row : op.attributes) {
    if (!c.has(row.name)) continue;
    if (std::holds_alternative<std::int64_t>(row.value)) {
      given[row.name] = c.integer(row.name);
    } else if (std::holds_alternative<double>(row.value)) {
      given[row.name] = c.real(row.name);
    } else if (std::holds_alternative<std::string>(row.value)) {
      given[row.name] = c.text(row.name);
    } else if (std::holds_alternative<Ints>(row.value)) {
      given[row.name] = c.integers(row.name);
    } else {
      given[row.name] = c.reals(row.name);
    }
  }
  return given;
}

}  // namespace

void Lowering::custom_op(const custom::CustomOp& op, const oclc_onnx::NodeProto& node, std::vector<Value*> inputs,
                         const std::string& label, std::int64_t opset, Scope& scope) {
  static constexpr OpRow kRow{"", 1, 0, kAnyNumber};
  builder_->set_source(label);
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  OpContext context(*this, *builder_, kRow, node, inputs, label, opset);
  context.require_tensors();
  context.require_numbers();
  Outputs outputs;
  try {
    outputs = custom::build(*builder_, op, inputs, given_attributes(context, op));
  } catch (const CompileError& error) {
    if (error.parts().stage == "import") throw;
    context.fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
  }
  bind(node, outputs, context, scope);
  context.refuse_unread();
}

}  // namespace oclc::onnx
