#include <stdexcept>

#define TOML_ENABLE_FORMATTERS 0
// What its reader takes for granted of a text, and a damaged one may not keep: checked in all builds.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : throw std::logic_error(#condition))
#include "frontends/op/head.h"

#include <fmt/format.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // in functions that no text leads to
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cctype>
#include <optional>

#include "compiler/support/nearest.h"

namespace oclc::custom {
namespace {

constexpr DType kDefaultTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
const std::vector<std::string> kKeys = {"name",     "in",          "out",       "types",   "attr",  "where", "formula",
                                        "scalar",   "kernel",      "each",      "group",   "local", "flops", "bytes",
                                        "gradient", "gradient_op", "reference", "inplace", "ragged"};
// Keys of operators in OpenCL C, and those of kernels among them.
const std::vector<std::string> kCodeKeys = {"flops", "gradient", "gradient_op", "reference"};
const std::vector<std::string> kKernelKeys = {"each", "group", "local", "bytes", "inplace", "ragged"};
constexpr std::uint32_t kMostItems = 1024;

// One head inside of a file.
class Head {
 public:
  // `begin`: place of the TOML text.
  Head(std::string file, std::string_view text, const Place& begin) : text_(text), begin_(begin) {
    op_.file = std::move(file);
    op_.place = begin;
  }

  CustomOp read() {
    const toml::table table = parse();
    for (auto&& [key, node] : table) {
      if (std::find(kKeys.begin(), kKeys.end(), std::string(key.str())) != kKeys.end()) continue;
      fail_at(op_.file, place(key.source()), fmt::format("a key of oclc-op 1 ({})", fmt::join(kKeys, ", ")),
              fmt::format("'{}'", key.str()), did_you_mean(key.str(), kKeys));
    }
    in_code_ = table.contains("scalar") || table.contains("kernel");
    read_name(table);
    read_types(table);
    read_attributes(table);
    for (const auto& [text, node] : texts(table, "in", true)) add_operand(text, op_.in, false);
    for (const auto& [text, node] : texts(table, "out", true)) add_operand(text, op_.out, true);
    for (const auto& [text, node] : texts(table, "where", false)) op_.conditions.push_back({parse_condition(text), text.text});
    read_form(table);
    return std::move(op_);
  }

 private:
  toml::table parse() const {
    refuse_odd_characters(op_.file, text_, begin_);
    try {
      return toml::parse(text_, op_.file);
    } catch (const toml::parse_error& error) {
      fail_at(op_.file, place(error.source()), "a head in TOML", std::string(error.description()));
    } catch (const std::logic_error& error) {
      fail_at(op_.file, op_.place, "a head in TOML", fmt::format("a text that its reader cannot follow ({})", error.what()));
    }
  }

  Place place(const toml::source_region& region) const {
    const int line = static_cast<int>(region.begin.line), column = static_cast<int>(region.begin.column);
    if (line <= 1) return {begin_.line, begin_.column + std::max(column, 1) - 1};
    return {begin_.line + line - 1, column};
  }

  // The text from there on to the head's end.
  std::string_view from(const toml::source_region& region) const {
    std::size_t at = 0;
    for (std::uint32_t line = 1; line < region.begin.line; ++line) {
      at = text_.find('\n', at);
      if (at == text_.npos) return {};
      ++at;
    }
    // Columns of the reader count characters, those of messages bytes: they differ behind letters of other languages alone,
    // where the text is not found and counts as not exact.
    at += std::max<std::uint32_t>(region.begin.column, 1) - 1;
    return at <= text_.size() ? text_.substr(at) : std::string_view();
  }

  Excerpt text_at(const toml::node& node, std::string_view key) const {
    const auto* value = node.as_string();
    if (!value) fail_at(op_.file, place(node.source()), fmt::format("'{}' as text in quotes", key), std::string(kind_of(node)));
    Excerpt excerpt{op_.file, value->get(), place(node.source()), false};
    std::string_view raw = from(node.source());
    std::size_t quotes = raw.starts_with("\"\"\"") || raw.starts_with("'''") ? 3 : 1;
    Place begin = excerpt.begin;
    begin.column += static_cast<int>(quotes);
    for (const std::string_view end : {"\r\n", "\n"}) {
      if (quotes != 3 || !raw.substr(3).starts_with(end)) continue;
      quotes += end.size();
      begin = {begin.line + 1, 1};
      break;
    }
    if (raw.size() < quotes || !raw.substr(quotes).starts_with(excerpt.text)) return excerpt;
    excerpt.begin = begin;
    excerpt.exact = true;
    return excerpt;
  }

  static std::string_view kind_of(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::table:
        return "a table";
      case toml::node_type::array:
        return "a list";
      case toml::node_type::string:
        return "a text";
      case toml::node_type::integer:
        return "an integer";
      case toml::node_type::floating_point:
        return "a number";
      case toml::node_type::boolean:
        return "true or false";
      default:
        return "a date";
    }
  }

  std::vector<std::pair<Excerpt, const toml::node*>> texts(const toml::table& table, std::string_view key, bool needed) const {
    std::vector<std::pair<Excerpt, const toml::node*>> list;
    const toml::node* node = table.get(key);
    if (!node && !needed) return list;
    if (!node) fail_at(op_.file, op_.place, fmt::format("a key '{}' in the head of {}", key, op_.name), "none");
    const toml::array* array = node->as_array();
    if (!array || (needed && array->empty()))
      fail_at(op_.file, place(node->source()), fmt::format("'{}' as a list of one text or more", key),
              std::string(array ? "an empty list" : kind_of(*node)));
    for (const toml::node& item : *array) list.emplace_back(text_at(item, key), &item);
    return list;
  }

  void read_name(const toml::table& table) {
    const toml::node* node = table.get("name");
    if (!node) fail_at(op_.file, op_.place, "a key 'name' in the head", "none");
    const Excerpt text = text_at(*node, "name");
    op_.name = text.text;
    const bool plain = std::all_of(op_.name.begin(), op_.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    });
    const std::size_t dot = op_.name.rfind('.');
    if (!plain || dot == std::string::npos || dot == 0 || dot + 1 == op_.name.size())
      fail_at(op_.file, text.begin, "a name of letters, digits, '_' and '-' with a domain before its last dot: domain.Name",
              fmt::format("'{}'", op_.name));
    const std::string domain = op_.name.substr(0, dot);
    if (domain == "ai.onnx" || domain.starts_with("ai.onnx.") || domain.starts_with("com.microsoft"))
      fail_at(op_.file, text.begin, "a domain of your own", fmt::format("'{}'", domain));
  }

  void read_form(const toml::table& table) {
    int forms = 0;
    for (const std::string_view form : {"formula", "scalar", "kernel"}) forms += table.contains(form) ? 1 : 0;
    if (forms != 1)
      fail_at(op_.file, op_.place, "a key 'formula', 'scalar' or 'kernel' in the head of " + op_.name,
              forms == 0 ? "none" : "several");
    if (const toml::node* formula = table.get("formula")) op_.lines = parse_lines(text_at(*formula, "formula"));
    op_.scalar = word(table, "scalar");
    op_.kernel = word(table, "kernel");
    for (const auto* keys : {&kCodeKeys, &kKernelKeys}) {
      const bool allowed = keys == &kCodeKeys ? op_.in_code() : !op_.kernel.empty();
      for (const std::string& key : *keys) {
        if (const toml::node* node = table.get(key); node && !allowed)
          fail_at(op_.file, place(node->source()),
                  fmt::format("'{}' beside {}", key,
                              keys == &kCodeKeys ? "'scalar' or 'kernel': a formula says it itself" : "'kernel'"),
                  "another form of operator");
      }
    }
    if (op_.in_code()) read_code_keys(table);
    if (!op_.kernel.empty()) read_kernel_keys(table);
  }

  // A name of the file's code.
  std::string word(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (!node) return {};
    const Excerpt text = text_at(*node, key);
    const bool plain = !text.text.empty() && std::all_of(text.text.begin(), text.text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    });
    if (!plain)
      fail_at(op_.file, text.begin, fmt::format("'{}' as a name in the file's OpenCL C", key), fmt::format("'{}'", text.text));
    return text.text;
  }

  std::optional<Formula> size_at(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (!node || (key == "bytes" && node->value<std::string>() == "default")) return std::nullopt;
    if (const auto* number = node->as_integer()) {
      Formula f;
      f.place = place(node->source());
      f.number = static_cast<double>(number->get());
      f.whole = true;
      f.name = std::to_string(number->get());
      return f;
    }
    return parse_condition(text_at(*node, key));
  }

  void read_code_keys(const toml::table& table) {
    op_.flops = size_at(table, "flops");
    if (const toml::node* node = table.get("reference"))
      op_.reference = reference_of(op_, parse_lines(text_at(*node, "reference")));
    if (const toml::node* node = table.get("gradient_op")) {
      op_.gradient_op = text_at(*node, "gradient_op").text;
      op_.gradient_place = place(node->source());
      if (table.contains("gradient")) fail_at(op_.file, op_.gradient_place, "'gradient' or 'gradient_op'", "both");
    }
    const toml::node* node = table.get("gradient");
    if (!node) return;
    const toml::table* gradient = node->as_table();
    if (!gradient || gradient->empty())
      fail_at(op_.file, place(node->source()), "'gradient' as a table of formulas: { x = \"2 * d_y\" }",
              std::string(kind_of(*node)));
    std::vector<std::pair<std::string, Formula>> formulas;
    for (auto&& [key, value] : *gradient)
      formulas.emplace_back(std::string(key.str()), parse_condition(text_at(value, "gradient")));
    set_gradient(op_, formulas);
  }

  void read_kernel_keys(const toml::table& table) {
    for (const auto& [text, node] : texts(table, "each", true)) op_.each.push_back(parse_condition(text));
    op_.bytes = size_at(table, "bytes");
    if (const toml::node* node = table.get("ragged")) {
      if (!node->is_boolean())
        fail_at(op_.file, place(node->source()), "'ragged' as true or false", std::string(kind_of(*node)));
      op_.ragged = node->as_boolean()->get();
    }
    read_group(table);
    read_local(table);
    read_inplace(table);
  }

  void read_group(const toml::table& table) {
    const toml::node* node = table.get("group");
    if (!node) return;
    const toml::array* sides = node->as_array();
    std::uint32_t items = 1;
    for (std::size_t i = 0; sides && i < sides->size(); ++i) {
      const auto side = (*sides)[i].value<std::int64_t>();
      if (!side || *side < 1 || *side > kMostItems || items * *side > kMostItems) items = 0;
      if (items == 0) break;
      op_.group.push_back(static_cast<std::uint32_t>(*side));
      items *= static_cast<std::uint32_t>(*side);
    }
    if (!sides || op_.group.empty() || items == 0)
      fail_at(op_.file, place(node->source()),
              fmt::format("'group' as a list of integers whose product is 1 to {}: [1, 64]", kMostItems),
              std::string(sides ? "others" : kind_of(*node)));
  }

  void read_local(const toml::table& table) {
    const toml::node* node = table.get("local");
    if (!node) return;
    const toml::table* locals = node->as_table();
    if (!locals)
      fail_at(op_.file, place(node->source()), "'local' as a table: { t = \"float[64]\" }", std::string(kind_of(*node)));
    for (auto&& [key, value] : *locals) {
      const Excerpt text = text_at(value, "local");
      const std::size_t open = text.text.find('[');
      const std::string type = text.text.substr(0, open);
      if (open == std::string::npos || !text.text.ends_with(']') ||
          (type != "float" && type != "int" && type != "uint" && type != "double"))
        fail_at(op_.file, text.begin, "an array of float, double, int or uint in local memory: \"float[64]\"",
                fmt::format("'{}'", text.text));
      Excerpt elements = text;
      elements.text = text.text.substr(open + 1, text.text.size() - open - 2);
      elements.begin.column += static_cast<int>(open) + 1;
      op_.locals.push_back({type, std::string(key.str()), parse_condition(elements)});
    }
    if (op_.group.empty()) fail_at(op_.file, place(node->source()), "a key 'group' beside 'local'", "none");
  }

  void read_inplace(const toml::table& table) {
    const toml::node* node = table.get("inplace");
    if (!node) return;
    const toml::table* pairs = node->as_table();
    if (!pairs)
      fail_at(op_.file, place(node->source()), "'inplace' as a table of outputs: { delta = \"w\" }",
              std::string(kind_of(*node)));
    for (auto&& [key, value] : *pairs) {
      const Operand *output = op_.output(key.str()), *input = op_.operand(text_at(value, "inplace").text);
      if (!output || !input || output->type != input->type || output->dims.size() != input->dims.size() || input->variable)
        fail_at(op_.file, place(key.source()), "an output and an input of one type and shape", fmt::format("'{}'", key.str()));
      op_.inplace.emplace_back(output - op_.out.data(), input - op_.in.data());
    }
  }

  void read_types(const toml::table& table) {
    const toml::node* node = table.get("types");
    if (!node) return;
    const toml::table* types = node->as_table();
    if (!types)
      fail_at(op_.file, place(node->source()), "'types' as a table: { T = [\"f32\", \"f16\"] }", std::string(kind_of(*node)));
    for (auto&& [key, value] : *types) {
      if (dtype_of(key.str()))
        fail_at(op_.file, place(key.source()), "a name that is no element type", fmt::format("'{}'", key.str()));
      std::vector<DType>& list = op_.types[std::string(key.str())];
      for (const auto& [text, item] : texts(*types, key.str(), true)) {
        const auto dtype = dtype_of(text.text);
        if (!dtype || *dtype == DType::string || is_narrow(*dtype))
          fail_at(op_.file, text.begin, "an element type (f32, f64, f16, bf16, bool, i8 .. i64, u8 .. u64)",
                  fmt::format("'{}'", text.text));
        list.push_back(*dtype);
      }
    }
  }

  void read_attributes(const toml::table& table) {
    const toml::node* node = table.get("attr");
    if (!node) return;
    const toml::table* attributes = node->as_table();
    if (!attributes)
      fail_at(op_.file, place(node->source()), "'attr' as a table: { alpha = 1.0 }", std::string(kind_of(*node)));
    for (auto&& [key, value] : *attributes)
      op_.attributes.push_back(attribute_of(std::string(key.str()), value, place(key.source())));
  }

  AttributeRow attribute_of(std::string name, const toml::node& value, const Place& where) const {
    if (const auto* i = value.as_integer()) return {std::move(name), i->get()};
    if (const auto* f = value.as_floating_point()) return {std::move(name), f->get()};
    if (const auto* b = value.as_boolean()) return {std::move(name), std::int64_t{b->get()}};
    if (const auto* s = value.as_string()) {
      const std::string& text = s->get();
      if (!text.ends_with('!')) return {std::move(name), text};
      if (text == "float!") return {std::move(name), 0.0, true};
      if (text == "int!") return {std::move(name), std::int64_t{0}, true};
      if (text == "text!") return {std::move(name), std::string(), true};
      if (text == "floats!") return {std::move(name), std::vector<double>(), true};
      if (text == "ints!") return {std::move(name), Ints(), true};
      fail_at(op_.file, place(value.source()), "float!, int!, text!, floats! or ints!", fmt::format("'{}'", text));
    }
    const toml::array* array = value.as_array();
    if (array && !array->empty()) {
      Ints whole;
      std::vector<double> numbers;
      for (const toml::node& item : *array) {
        if (const auto* i = item.as_integer()) {
          whole.push_back(i->get());
          numbers.push_back(static_cast<double>(i->get()));
        } else if (const auto* f = item.as_floating_point()) {
          numbers.push_back(f->get());
        }
      }
      if (whole.size() == array->size()) return {std::move(name), std::move(whole)};
      if (numbers.size() == array->size()) return {std::move(name), std::move(numbers)};
    }
    fail_at(op_.file, where, fmt::format("attribute '{}' as a number, a text or a list of numbers", name),
            array && array->empty() ? "an empty list" : std::string(kind_of(value)));
  }

  void add_operand(const Excerpt& text, std::vector<Operand>& list, bool output) {
    Operand operand = parse_operand(text);
    const auto refuse = [&](std::string wanted, std::string found) {
      fail_at(op_.file, operand.place, std::move(wanted), std::move(found));
    };
    if (output && (operand.optional || operand.variable))
      refuse(fmt::format("output '{}' without '?' and '*'", operand.name), fmt::format("'{}'", text.text));
    if (!list.empty() && list.back().variable)
      refuse("the operand of variable number as the last", fmt::format("'{}' behind it", operand.name));
    if (op_.operand(operand.name) || op_.output(operand.name) || op_.attribute(operand.name))
      refuse("a name for each operand, output and attribute", fmt::format("'{}' twice", operand.name));
    if (!dtype_of(operand.type) && !op_.types.count(operand.type)) {
      if (operand.type.size() > 2)
        refuse(fmt::format("an element type, or a name of those in 'types', for '{}'", operand.name),
               fmt::format("'{}'", operand.type));
      // Code computes with float, whatever lies in memory.
      if (in_code_)
        op_.types[operand.type] = {DType::f32, DType::f16, DType::bf16};
      else
        op_.types[operand.type] = {std::begin(kDefaultTypes), std::end(kDefaultTypes)};
    }
    list.push_back(std::move(operand));
  }

  std::string_view text_;
  Place begin_;
  CustomOp op_;
  bool in_code_ = false;
};

}  // namespace

CustomOp read_head(const std::string& file, std::string_view text, const Place& begin) {
  return Head(file, text, begin).read();
}

}  // namespace oclc::custom
