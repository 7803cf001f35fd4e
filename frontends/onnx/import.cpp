#include "frontends/onnx/import.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include "frontends/onnx/external.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/inputs.h"
#include "frontends/onnx/load.h"
#include "frontends/onnx/lower.h"
#include "frontends/onnx/op_uses.h"
#include "frontends/onnx/tensors.h"

namespace oclc {
namespace {

using namespace onnx;  // NOLINT: this file is the importer's face

std::optional<std::filesystem::path> data_folder(const std::optional<std::filesystem::path>& base,
                                                 const ImportOptions& options) {
  return options.external_data_dir ? options.external_data_dir : base;
}

// One reading of the graph with upper bounds of symbols. Warnings are kept back, as another reading may follow.
struct Reading {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Suggestions suggested;
  std::vector<std::string> warnings;

  void run(oclc_onnx::ModelProto& model, const CheckedModel& checked, TensorStore& tensors, ImportOptions options,
           const SymbolBounds& bounds) {
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    const Inputs inputs(model.graph(), options, bounds);
    module->name = model.graph().name();
    module->symbols = inputs.symbols();
    module->entries.push_back(lower_model(*model.mutable_graph(), checked, inputs, tensors, options,
                                          options.training ? &module->states : nullptr, suggested));
  }
};

std::unique_ptr<Module> import_model(oclc_onnx::ModelProto& model, const std::optional<std::filesystem::path>& base,
                                     const ImportOptions& options) {
  ExternalFiles files(data_folder(base, options), options);
  const CheckedModel checked = check_model(model, options, files);
  files.open_all();
  TensorStore tensors(files);
  Reading reading;
  try {
    reading.run(model, checked, tensors, options, {});
  } catch (const CompileError&) {
    if (reading.suggested.empty()) throw;
    // Shapes may fit for all sizes that stay within the tables that the model slices.
    SymbolBounds bounds;
    Reading bounded;
    for (const auto& [symbol, bound] : reading.suggested) {
      bounds[symbol] = bound.first;
      bounded.warnings.push_back(fmt::format("{} is limited to {}: {}", symbol, bound.first, bound.second));
    }
    bounded.run(model, checked, tensors, options, bounds);
    reading = std::move(bounded);
  }
  for (const std::string& text : reading.warnings) {
    if (options.warn) options.warn(text);
  }
  return std::move(reading.module);
}

std::vector<OpUse> uses_of(oclc_onnx::ModelProto& model, const std::optional<std::filesystem::path>& base,
                           const ImportOptions& options) {
  ExternalFiles files(data_folder(base, options), options);
  const CheckedModel checked = check_model(model, options, files);
  return op_uses(checked, *model.mutable_graph(), checked.opsets, false, true);
}

std::unique_ptr<oclc_onnx::ModelProto> parse_file(const std::filesystem::path& file, const ImportOptions& options) {
  const std::vector<std::byte> bytes = read_model_file(file, options.limits);
  return parse_model(bytes, options);
}

}  // namespace

std::unique_ptr<Module> import_onnx(const std::filesystem::path& file, const ImportOptions& options) {
  return import_model(*parse_file(file, options), file.parent_path(), options);
}

std::unique_ptr<Module> import_onnx_bytes(std::span<const std::byte> bytes,
                                          const std::optional<std::filesystem::path>& base_dir, const ImportOptions& options) {
  return import_model(*parse_model(bytes, options), base_dir, options);
}

std::vector<OpUse> list_ops(const std::filesystem::path& file, const ImportOptions& options) {
  return uses_of(*parse_file(file, options), file.parent_path(), options);
}

std::vector<OpUse> list_ops_bytes(std::span<const std::byte> bytes, const ImportOptions& options) {
  return uses_of(*parse_model(bytes, options), std::nullopt, options);
}

}  // namespace oclc
