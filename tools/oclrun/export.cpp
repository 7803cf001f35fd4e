#include "tools/oclrun/export.h"

#include "tools/io/onnx_weights.h"

namespace oclc::oclrun {

std::string export_onnx(rt::Session& session, const rt::Plan& plan, const std::string& model, const std::string& path) {
  const auto variables = plan.variables();
  const auto find = [&](const std::string& name) -> std::optional<io::Tensor> {
    for (std::uint32_t i = 0; i < variables.size(); ++i) {
      if (name != variables[i].name) continue;
      io::Tensor t;
      t.name = name;
      t.dtype = variables[i].dtype;
      t.shape = plan.variable_shape(i);
      t.data.resize(io::tensor_bytes("variable '" + name + "'", t.dtype, t.shape));
      session.read_variable(name, t.data.data(), t.data.size());
      return t;
    }
    return std::nullopt;
  };
  const io::ReplacedWeights done = io::replace_onnx_weights(model, path, find);
  return path + ": " + std::to_string(done.replaced) + " trained weights, " + std::to_string(done.kept.size()) +
         " initializers as they were";
}

}  // namespace oclc::oclrun
