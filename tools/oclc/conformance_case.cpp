#include "tools/oclc/conformance_case.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/support/error.h"
#include "frontends/onnx/external.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/tensors.h"
#include "runtime/package/writer.h"

namespace oclc::tool {
namespace {

namespace fs = std::filesystem;

HostTensor read_tensor(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  oclc_onnx::TensorProto proto;
  if (!proto.ParseFromIstream(&in)) throw CompileError({.wanted = "a tensor", .found = file.string()});
  const ImportOptions options;
  onnx::ExternalFiles files(std::nullopt, options);
  onnx::check_tensor(proto, "tensor", options.limits, files);
  return onnx::TensorStore(files).get(proto);
}

std::vector<HostTensor> read_tensors(const fs::path& set, const std::string& kind) {
  std::vector<HostTensor> out;
  for (int i = 0; fs::exists(set / fmt::format("{}_{}.pb", kind, i)); ++i)
    out.push_back(read_tensor(set / fmt::format("{}_{}.pb", kind, i)));
  return out;
}

// The files of ONNX 1.12 hold bfloat16 numbers as their bits in 16-bit integers.
HostTensor as_type(HostTensor tensor, DType dtype) {
  if (dtype != DType::bf16 || tensor.dtype() != DType::u16) return tensor;
  auto owner = std::make_shared<HostTensor>(tensor);
  return HostTensor(DType::bf16, tensor.shape(), owner->data(), owner);
}

// Which outputs depend on random numbers: ONNX fixes their types, not their values.
std::vector<bool> random_outputs(const Graph& graph) {
  std::set<const Value*> random;
  for (const Node* node : graph.nodes()) {
    const bool draws = node->op->name == "random_bits" || std::any_of(node->inputs.begin(), node->inputs.end(),
                                                                      [&](const Value* v) { return random.count(v) != 0; });
    if (!draws) continue;
    for (const auto& output : node->outputs) random.insert(output.get());
  }
  std::vector<bool> result;
  for (const auto& [name, value] : graph.outputs()) result.push_back(random.count(value) != 0);
  return result;
}

struct ModelFacts {
  std::vector<std::string> inputs;  // without those that an initializer gives, as the files of a data set are numbered
  std::vector<int> input_types;     // ONNX element types
};

ModelFacts facts_of(const fs::path& folder) {
  std::ifstream in(folder / "model.onnx", std::ios::binary);
  oclc_onnx::ModelProto model;
  if (!model.ParseFromIstream(&in)) throw CompileError({.wanted = "an ONNX model", .found = folder.string()});
  std::set<std::string> constants;
  for (const auto& t : model.graph().initializer()) constants.insert(t.name());
  ModelFacts facts;
  for (const auto& input : model.graph().input()) {
    if (constants.count(input.name())) continue;
    facts.inputs.push_back(input.name());
    facts.input_types.push_back(input.type().tensor_type().elem_type());
  }
  return facts;
}

CaseTolerance tolerance_of(const fs::path& folder) {
  CaseTolerance tolerance;
  std::ifstream in(folder / "data.json");
  if (!in) return tolerance;
  const auto data = nlohmann::json::parse(in, nullptr, false);
  if (!data.is_object()) return tolerance;
  tolerance.rtol = data.value("rtol", tolerance.rtol);
  tolerance.atol = data.value("atol", tolerance.atol);
  return tolerance;
}

// The first difference, or empty.
std::string difference(const HostTensor& found, const HostTensor& wanted, const CaseTolerance& tolerance, bool random) {
  if (!(found.type() == wanted.type())) return fmt::format("{} instead of {}", found.type().text(), wanted.type().text());
  if (random) return {};
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    if (is_integer(wanted.dtype()) && found.int_at(i) == wanted.int_at(i)) continue;
    const double f = found.at(i), w = wanted.at(i);
    const bool same =
        f == w || (std::isnan(f) && std::isnan(w)) || std::fabs(f - w) <= tolerance.atol + tolerance.rtol * std::fabs(w);
    if (!same) return fmt::format("element {} is {} instead of {}", i, f, w);
  }
  return {};
}

oclc_tensor host_tensor(const HostTensor& tensor, std::byte* data) {
  static constexpr std::int64_t kNone = 0;
  oclc_tensor t = OCLC_INIT(oclc_tensor);
  t.dtype = static_cast<oclc_dtype>(tensor.dtype());
  t.rank = static_cast<std::uint32_t>(tensor.shape().size());
  t.shape = tensor.shape().empty() ? &kNone : tensor.shape().data();
  t.host = data;
  t.bytes = tensor.bytes();
  return t;
}

// A compiled model, and the values that it was compiled for.
struct Program {
  Compiled compiled;
  std::vector<std::byte> package;
  rt::Plan plan;
  std::map<std::string, HostTensor> given;
  std::vector<bool> random;  // outputs that depend on random numbers
};

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() && std::equal(a.data(), a.data() + a.bytes(), b.data());
}

class Case {
 public:
  Case(const fs::path& folder, const CompileOptions& options, const rt::Context& context, CaseResult& result)
      : folder_(folder), options_(options), context_(context), result_(result), facts_(facts_of(folder)) {}

  std::string run() {
    const CaseTolerance tolerance = tolerance_of(folder_);
    int sets = 0;
    for (; fs::exists(folder_ / fmt::format("test_data_set_{}", sets)); ++sets) {
      const std::string text = data_set(folder_ / fmt::format("test_data_set_{}", sets), tolerance);
      if (!text.empty()) return text;
    }
    return sets > 0 ? "" : "no data set";
  }

 private:
  std::string data_set(const fs::path& set, const CaseTolerance& tolerance) {
    std::vector<HostTensor> inputs = read_tensors(set, "input"), wanted = read_tensors(set, "output");
    if (inputs.size() > facts_.inputs.size())
      return fmt::format("{} inputs for a model that takes {}", inputs.size(), facts_.inputs.size());
    std::map<std::string, HostTensor> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = as_type(inputs[i], onnx::element_type(facts_.input_types[i], "input"));
      values[facts_.inputs[i]] = inputs[i];
    }
    const bool fits = program_ && std::all_of(program_->given.begin(), program_->given.end(), [&](const auto& given) {
                        return values.count(given.first) && same_bytes(values.at(given.first), given.second);
                      });
    if (!fits) compile_for(values);
    return execute(values, wanted, tolerance);
  }

  void compile_for(const std::map<std::string, HostTensor>& values) {
    program_ = std::make_unique<Program>();
    ImportOptions import;
    import.input_value = [&](const std::string& name)->std::optional<HostTensor> { const auto at = values.find(name);
    if (at == values.end()) return std::nullopt;
    program_->given.emplace(name, at->second);
    return at->second;
  };
  std::shared_ptr<Module> module = import_onnx(folder_ / "model.onnx", import);
  program_->random = random_outputs(*module->entries.at(0));
  program_->compiled = compile(std::move(module), options_);
  const BuiltPlan& built = program_->compiled.plan;
  program_->package = package::package_to_memory(std::as_bytes(std::span(built.metadata)), built.constants);
  program_->plan = rt::Plan::load(program_->package.data(), program_->package.size());
  result_.kernels = static_cast<int>(built.files.size());
  result_.launches = built.launches;
  result_.given.clear();
  for (const auto& [name, value] : program_->given) result_.given.push_back(name);
}

std::string
execute(const std::map<std::string, HostTensor>& values, const std::vector<HostTensor>& wanted,
        const CaseTolerance& tolerance) {
  rt::Session session(program_->plan, context_);
  const EntrySchedule& entry = program_->compiled.schedule.entries.at(0);
  for (const auto& [name, type] : entry.inputs) {
    const auto at = values.find(name);
    if (at == values.end()) return fmt::format("no data for input '{}'", name);
    // Inputs are only read.
    session.set_input(0, name, host_tensor(at->second, const_cast<std::byte*>(at->second.data())));
  }
  std::vector<HostTensor> outputs;
  outputs.reserve(entry.outputs.size());
  for (const auto& [name, type] : entry.outputs) {
    HostTensor& y = outputs.emplace_back(type.dtype, session.shape(0, OCLC_OUTPUT, name));
    session.set_output(0, name, host_tensor(y, y.mutable_data()));
  }
  session.run(0);
  if (outputs.size() != wanted.size()) return fmt::format("{} outputs instead of {}", outputs.size(), wanted.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string text = difference(outputs[i], as_type(wanted[i], outputs[i].dtype()), tolerance, program_->random[i]);
    if (!text.empty()) return fmt::format("output '{}': {}", entry.outputs[i].first, text);
  }
  return {};
}

const fs::path& folder_;
const CompileOptions& options_;
const rt::Context& context_;
CaseResult& result_;
ModelFacts facts_;
std::unique_ptr<Program> program_;
};  // namespace

}  // namespace oclc::tool

std::vector<fs::path> find_cases(const fs::path& root) {
  std::vector<fs::path> cases;
  if (fs::exists(root / "model.onnx")) return {root};
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_directory() && fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::string case_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path own = whole.has_filename() ? whole : whole.parent_path();
  return (own.parent_path().filename() / own.filename()).string();
}

CaseResult run_case(const fs::path& folder, const CompileOptions& options, const rt::Context& context) {
  CaseResult result;
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (const OpUse& use : list_ops(folder / "model.onnx")) {
      result.ops.push_back(use.domain.empty() ? use.op : use.domain + "." + use.op);
    }
    result.message = Case(folder, options, context, result).run();
    result.passed = result.message.empty();
  } catch (const std::exception& error) {
    result.message = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace oclc::tool
