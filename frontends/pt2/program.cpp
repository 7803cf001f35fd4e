#include "frontends/pt2/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/support/error.h"

namespace oclc::pt2 {
namespace {

using nlohmann::json;

constexpr std::int64_t kSchemaMajor = 8;
constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::int64_t kLargestDim = std::int64_t{1} << 40;

const json& member(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) fail(fmt::format("a program with the key '{}'", name), "none");
  return object.at(name);
}

const json* optional_member(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || object.at(name).is_null()) return nullptr;
  return &object.at(name);
}

std::string json_text(const json& value, const char* what) {
  if (!value.is_string()) fail(fmt::format("a text as {}", what), value.dump().substr(0, 100));
  return value.get<std::string>();
}

// The one key of {"as_int": 3}, and its value.
std::pair<std::string, const json*> tagged(const json& value) {
  if (!value.is_object() || value.size() != 1) return {"", nullptr};
  return {value.begin().key(), &value.begin().value()};
}

class Parser {
 public:
  Parser(const json& document, const std::map<std::string, std::int64_t>& dims) : document_(document), dims_(dims) {}

  Program parse() {
    check_version();
    read_ranges();
    const json& module = member(document_, "graph_module");
    graph_ = &member(module, "graph");
    read_tensors();
    for (const json& node : member(*graph_, "nodes")) read_node(node);
    if (program_.nodes.size() > kMostNodes) fail(fmt::format("at most {} nodes", kMostNodes), "more");
    read_inputs(member(module, "signature"));
    read_outputs(member(module, "signature"));
    return std::move(program_);
  }

 private:
  void check_version() const {
    const json& version = member(document_, "schema_version");
    const json* major = optional_member(version, "major");
    if (!major || !major->is_number_integer() || major->get<std::int64_t>() != kSchemaMajor)
      fail(fmt::format("a program of schema {}", kSchemaMajor), version.dump(),
           "export the model with a release of PyTorch from 2.9 on that writes this schema");
  }

  void read_ranges() {
    const json* constraints = optional_member(document_, "range_constraints");
    const json none = json::object();
    for (const auto& [name, range] : (constraints ? *constraints : none).items()) {
      const auto bound = [&, &r = range](const char* key, std::int64_t otherwise) {
        const json* value = optional_member(r, key);
        return value && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
      };
      // Programs say 0 or 2 where they mean "any size": none of 0 is ever run, and 1 does what they do.
      const std::int64_t low = std::max<std::int64_t>(bound("min_val", 1), 1), high = bound("max_val", kUnbounded);
      ranges_[name] = {low <= 2 ? 1 : low, high >= kLargestDim ? kUnbounded : std::max(low, high)};
    }
    for (const auto& [name, value] : dims_) {
      const auto range = ranges_.find(name);
      std::string known;
      for (const auto& [symbol, bounds] : ranges_) known += (known.empty() ? "" : ", ") + symbol;
      if (range == ranges_.end())
        fail(fmt::format("a value for a symbol of the program: {}", known.empty() ? "it has none" : known),
             fmt::format("'{}'", name));
      if (value < range->second.first || value > range->second.second)
        fail(fmt::format("{} from {} to {}", name, range->second.first, range->second.second), std::to_string(value));
      range->second = {value, value};
    }
  }

  Expr integer(const json& value) const {
    const auto [tag, inner] = tagged(value);
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (tag == "as_int" && inner->is_number_integer()) return inner->get<std::int64_t>();
    if (tag == "as_expr") return parse_sympy(json_text(member(*inner, "expr_str"), "an expression"), ranges_);
    if (tag == "as_name") {
      const auto found = numbers_.find(json_text(*inner, "a name"));
      if (found != numbers_.end()) return found->second;
    }
    fail("an integer or an expression", value.dump().substr(0, 200));
  }

  void read_tensors() {
    if (const json* numbers = optional_member(*graph_, "sym_int_values"))
      for (const auto& [name, value] : numbers->items()) numbers_[name] = integer(value);
    for (const auto& [name, meta] : member(*graph_, "tensor_values").items()) {
      const json& number = member(meta, "dtype");
      const std::int64_t of_torch = number.is_number_integer() ? number.get<std::int64_t>() : -1;
      const auto part = part_of_torch(of_torch);
      const auto dtype = part ? part : dtype_of_torch(of_torch);
      if (!dtype) {
        program_.odd_tensors[name] = fmt::format("element type {} of torch", number.dump());
        continue;
      }
      if (part) program_.complex.insert(name);
      TensorType type{*dtype, {}};
      for (const json& size : member(meta, "sizes")) {
        const Expr dim = integer(size);
        if (dim.is_constant() && (dim.value() < 0 || dim.value() > kLargestDim))
          fail(fmt::format("dimensions from 0 to {}", kLargestDim), dim.text());
        type.shape.push_back(dim);
      }
      for (const Expr& dim : type.shape) note_symbols(dim);
      read_layout(name, meta, type.shape.size());
      program_.tensors.emplace(name, std::move(type));
    }
  }

  void read_layout(const std::string& name, const json& meta, std::size_t rank) {
    const json *strides = optional_member(meta, "strides"), *offset = optional_member(meta, "storage_offset");
    if (!strides || !strides->is_array() || strides->size() != rank) return;
    Layout layout{{}, offset ? integer(*offset) : Expr(0)};
    for (const json& stride : *strides) layout.strides.push_back(integer(stride));
    program_.layouts.emplace(name, std::move(layout));
  }

  void note_symbols(const Expr& e) {
    for (const std::string& name : e.symbols()) {
      if (!seen_.insert(name).second) continue;
      const auto range = ranges_.find(name);
      program_.symbols.push_back(range == ranges_.end() ? Expr::symbol(name)
                                                        : Expr::symbol(name, range->second.first, range->second.second));
    }
  }

  Arg list(const json& values, const char* tag) const {
    Arg arg{.kind = Arg::Kind::list};
    if (!values.is_array()) fail("a list of arguments", values.dump().substr(0, 200));
    for (const json& value : values) arg.items.push_back(tag ? argument(json{{tag, value}}) : argument(value));
    return arg;
  }

  static Arg tensor(const json& value) {
    return {.kind = Arg::Kind::tensor, .name = json_text(member(value, "name"), "a name")};
  }

  Arg argument(const json& value) const {
    const auto [tag, inner] = tagged(value);
    using Kind = Arg::Kind;
    if (tag == "as_none") return {};
    if (tag == "as_tensor") return tensor(*inner);
    if (tag == "as_int" || tag == "as_sym_int") return {.kind = Kind::integer, .integer = integer(*inner)};
    if (tag == "as_bool" && inner->is_boolean()) return {.kind = Kind::boolean, .integer = inner->get<bool>() ? 1 : 0};
    if (tag == "as_float") return {.kind = Kind::real, .real = real(*inner)};
    if (tag == "as_complex")
      return {.kind = Kind::complex, .real = real(member(*inner, "real")), .imaginary = real(member(*inner, "imag"))};
    if (tag == "as_sym_float") return argument(*inner);
    if (tag == "as_string") return {.kind = Kind::text, .name = json_text(*inner, "a text")};
    if (tag == "as_scalar_type" && inner->is_number_integer()) return scalar_type(inner->get<std::int64_t>());
    if (tag == "as_tensors") return list_of_tensors(*inner);
    if (tag == "as_ints") return list(*inner, "as_int");
    if (tag == "as_sym_ints") return list(*inner, "as_sym_int");
    if (tag == "as_floats") return list(*inner, "as_float");
    if (tag == "as_bools") return list(*inner, "as_bool");
    if (tag == "as_strings") return list(*inner, "as_string");
    if (tag == "as_optional_tensors") return list(*inner, nullptr);
    return {.kind = Kind::other, .name = tag};
  }

  Arg list_of_tensors(const json& values) const {
    Arg arg{.kind = Arg::Kind::list};
    for (const json& value : values) arg.items.push_back(tensor(value));
    return arg;
  }

  static Arg scalar_type(std::int64_t number) {
    const auto dtype = dtype_of_torch(number);
    if (!dtype) return {.kind = Arg::Kind::other, .name = fmt::format("element type {} of torch", number)};
    return {.kind = Arg::Kind::dtype, .dtype = *dtype};
  }

  static double real(const json& value) {
    if (value.is_number()) return value.get<double>();
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "Infinity") return kInfinity;
    if (text == "-Infinity") return -kInfinity;
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    fail("a number", value.dump().substr(0, 100));
  }

  // "L__self__,,M;L__self__c,layer.c,torch.nn..": the path of the innermost module.
  static std::string module_path(const json& node) {
    const json* metadata = optional_member(node, "metadata");
    const json* stack = metadata ? optional_member(*metadata, "nn_module_stack") : nullptr;
    if (!stack || !stack->is_string()) return "";
    const std::string text = stack->get<std::string>();
    const std::size_t last = text.rfind(';');
    const std::string inner = last == text.npos ? text : text.substr(last + 1);
    const std::size_t first = inner.find(',');
    const std::size_t second = first == inner.npos ? inner.npos : inner.find(',', first + 1);
    if (second == inner.npos) return "";
    const std::string path = inner.substr(first + 1, second - first - 1);
    return path.starts_with("_empty_nn") ? "" : path;
  }

  void read_node(const json& node) {
    ProgramNode out;
    out.target = json_text(member(node, "target"), "the target of a node");
    constexpr std::string_view kPrefix = "torch.ops.";
    if (out.target.starts_with(kPrefix)) out.target.erase(0, kPrefix.size());
    out.module = module_path(node);
    for (const json& input : member(node, "inputs"))
      out.arguments.emplace_back(json_text(member(input, "name"), "the name of an argument"), argument(member(input, "arg")));
    for (const json& result : member(node, "outputs")) out.results.push_back(argument(result));
    if (const json* name = optional_member(node, "name"))
      out.name = json_text(*name, "the name of a node");
    else if (!out.results.empty())
      out.name = out.results[0].name;
    program_.nodes.push_back(std::move(out));
  }

  void read_inputs(const json& signature) {
    std::map<std::string, std::pair<ProgramInput::Kind, std::string>, std::less<>> special;
    for (const json& spec : member(signature, "input_specs")) {
      const auto [tag, inner] = tagged(spec);
      const auto note = [&, &i = inner](ProgramInput::Kind kind, const char* key) {
        special[json_text(member(member(*i, "arg"), "name"), "an input")] = {kind, json_text(member(*i, key), key)};
      };
      if (tag == "parameter") note(ProgramInput::Kind::parameter, "parameter_name");
      if (tag == "buffer") note(ProgramInput::Kind::buffer, "buffer_name");
      if (tag == "tensor_constant") note(ProgramInput::Kind::constant, "tensor_constant_name");
    }
    std::set<std::string> names;
    for (const json& input : member(*graph_, "inputs")) {
      const auto [tag, inner] = tagged(input);
      ProgramInput out;
      out.tensor = tag == "as_tensor";
      const json* name = inner ? optional_member(*inner, out.tensor ? "name" : "as_name") : nullptr;
      if (name) out.name = json_text(*name, "the name of an input");
      const auto found = special.find(out.name);
      if (found != special.end()) out.kind = found->second.first;
      out.of_model = found != special.end() ? found->second.second : out.name;
      if (out.tensor && !names.insert(out.of_model).second)
        fail("inputs of different names", fmt::format("two '{}'", out.of_model));
      program_.inputs.push_back(std::move(out));
    }
  }

  void read_outputs(const json& signature) {
    std::map<std::string, std::string, std::less<>> mutated;
    const json& specs = member(signature, "output_specs");
    std::vector<std::string> buffers;
    for (const json& spec : specs) {
      const auto [tag, inner] = tagged(spec);
      buffers.push_back(tag == "buffer_mutation" ? json_text(member(*inner, "buffer_name"), "a buffer") : "");
      if (tag.find("mutation") != std::string::npos && tag != "buffer_mutation")
        fail("a program that changes buffers alone", tag, "return the new value instead of writing it into an input");
    }
    std::size_t i = 0;
    for (const json& output : member(*graph_, "outputs")) {
      program_.outputs.push_back({argument(output), i < buffers.size() ? buffers[i] : ""});
      ++i;
    }
  }

  const json& document_;
  const std::map<std::string, std::int64_t>& dims_;
  const json* graph_ = nullptr;
  Program program_;
  Ranges ranges_;
  std::map<std::string, Expr, std::less<>> numbers_;
  std::set<std::string> seen_;
};

}  // namespace

void fail(std::string wanted, std::string found, std::string advice) {
  throw CompileError({.stage = "import", .wanted = std::move(wanted), .found = std::move(found), .advice = std::move(advice)});
}

// torch/_export/serde/schema.py
std::optional<DType> dtype_of_torch(std::int64_t number) {
  switch (number) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 12:
      return DType::boolean;
    case 13:
      return DType::bf16;
    case 28:
      return DType::u16;
    case 34:
      return DType::u32;
    case 35:
      return DType::u64;
    default:
      return std::nullopt;
  }
}

std::optional<DType> part_of_torch(std::int64_t number) {
  switch (number) {
    case 9:
      return DType::f16;
    case 10:
      return DType::f32;
    case 11:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

Program parse_program(std::string_view text, const std::map<std::string, std::int64_t>& dims) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) fail("a program in JSON", "no JSON");
  return Parser(document, dims).parse();
}

}  // namespace oclc::pt2
