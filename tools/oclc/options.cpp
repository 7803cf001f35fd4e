#include "tools/oclc/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>

#include "compiler/renamed_passes.h"
#include "frontends/op/custom_op.h"
#include "frontends/pt2/import.h"
#include "runtime/package/limits.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/tuned.h"

namespace oclc::tool {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < 0) return std::nullopt;
  return value;
}

// Splits "name=value" at the last '=': names of a model may hold one.
std::pair<std::string, std::string> assignment(std::string_view option, std::string_view form, const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == text.npos || at == 0 || at + 1 == text.size())
    usage_error(fmt::format("wanted {} {}, found '{}'", option, form, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

void check_value(std::string_view option, const std::string& value, const std::vector<std::string>& legal) {
  if (std::find(legal.begin(), legal.end(), value) == legal.end())
    usage_error(fmt::format("wanted {} {}, found '{}'", option, fmt::join(legal, "|"), value));
}

void check_precision(const std::string& precision, const Target& target) {
  const std::vector<std::string> names = contract_names();
  const bool known = std::find(names.begin(), names.end(), precision) != names.end();
  const bool has_bf16 = target.matrix_unit && target.matrix_unit->operand == UnitNumber::bf16;
  if (!known) {
    std::vector<std::string> offered;
    for (const std::string& name : names) {
      if (has_bf16 || find_contract(name) != Contract::bf16) offered.push_back(name);
    }
    throw CompileError({.stage = "usage",
                        .wanted = fmt::format("--precision {} for target {}", fmt::join(offered, "|"), target.name),
                        .found = fmt::format("'{}'", precision),
                        .advice = "16-bit activations of a training run are --mixed f16 or --mixed bf16; see oclc --help",
                        .exit_code = ExitCode::usage});
  }
  if (find_contract(precision) != Contract::bf16 || has_bf16) return;
  throw CompileError({.stage = "usage",
                      .wanted = "--precision strict, fp32, fast or tf32, or bf16 for a target whose units multiply bfloat16",
                      .found = fmt::format("'{}' for target {}", precision, target.name),
                      .advice = "no kernel computes in it there; `tf32` is the nearest",
                      .exit_code = ExitCode::unsupported});
}

// What programs of PyTorch have no use for is refused.
Pt2Options pt2_options(const ImportOptions& options) {
  if (!options.shapes.empty() || !options.lengths.empty() || options.external_data_dir || options.ops)
    usage_error("--shape, --length, --op and --external-data-dir are of ONNX models; of exported programs --dim binds symbols");
  return {options.training, {options.dims.begin(), options.dims.end()}};
}

std::vector<std::byte> standard_input(std::int64_t limit) {
  std::vector<std::byte> bytes;
  constexpr std::size_t kPiece = 1 << 20;
  for (std::size_t got = kPiece; got == kPiece;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPiece);
    got = std::fread(bytes.data() + before, 1, kPiece, stdin);
    bytes.resize(before + got);
    if (static_cast<std::int64_t>(bytes.size()) > limit)
      throw CompileError({.stage = "import",
                          .wanted = fmt::format("a model of at most {} bytes", limit),
                          .found = "more on standard input",
                          .advice = "keep the weights as external data"});
  }
  return bytes;
}

}  // namespace

ProgressForm OutputOptions::progress_form() const {
  return progress == "json"                      ? ProgressForm::json
         : progress == "none" || console().quiet ? ProgressForm::none
                                                 : ProgressForm::automatic;
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.add_flag("--json", options.json);
  app.add_flag("-v,--verbose", console().verbose);
  app.add_flag("-q,--quiet", console().quiet);
  app.add_option("--color", options.color)
      ->check(command_line::one_of({"auto", "always", "never"}))
      ->each([](const std::string& when) {
        console().color = when == "always" ? ColorWhen::always : when == "never" ? ColorWhen::never : ColorWhen::automatic;
      });
  app.add_option("--progress", options.progress)->check(command_line::one_of({"auto", "none", "json"}));
}

void add_read_options(CLI::App& app, ReadOptions& options) {
  app.add_option("--dim", options.dims)->allow_extra_args(false);
  app.add_option("--shape", options.shapes)->allow_extra_args(false);
  app.add_option("--typical", options.typical)->allow_extra_args(false);
  app.add_option("--length", options.lengths)->allow_extra_args(false);
  app.add_option("--value", options.values)->allow_extra_args(false);
  app.add_option("--op", options.ops)->allow_extra_args(false);
  app.add_option("--external-data-dir", options.external_data_dir);
  app.add_flag("--allow-symlinks", options.allow_symlinks);
  app.add_flag("--allow-newer-opset", options.allow_newer_opset);
}

void add_build_options(CLI::App& app, BuildOptions& options) {
  app.add_option("--target", options.target);
  app.add_option("-d,--device", options.device);
  app.add_option("--tuned", options.tuned);
  app.add_option("--disable", options.disabled)->delimiter(',')->allow_extra_args(false);
  app.add_option("--conv", options.conv);
  app.add_option("--gemm", options.gemm);
  app.add_option("--precision", options.precision);
  app.add_option("--subnormals", options.subnormals);
}

SymbolValues parse_dims(const std::vector<std::string>& texts, std::string_view option) {
  SymbolValues dims;
  for (const std::string& text : texts) {
    const auto [name, value] = assignment(option, "NAME=NUMBER", text);
    const auto n = number(value);
    if (!n) usage_error(fmt::format("wanted {} NAME=NUMBER, found '{}'", option, text));
    if (!dims.emplace(name, *n).second) usage_error(fmt::format("{} {} is given twice", option, name));
  }
  return dims;
}

std::vector<Carry> parse_carries(const std::vector<std::string>& texts) {
  std::vector<Carry> carries;
  for (const std::string& text : texts) {
    constexpr std::string_view kAlone = ",state";
    const bool alone = text.ends_with(kAlone);
    const auto [output, input] =
        assignment("--carry", "OUT=IN or OUT=IN,state", text.substr(0, text.size() - (alone ? kAlone.size() : 0)));
    carries.push_back({output, input, !alone});
  }
  return carries;
}

// What models say of themselves fits a plan.
static_assert(ImportLimits().properties <= package::kMaxProperties &&
              ImportLimits().property_bytes <= package::kMaxPropertyBytes &&
              ImportLimits().name_bytes <= package::kMaxNameBytes);

void set_metadata(Module& module, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    if (at == text.npos || at == 0) usage_error(fmt::format("wanted --metadata NAME=TEXT, found '{}'", text));
    const Property given{text.substr(0, at), text.substr(at + 1)};
    if (given.name.size() > package::kMaxNameBytes || given.value.size() > package::kMaxPropertyBytes)
      usage_error(fmt::format("wanted --metadata with a name of at most {} and a text of at most {} bytes, found {} and {}",
                              package::kMaxNameBytes, package::kMaxPropertyBytes, given.name.size(), given.value.size()));
    const auto known =
        std::find_if(module.metadata.begin(), module.metadata.end(), [&](const Property& p) { return p.name == given.name; });
    if (known != module.metadata.end())
      known->value = given.value;
    else
      module.metadata.push_back(given);
  }
  if (module.metadata.size() > package::kMaxProperties)
    usage_error(fmt::format("wanted at most {} properties of the model, found {}: its own and those of --metadata",
                            package::kMaxProperties, module.metadata.size()));
}

std::shared_ptr<const CustomOps> operators(const std::vector<std::string>& files) {
  if (files.empty()) return nullptr;
  auto ops = std::make_shared<CustomOps>();
  for (const std::string& file : files) ops->add(load_ops(file));
  return ops;
}

ImportOptions import_options(const ReadOptions& options) {
  ImportOptions reading;
  for (const auto& [name, value] : parse_dims(options.dims)) reading.dims[name] = value;
  for (const auto& [name, value] : parse_dims(options.typical, "--typical")) reading.typical[name] = value;
  for (const std::string& text : options.shapes) {
    const auto [name, dims] = assignment("--shape", "NAME=1x3x224x224", text);
    std::vector<std::int64_t> shape;
    for (std::size_t at = 0; at <= dims.size();) {
      const std::size_t end = std::min(dims.find('x', at), dims.size());
      const auto n = number(std::string_view(dims).substr(at, end - at));
      if (!n) usage_error(fmt::format("wanted --shape NAME=1x3x224x224, found '{}'", text));
      shape.push_back(*n);
      at = end + 1;
    }
    if (!reading.shapes.emplace(name, shape).second) usage_error(fmt::format("--shape {} is given twice", name));
  }
  for (const std::string& text : options.lengths) {
    const auto [name, value] = assignment("--length", "NAME=NUMBER", text);
    const auto n = value == "none" ? std::optional<std::int64_t>(-1) : number(value);
    if (!n) usage_error(fmt::format("wanted --length NAME=NUMBER or NAME=none, found '{}'", text));
    if (!reading.lengths.emplace(name, *n).second) usage_error(fmt::format("--length {} is given twice", name));
  }
  for (const std::string& text : options.values) {
    const auto [name, list] = assignment("--value", "NAME=NUMBER[,NUMBER...]", text);
    std::vector<std::string> numbers;
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      numbers.push_back(list.substr(at, end - at));
      at = end + 1;
    }
    if (!reading.values.emplace(name, numbers).second) usage_error(fmt::format("--value {} is given twice", name));
  }
  reading.ops = operators(options.ops);
  if (!options.external_data_dir.empty()) reading.external_data_dir = options.external_data_dir;
  reading.allow_links = options.allow_symlinks;
  reading.allow_newer_opset = options.allow_newer_opset;
  reading.warn = [](const std::string& text) { print_warning(text); };
  return reading;
}

CompileOptions compile_options(const BuildOptions& options, Progress& progress) {
  check_value("--conv", options.conv, {"auto", "im2col", "implicit", "direct", "winograd"});
  check_value("--gemm", options.gemm, {"own", "clblast"});
  check_value("--subnormals", options.subnormals, {"keep", "flush"});
  CompileOptions compile;
  TunedDevice device;
  compile.target = choose_target(options.target, options.device, &device);
  check_precision(options.precision, compile.target);
  if (!options.tuned.empty()) use_tuned(options.tuned, device, compile.target);
  for (const std::string& name : options.disabled) {
    const std::string_view now = current_pass_name(name);
    if (now != name)
      print_warning(fmt::format("--disable={}: the pass is called {} now; the old name goes with the next release", name, now));
  }
  compile.disabled = current_pass_names(options.disabled);
  compile.precision = options.precision;
  compile.conv = options.conv;
  compile.gemm = options.gemm;
  compile.flushes_subnormals = options.subnormals == "flush";
  compile.progress = [&progress](std::string_view stage) { progress.stage(stage); };
  return compile;
}

bool parse(CLI::App& app, int argc, char** argv, std::string_view help) {
  try {
    app.parse(argc, argv);
    return false;
  } catch (const CLI::CallForHelp&) {
    print_result(help);
    return true;
  } catch (const CLI::CallForVersion& version) {
    print_result(std::string(version.what()) + "\n");
    return true;
  } catch (const CLI::ParseError& error) {
    usage_error(command_line::explained(app, error));
  }
}

std::shared_ptr<Module> read_model(const std::string& file, const ImportOptions& options) {
  if (file == "-") return import_onnx_bytes(standard_input(options.limits.file_bytes), {}, options);
  if (is_pt2(file)) return import_pt2(file, pt2_options(options));
  return import_onnx(file, options);
}

std::vector<OpUse> read_ops(const std::string& file, const ImportOptions& options) {
  if (file == "-") return list_ops_bytes(standard_input(options.limits.file_bytes), options);
  return list_ops(file, options);
}

}  // namespace oclc::tool
