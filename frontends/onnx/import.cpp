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

std::unique_ptr<Module> import_model(oclc_onnx::ModelProto& model, const std::optional<std::filesystem::path>& base,
                                     const ImportOptions& options) {
  ExternalFiles files(data_folder(base, options), options);
  const CheckedModel checked = check_model(model, options, files);
  TensorStore tensors(files);
  auto out = std::make_unique<Module>();
  out->name = model.graph().name();
  const auto attempt = [&](const SymbolBounds& bounds, const std::function<void(const std::string&)>& warn,
                           std::map<std::string, std::pair<std::int64_t, std::string>>& suggested) {
    const Inputs inputs(model.graph(), options, bounds);
    out->symbols = inputs.symbols();
    out->entries.clear();
    out->entries.push_back(lower_model(*model.mutable_graph(), checked, inputs, tensors, warn, suggested));
  };
  std::map<std::string, std::pair<std::int64_t, std::string>> suggested, ignored;
  try {
    attempt({}, options.warn, suggested);
  } catch (const CompileError&) {
    if (suggested.empty()) throw;
    // Shapes may fit for all sizes that stay within the tables that the model slices.
    SymbolBounds bounds;
    for (const auto& [symbol, bound] : suggested) bounds[symbol] = bound.first;
    attempt(bounds, options.warn, ignored);
    for (const auto& [symbol, bound] : suggested) {
      if (options.warn) options.warn(fmt::format("{} is limited to {}: {}", symbol, bound.first, bound.second));
    }
  }
  return out;
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
