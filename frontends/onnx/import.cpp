#include "frontends/onnx/import.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <cctype>
#include <set>

#include "compiler/ops/assumptions.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/inputs.h"
#include "frontends/onnx/lower.h"
#include "frontends/onnx/model/external.h"
#include "frontends/onnx/model/load.h"
#include "frontends/onnx/model/metadata.h"
#include "frontends/onnx/model/tensors.h"
#include "frontends/onnx/op_uses.h"

namespace oclc {
namespace {

using namespace onnx;  // NOLINT: this file is the importer's face

std::optional<std::filesystem::path> data_folder(const std::optional<std::filesystem::path>& base,
                                                 const ImportOptions& options) {
  return options.external_data_dir ? options.external_data_dir : base;
}

// What a reading takes for given. The first that fits is the one: what comes later promises less.
struct Attempt {
  bool bounded = false;  // sizes stay within the tables that the model slices
  bool assumes = false;  // dimensions are equal where an operator needs it
};

constexpr Attempt kAttempts[] = {{}, {true}, {true, true}};

// One reading of the graph with upper bounds of symbols. Warnings are kept back, as another reading may follow.
struct Reading {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Suggestions suggested;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> names;  // of the symbols: what the model calls them

  void run(oclc_onnx::ModelProto& model, const CheckedModel& checked, TensorStore& tensors, ImportOptions options,
           const SymbolBounds& bounds, const std::set<std::string>& empty, bool assumes) {
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    const Inputs inputs(model.graph(), options, bounds, empty);
    module->name = model.graph().name();
    module->symbols = inputs.symbols();
    names = inputs.names();
    Assumptions assumptions(module->symbols, assumes);
    module->entries.push_back(lower_model(*model.mutable_graph(), checked, inputs, tensors, options,
                                          options.training ? &module->states : nullptr, suggested, assumptions));
    for (const Assumption& a : assumptions.list())
      warnings.push_back(fmt::format("node '{}': {} and {} are taken for equal, and compared when the plan runs",
                                     printable(a.node), a.left.text(), a.right.text()));
    module->assumptions = assumptions.list();
    module->assumptions.insert(module->assumptions.end(), assumptions.least().begin(), assumptions.least().end());
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

// The sizes of all values and what else is reckoned from sizes.
void add_sizes(const Graph& graph, std::string& out) {
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs) out += output->type.text() + ";";
    for (const auto& [name, attribute] : node->attributes) {
      const auto* list = std::get_if<std::vector<Expr>>(&attribute);
      for (std::size_t i = 0; list && i < list->size(); ++i) out += (*list)[i].text() + ",";
    }
    for (const auto& body : node->bodies) add_sizes(*body, out);
  }
}

std::string sizes_of(const Module& module) {
  std::string out;
  for (const auto& entry : module.entries) add_sizes(*entry, out);
  for (const Assumption& a : module.assumptions) out += a.left.text() + "=" + a.right.text() + ";";
  return out;
}

// The same reading, but with open sizes that may be 0, all of them or those that may by themselves, where that changes nothing:
// not the last element of a sequence, which 0 elements do not have. `read` reads with sizes of these symbols from 0 on.
template <class Read>
Reading with_empty_sizes(Reading reading, Read&& read) {
  const std::string sizes = sizes_of(*reading.module);
  const auto same_with = [&](const std::set<std::string>& empty) -> std::optional<Reading> {
    try {
      Reading other = read(empty);
      if (sizes_of(*other.module) == sizes) return other;
    } catch (const CompileError&) {  // an operator has no result then
    }
    return std::nullopt;
  };
  std::set<std::string> all, fitting;
  for (const auto& [symbol, name] : reading.names) all.insert(symbol);
  if (all.empty()) return reading;
  if (auto other = same_with(all)) return std::move(*other);
  for (const std::string& symbol : all)
    if (all.size() > 1 && same_with({symbol})) fitting.insert(symbol);
  if (fitting.empty()) return reading;
  if (auto other = same_with(fitting)) return std::move(*other);
  return reading;
}

Reading read_somehow(oclc_onnx::ModelProto& model, const CheckedModel& checked, TensorStore& tensors,
                     const ImportOptions& options) {
  SymbolBounds bounds;
  std::vector<std::string> limits;
  for (const Attempt& how : kAttempts) {
    if (how.bounded && !how.assumes && bounds.empty()) continue;
    Reading reading;
    const auto read_into = [&](Reading& into, const std::set<std::string>& empty) {
      if (how.bounded) into.warnings = limits;
      into.run(model, checked, tensors, options, how.bounded ? bounds : SymbolBounds(), empty, how.assumes);
    };
    try {
      read_into(reading, {});
    } catch (const CompileError& error) {
      if (reading.names.empty()) throw;  // no size is open
      if (&how == std::end(kAttempts) - 1) fail_with_sizes(error, reading.names);
      for (const auto& [symbol, bound] : reading.suggested) {
        if (how.bounded || !bounds.emplace(symbol, bound.first).second) continue;
        limits.push_back(fmt::format("{} is limited to {}: {}", symbol, bound.first, bound.second));
      }
      continue;
    }
    if (options.training) return reading;  // a step has samples
    return with_empty_sizes(std::move(reading), [&](const std::set<std::string>& empty) {
      Reading other;
      read_into(other, empty);
      return other;
    });
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
  reading.module->metadata = metadata_of(model, options.limits, options.warn);
  return std::move(reading.module);
}

std::vector<OpUse> uses_of(oclc_onnx::ModelProto& model, const std::optional<std::filesystem::path>& base,
                           const ImportOptions& options) {
  ExternalFiles files(data_folder(base, options), options);
  const CheckedModel checked = check_model(model, options, files);
  return op_uses(checked, *model.mutable_graph(), checked.opsets, false, true, options.ops.get());
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
