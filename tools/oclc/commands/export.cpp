// oclc export-onnx: a model with the weights of a checkpoint.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "runtime/package/checkpoint.h"
#include "runtime/package/expr_code.h"
#include "tools/io/onnx_weights.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kExportHelp = R"(usage: oclc export-onnx --model FILE --state FILE -o FILE
Writes an ONNX model with the trained weights of a checkpoint.

  --model FILE             model that the training plan was compiled from
  --state FILE             checkpoint (oclrun --save-state)
  -o, --output FILE        model to write
  -h, --help
)";

namespace {

io::Tensor tensor(const package::Checkpoint& checkpoint, const plan::Variable& v) {
  io::Tensor t;
  t.name = v.name()->str();
  t.dtype = static_cast<oclc_dtype>(v.dtype());
  for (std::uint32_t d = 0; v.shape() && d < v.shape()->size(); ++d) {
    const auto& code = *v.shape()->Get(d)->code();
    t.shape.push_back(*package::evaluate({code.data(), code.size()}, {}));
  }
  const auto bytes = checkpoint.value(v);
  t.data.assign(bytes.begin(), bytes.end());
  return t;
}

}  // namespace

int export_command(int argc, char** argv, std::string& file) {
  CLI::App app;
  std::string model, state, output;
  app.add_option("--model", model);
  app.add_option("--state", state);
  app.add_option("-o,--output", output);
  if (parse(app, argc, argv, kExportHelp)) return 0;
  for (const auto& [option, value] : {std::pair("--model", &model), {"--state", &state}, {"--output", &output}}) {
    if (value->empty()) usage_error(fmt::format("wanted {} FILE", option));
  }
  file = state;
  const auto checkpoint = package::Checkpoint::open(state);
  const auto* variables = checkpoint.plan().variables();
  const auto find = [&](const std::string& name) -> std::optional<io::Tensor> {
    for (std::uint32_t i = 0; variables && i < variables->size(); ++i)
      if (variables->Get(i)->name()->str() == name) return tensor(checkpoint, *variables->Get(i));
    return std::nullopt;
  };
  file = model;
  io::ReplacedWeights done;
  try {
    done = io::replace_onnx_weights(model, output, find);
  } catch (const io::FileError& error) {
    const bool system = error.problem() == io::FileProblem::io;
    throw package::Error(system ? package::ErrorKind::io : package::ErrorKind::invalid, error.what());
  }
  print_result(fmt::format("{}: {} trained weights of step {}, {} initializers as they were\n", output, done.replaced,
                           checkpoint.steps(), done.kept.size()));
  return 0;
}

}  // namespace oclc::tool
