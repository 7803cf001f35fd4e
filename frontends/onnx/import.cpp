#include "frontends/onnx/import.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <cctype>

#include "compiler/ops/assumptions.h"
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

// What a reading takes for given.
struct Attempt {
  std::int64_t least = 0;  // the smallest size that is open
  bool bounded = false;    // sizes stay within the tables that the model slices
  bool assumes = false;    // dimensions are equal where an operator needs it
};

// The first that fits is the one: what comes later promises less.
constexpr Attempt kAttempts[] = {
    {0}, {1}, {0, true}, {1, true}, {0, true, true}, {1, true, true},
};

// One reading of the graph with upper bounds of symbols. Warnings are kept back, as another reading may follow.
struct Reading {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Suggestions suggested;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> names;  // of the symbols: what the model calls them

  void run(oclc_onnx::ModelProto& model, const CheckedModel& checked, TensorStore& tensors, ImportOptions options,
           const SymbolBounds& bounds, const Attempt& how) {
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    const Inputs inputs(model.graph(), options, bounds, how.least);
    module->name = model.graph().name();
    module->symbols = inputs.symbols();
    names = inputs.names();
    Assumptions assumptions(module->symbols);
    module->entries.push_back(lower_model(*model.mutable_graph(), checked, inputs, tensors, options,
                                          options.training ? &module->states : nullptr, suggested,
                                          how.assumes ? &assumptions : nullptr));
    module->assumptions = assumptions.list();
    for (const Assumption& a : module->assumptions)
      warnings.push_back(fmt::format("node '{}': {} and {} are taken for equal, and compared when the plan runs",
                                     printable(a.node), a.left.text(), a.right.text()));
  }
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// What cannot be read while a size is open may be read when it is given.
[[noreturn]] void fail_with_sizes(const CompileError& error, const std::map<std::string, std::string>& names) {
  CompileError::Parts parts = error.parts();
  std::string options;
  for (const auto& [symbol, name] : names) {
    if (has_word(parts.wanted, symbol) || has_word(parts.found, symbol))
      options += fmt::format("{}--dim {}=..", options.empty() ? "" : " ",
                             name == symbol ? name : fmt::format("'{}'", printable(name)));
  }
  if (parts.stage != "import" || options.empty() || parts.exit_code == ExitCode::usage) throw error;
  const bool told = parts.advice.find("--dim") != std::string::npos;
  parts.advice =
      told ? parts.advice : fmt::format("{}{}give the sizes: {}", parts.advice, parts.advice.empty() ? "" : "; ", options);
  parts.exit_code = ExitCode::unsupported;
  throw CompileError(std::move(parts));
}

Reading read_somehow(oclc_onnx::ModelProto& model, const CheckedModel& checked, TensorStore& tensors,
                     const ImportOptions& options) {
  SymbolBounds bounds;
  std::vector<std::string> limits;
  for (const Attempt& how : kAttempts) {
    if (how.least == 0 && options.training) continue;  // a step has samples
    if (how.bounded && !how.assumes && bounds.empty()) continue;
    Reading reading;
    if (how.bounded) reading.warnings = limits;
    try {
      reading.run(model, checked, tensors, options, how.bounded ? bounds : SymbolBounds(), how);
      return reading;
    } catch (const CompileError& error) {
      if (reading.names.empty()) throw;  // no size is open
      if (&how == std::end(kAttempts) - 1) fail_with_sizes(error, reading.names);
    }
    for (const auto& [symbol, bound] : reading.suggested) {
      if (how.bounded || !bounds.emplace(symbol, bound.first).second) continue;
      limits.push_back(fmt::format("{} is limited to {}: {}", symbol, bound.first, bound.second));
    }
  }
  OCLC_CHECK(false, "the last attempt fails or gives a reading");
  return {};
}

std::unique_ptr<Module> import_model(oclc_onnx::ModelProto& model, const std::optional<std::filesystem::path>& base,
                                     const ImportOptions& options) {
  ExternalFiles files(data_folder(base, options), options);
  const CheckedModel checked = check_model(model, options, files);
  files.open_all();
  TensorStore tensors(files);
  Reading reading = read_somehow(model, checked, tensors, options);
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
