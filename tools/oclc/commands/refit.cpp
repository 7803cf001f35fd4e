// oclc refit: new weights in a plan that was compiled with --refit.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "compiler/support/nearest.h"
#include "frontends/cpp/weight_files.h"
#include "plan_generated.h"
#include "runtime/package/expr_code.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kRefitHelp = R"(usage: oclc refit PLAN WEIGHTS -o FILE [options]
Writes a plan that was compiled with --refit with new weights of the same model; its kernels stay as they are, so nothing is compiled.

  WEIGHTS                  .safetensors, .npz, or the model again as .onnx or .pt2, of which the weights alone are taken
  -o, --output FILE        plan to write; may be PLAN itself
  --partial                weights that the file lacks keep their values, and what the plan has no weight for is left out
  --external-data-dir DIR  --allow-symlinks  --allow-newer-opset  --op FILE  --dim N=4  --shape x=1x3   how a model is read, see oclc --help
  --color auto|always|never   -v   -q   -h, --help
)";

namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw package::Error(package::ErrorKind::invalid, file + ": " + what);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown));
  return fmt::format("'{}'{}", fmt::join(names.begin(), end, "', '"), names.size() > kShown ? ", .." : "");
}

nn::NamedTensors read_weights(const std::string& file, const ReadOptions& read) {
  if (file.ends_with(".safetensors")) return nn::read_safetensors(file);
  if (file.ends_with(".npz")) return nn::read_npz(file);
  if (!file.ends_with(".onnx") && !file.ends_with(".pt2"))
    usage_error(fmt::format("wanted WEIGHTS as .safetensors, .npz, .onnx or .pt2, found '{}'", file));
  ImportOptions import = import_options(read);
  import.training = true;
  nn::NamedTensors weights;
  const std::shared_ptr<Module> module = read_model(file, import);
  for (const StateVariable& state : module->states) weights.emplace(state.name, state.initial);
  return weights;
}

std::vector<std::int64_t> shape_of(const plan::Variable& v) {
  std::vector<std::int64_t> shape;
  for (std::uint32_t d = 0; v.shape() && d < v.shape()->size(); ++d) {
    const auto& code = *v.shape()->Get(d)->code();
    shape.push_back(package::evaluate({code.data(), code.size()}, {}).value_or(-1));
  }
  return shape;
}

class Refit {
 public:
  Refit(const package::Package& package, const std::string& weights_file, const nn::NamedTensors& weights, bool partial)
      : package_(package), file_(weights_file), weights_(weights), partial_(partial) {
    for (const auto* v : *package.plan().variables()) {
      if (!v->carried_from() || v->carried_from()->size() == 0) variables_.emplace(v->name()->str(), v);
    }
  }

  // The constants of the plan with the new weights in them.
  std::vector<std::byte> constants() {
    check_names();
    const std::span<const std::byte> old = package_.constants();
    std::vector<std::byte> out(old.begin(), old.end());
    for (const auto& [name, v] : variables_) {
      const auto weight = weights_.find(name);
      if (weight == weights_.end()) continue;
      put(name, *v, weight->second, out);
    }
    return out;
  }
  std::size_t replaced() const { return replaced_; }
  const std::vector<std::string>& kept() const { return kept_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void check_names() {
    std::vector<std::string> known;
    for (const auto& [name, v] : variables_) {
      known.push_back(name);
      if (!weights_.count(name)) kept_.push_back(name);
    }
    for (const auto& [name, tensor] : weights_) {
      if (!variables_.count(name)) unknown_.push_back(name);
    }
    if (kept_.size() == variables_.size())
      refuse(file_, fmt::format("wanted weights of the plan, which has {}, found none of them", listed(known)));
    if (partial_) return;
    if (!unknown_.empty()) {
      const std::string meant = did_you_mean(unknown_.front(), known);
      refuse(file_,
             fmt::format("wanted weights that the plan can change, found {} beside them{}: what is no floating-point tensor "
                         "of rank 1 or more, or was known when the model was read, is a constant of the plan; leave it out "
                         "of the file, or give --partial",
                         listed(unknown_), meant.empty() ? "" : " (" + meant + ")"));
    }
    if (!kept_.empty())
      refuse(file_, fmt::format("wanted all {} weights of the plan, found none called {}; --partial keeps their values",
                                variables_.size(), listed(kept_)));
  }

  void put(const std::string& name, const plan::Variable& v, const HostTensor& tensor, std::vector<std::byte>& out) {
    const plan::Buffer& buffer = *package_.plan().buffers()->Get(static_cast<std::uint32_t>(v.buffer()));
    const TensorType wanted{static_cast<DType>(v.dtype()), [&] {
                              Shape shape;
                              for (const std::int64_t d : shape_of(v)) shape.emplace_back(d);
                              return shape;
                            }()};
    if (tensor.type() != wanted)
      refuse(file_, fmt::format("weight '{}': wanted {}, found {}", name, wanted.text(), tensor.type().text()));
    if (!buffer.has_initial())
      refuse(package_.name(), fmt::format("weight '{}' has no place in the plan's file; compile the model again", name));
    const std::uint64_t at = buffer.constant_offset() + static_cast<std::uint64_t>(v.offset()) * size_bytes(wanted.dtype);
    if (at > out.size() || tensor.bytes() > out.size() - at)
      refuse(package_.name(), fmt::format("weight '{}' ends behind the plan's constants; compile the model again", name));
    std::memcpy(out.data() + at, tensor.data(), tensor.bytes());
    ++replaced_;
  }

  const package::Package& package_;
  const std::string& file_;
  const nn::NamedTensors& weights_;
  const bool partial_;
  std::map<std::string, const plan::Variable*> variables_;
  std::vector<std::string> kept_, unknown_;
  std::size_t replaced_ = 0;
};

void check_refittable(const package::Package& package) {
  const plan::Plan& plan = package.plan();
  bool refit = false;
  for (std::uint32_t i = 0; plan.options() && i < plan.options()->size(); ++i)
    refit |= plan.options()->Get(i)->str() == "refit";
  if (refit) return;
  refuse(package.name(),
         plan.variables() && plan.variables()->size() > 0
             ? "wanted a plan that was compiled with --refit, found one with state of its own; oclrun "
               "--load-state and oclc_session_write_variable change that"
             : "wanted a plan that was compiled with --refit, found one whose weights were folded, packed and "
               "transformed when it was compiled; compile the model again, with --refit or with the new weights");
}

// The binaries that drivers made of the kernels fit the new plan too.
void write(const std::string& path, const package::Package& old, std::span<const std::byte> constants) {
  package::ConstantSection section;
  section.add(constants);
  const FilesBeingWritten guard;
  if (!old.binaries()) {
    package::write_package(path, old.metadata(), section, package::MetadataAs::shorter);
    return;
  }
  flatbuffers::FlatBufferBuilder builder;
  const std::unique_ptr<plan::BinariesT> binaries(old.binaries()->UnPack());
  builder.Finish(plan::Binaries::Pack(builder, binaries.get()));
  const auto made = package::Package::from_memory(package::package_to_memory(old.metadata(), section));
  package::write_with_binaries(path, *made, std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

}  // namespace

int refit_command(int argc, char** argv, std::string& file) {
  CLI::App app;
  std::string plan, weights_file, output;
  bool partial = false;
  ReadOptions read;
  OutputOptions shown;
  app.add_option("plan", plan);
  app.add_option("weights", weights_file);
  app.add_option("-o,--output", output);
  app.add_flag("--partial", partial);
  add_read_options(app, read);
  add_output_options(app, shown);
  if (parse(app, argc, argv, kRefitHelp)) return 0;
  if (plan.empty() || weights_file.empty()) usage_error("wanted a plan and a file of weights");
  if (output.empty()) usage_error("wanted -o FILE");
  file = plan;
  const auto package = package::Package::open(plan);
  check_refittable(*package);
  file = weights_file;
  const nn::NamedTensors weights = read_weights(weights_file, read);
  Refit refit(*package, weights_file, weights, partial);
  const std::vector<std::byte> constants = refit.constants();
  write(output, *package, constants);
  if (console().quiet) return 0;
  if (!refit.kept().empty()) print_warning(fmt::format("these weights keep their values: {}", listed(refit.kept())));
  if (!refit.unknown().empty()) print_warning(fmt::format("the plan has no weights called {}", listed(refit.unknown())));
  print_result(fmt::format("{}: weights: {} replaced, {} kept\n", output, refit.replaced(), refit.kept().size()));
  return 0;
}

}  // namespace oclc::tool
