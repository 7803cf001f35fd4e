#include "tools/oclc/commands/conformance_case.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/ir/text.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/model/external.h"
#include "frontends/onnx/model/tensors.h"
#include "runtime/package/writer.h"
#include "tools/oclc/report.h"

namespace oclc::tool {
namespace {

namespace fs = std::filesystem;

HostTensor tensor_of(oclc_onnx::TensorProto& proto) {
  const ImportOptions options;
  onnx::ExternalFiles files(std::nullopt, options);
  onnx::check_tensor(proto, "tensor", options.limits, files);
  return onnx::TensorStore(files).get(proto);
}

// An input or output of a case: a tensor, a sequence of them, or an optional without content.
struct Given {
  enum class Form { tensor, sequence, none } form = Form::tensor;
  std::vector<HostTensor> tensors;
};

enum class Message { tensor, sequence, optional };

// TensorProto, or SequenceProto and OptionalProto of onnx-data.proto: both hold tensors in field 3; an optional holds a
// sequence in field 5.
Given read_message(const std::string& bytes, Message message, const std::string& file) {
  const auto damaged = [&]() { return CompileError({.wanted = "a tensor, a sequence or an optional", .found = file}); };
  Given given;
  if (message == Message::tensor) {
    oclc_onnx::TensorProto proto;
    if (!proto.ParseFromString(bytes)) throw damaged();
    given.tensors.push_back(tensor_of(proto));
    return given;
  }
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  given.form = message == Message::sequence ? Given::Form::sequence : Given::Form::none;
  while (const std::uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool tensor = field == 3, sequence = field == 5 && message == Message::optional;
    if (!tensor && !sequence) {
      if (!WireFormatLite::SkipField(&in, tag)) throw damaged();
      continue;
    }
    std::uint32_t length = 0;
    std::string part;
    if (!in.ReadVarint32(&length) || !in.ReadString(&part, static_cast<int>(length))) throw damaged();
    if (sequence) return read_message(part, Message::sequence, file);
    if (message == Message::optional) return read_message(part, Message::tensor, file);
    given.tensors.push_back(read_message(part, Message::tensor, file).tensors.at(0));
  }
  return given;
}

std::vector<Given> read_all(const fs::path& set, const std::string& kind, const std::vector<Message>& messages) {
  std::vector<Given> out;
  for (std::size_t i = 0; fs::exists(set / fmt::format("{}_{}.pb", kind, i)); ++i) {
    const fs::path file = set / fmt::format("{}_{}.pb", kind, i);
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    out.push_back(read_message(bytes, i < messages.size() ? messages[i] : Message::tensor, file.string()));
  }
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
  std::vector<Message> input_messages, output_messages;
};

Message message_of(const oclc_onnx::TypeProto& type) {
  return type.has_optional_type() ? Message::optional : type.has_sequence_type() ? Message::sequence : Message::tensor;
}

// Of the tensors that a value of the type consists of.
int element_type_of(const oclc_onnx::TypeProto& type) {
  if (type.has_optional_type()) return element_type_of(type.optional_type().elem_type());
  if (type.has_sequence_type()) return element_type_of(type.sequence_type().elem_type());
  return type.tensor_type().elem_type();
}

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
    facts.input_types.push_back(element_type_of(input.type()));
    facts.input_messages.push_back(message_of(input.type()));
  }
  for (const auto& output : model.graph().output()) facts.output_messages.push_back(message_of(output.type()));
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
    if (wanted.dtype() == DType::string) {
      if (found.int_at(i) != wanted.int_at(i))
        return fmt::format("element {} is {} instead of {}", i, oclc::quoted(found.text_at(i)),
                           oclc::quoted(wanted.text_at(i)));
      continue;
    }
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

std::vector<const char*> pointers(const HostTensor& texts) {
  std::vector<const char*> out;
  for (std::int64_t i = 0; i < texts.elements(); ++i) out.push_back(texts.text_at(i).c_str());
  return out;
}

// A compiled model, and the values that it was compiled for.
struct Program {
  Compiled compiled;
  std::vector<std::byte> package;
  rt::Plan plan;
  std::map<std::string, HostTensor> given;
  std::set<std::string> unread;                 // inputs that no operator reads
  std::vector<bool> random;                     // outputs that depend on random numbers
  std::map<std::string, std::int64_t> lengths;  // as in ImportOptions
  std::map<std::string, std::vector<std::int64_t>> shapes;
};

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() && std::equal(a.data(), a.data() + a.bytes(), b.data());
}

class Case {
 public:
  Case(const fs::path& folder, const CompileOptions& options, const rt::Context& context,
       const std::shared_ptr<const CustomOps>& ops, CaseResult& result)
      : folder_(folder), options_(options), context_(context), ops_(ops), result_(result), facts_(facts_of(folder)) {}

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
    const std::vector<Given> inputs = read_all(set, "input", facts_.input_messages);
    std::vector<HostTensor> wanted;
    for (const Given& output : read_all(set, "output", facts_.output_messages))
      wanted.insert(wanted.end(), output.tensors.begin(), output.tensors.end());
    if (inputs.size() > facts_.inputs.size())
      return fmt::format("{} inputs for a model that takes {}", inputs.size(), facts_.inputs.size());
    std::map<std::string, HostTensor> values;
    std::map<std::string, std::int64_t> lengths;
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = facts_.inputs[i];
      const DType dtype = onnx::element_type(facts_.input_types[i], "input");
      const auto count = static_cast<std::int64_t>(inputs[i].tensors.size());
      if (inputs[i].form != Given::Form::tensor) lengths[name] = inputs[i].form == Given::Form::none ? -1 : count;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::string own = inputs[i].form == Given::Form::tensor ? name : fmt::format("{}.{}", name, k);
        values[own] = as_type(inputs[i].tensors[static_cast<std::size_t>(k)], dtype);
        if (inputs[i].form == Given::Form::sequence) shapes[own] = values[own].shape();
      }
    }
    const bool fits = program_ && program_->lengths == lengths && program_->shapes == shapes &&
                      std::all_of(program_->given.begin(), program_->given.end(), [&](const auto& given) {
                        return values.count(given.first) && same_bytes(values.at(given.first), given.second);
                      });
    if (!fits) {
      program_ = std::make_unique<Program>();
      program_->lengths = std::move(lengths);
      program_->shapes = std::move(shapes);
      try {
        compile_for(values);
      } catch (const CompileError&) {
        // Dimensions that the model leaves open, and trip counts, may have to be known: then all are those of the data.
        for (const auto& [name, value] : values) program_->shapes[name] = value.shape();
        program_->given.clear();
        compile_for(values, true);
      }
    }
    return execute(values, wanted, tolerance);
  }

  void compile_for(const std::map<std::string, HostTensor>& values, bool ask_for_trips = false) {
    ImportOptions reading;
    reading.ask_for_trips = ask_for_trips;
    reading.ops = ops_;
    reading.lengths = program_->lengths;
    reading.shapes = program_->shapes;
    reading.input_value = [&](const std::string& name) -> std::optional<HostTensor> {
      const auto at = values.find(name);
      if (at == values.end()) return std::nullopt;
      program_->given.emplace(name, at->second);
      return at->second;
    };
    std::shared_ptr<Module> module = import_onnx(folder_ / "model.onnx", reading);
    for (const auto& input : module->entries.at(0)->inputs()) {
      if (input->users.empty() && !module->entries.at(0)->is_output(input.get())) program_->unread.insert(input->name);
    }
    program_->random = random_outputs(*module->entries.at(0));
    const std::vector<SourceNode> sources = options_.report ? source_nodes(*module) : std::vector<SourceNode>();
    program_->compiled = compile(std::move(module), options_);
    const BuiltPlan& built = program_->compiled.plan;
    program_->package = package::package_to_memory(std::as_bytes(std::span(built.metadata)), built.constants);
    program_->plan = rt::Plan::load(program_->package.data(), program_->package.size());
    result_.kernels = static_cast<int>(built.files.size());
    result_.launches = built.launches;
    result_.report.clear();
    for (const ReportRow& row : report_rows(sources, program_->compiled))
      result_.report.push_back(fmt::format("{} ({}): {}", row.node, row.operators, row.fate));
    result_.given.clear();
    for (const auto& [name, value] : program_->given) result_.given.push_back(name);
  }

  std::string execute(const std::map<std::string, HostTensor>& values, const std::vector<HostTensor>& wanted,
                      const CaseTolerance& tolerance) {
    rt::Session session(program_->plan, context_);
    const EntrySchedule& entry = program_->compiled.schedule.entries.at(0);
    std::vector<HostTensor> held;  // which the session reads when it runs
    for (const auto& [name, type] : entry.inputs) {
      const auto at = values.find(name);
      if (at == values.end()) return fmt::format("no data for input '{}'", name);
      if (type.dtype == DType::string) {
        session.set_strings(0, name, pointers(at->second), at->second.shape());
        continue;
      }
      // What only gives a type may be stored in another shape than the model says.
      const bool unread = program_->unread.count(name) != 0 && !(at->second.type() == type);
      const HostTensor& x = held.emplace_back(unread ? HostTensor(type.dtype, bind_shape(type.shape, {})) : at->second);
      // Inputs are only read.
      session.set_input(0, name, host_tensor(x, const_cast<std::byte*>(x.data())));
    }
    std::vector<std::vector<std::byte>> rooms;
    const std::vector<oclc_binding_info> infos = program_->plan.outputs(0);
    for (const auto& [name, type] : entry.outputs) {
      if (infos[rooms.size()].open) {
        rooms.emplace_back();
        continue;
      }
      std::vector<std::byte>& room = rooms.emplace_back(std::max<std::uint64_t>(session.bytes(0, OCLC_OUTPUT, name), 1));
      oclc_tensor tensor = OCLC_INIT(oclc_tensor);
      tensor.dtype = static_cast<oclc_dtype>(type.dtype);
      tensor.host = room.data();
      tensor.bytes = room.size();
      session.set_output(0, name, tensor);
    }
    session.run(0);
    std::vector<HostTensor> outputs;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      const auto& [name, type] = entry.outputs[i];
      HostTensor& y = outputs.emplace_back(type.dtype, session.shape(0, OCLC_OUTPUT, name));
      if (infos[i].open) {
        rooms[i].resize(session.bytes(0, OCLC_OUTPUT, name));
        session.read_output(0, name, rooms[i].data(), rooms[i].size());
      }
      if (type.dtype == DType::string) {
        const auto* texts = reinterpret_cast<const char* const*>(rooms[i].data());
        for (std::int64_t k = 0; k < y.elements(); ++k) y.set_text(k, texts[k]);
        continue;
      }
      std::copy_n(rooms[i].begin(), y.bytes(), y.mutable_data());
    }
    if (outputs.size() != wanted.size()) return fmt::format("{} outputs instead of {}", outputs.size(), wanted.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CaseTolerance own = tolerance;
      // As ONNX's own runner has it since its files hold such numbers as what they are.
      if (wanted[i].dtype() == DType::bf16) own.rtol = std::max(own.rtol, 0x1p-6);
      const std::string text = difference(outputs[i], as_type(wanted[i], outputs[i].dtype()), own, program_->random[i]);
      if (!text.empty()) return fmt::format("output '{}': {}", entry.outputs[i].first, text);
    }
    return {};
  }

  const fs::path& folder_;
  const CompileOptions& options_;
  const rt::Context& context_;
  const std::shared_ptr<const CustomOps>& ops_;
  CaseResult& result_;
  ModelFacts facts_;
  std::unique_ptr<Program> program_;
};  // namespace

}  // namespace

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

CaseResult run_case(const fs::path& folder, const CompileOptions& options, const rt::Context& context,
                    const std::shared_ptr<const CustomOps>& ops) {
  CaseResult result;
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (const OpUse& use : list_ops(folder / "model.onnx")) {
      result.ops.push_back(use.domain.empty() ? use.op : use.domain + "." + use.op);
    }
    result.message = Case(folder, options, context, ops, result).run();
    result.passed = result.message.empty();
  } catch (const std::exception& error) {
    result.message = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace oclc::tool
