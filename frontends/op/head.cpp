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
#include <fstream>
#include <iterator>
#include <optional>

#include "compiler/support/nearest.h"

namespace oclc::custom {
namespace {

constexpr std::string_view kBegin = "/*! oclc-op ";
constexpr std::size_t kMostBytes = 1 << 20;
constexpr DType kDefaultTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
const std::vector<std::string> kKeys = {"name", "in", "out", "types", "attr", "where", "formula"};

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
    read_name(table);
    read_types(table);
    read_attributes(table);
    for (const auto& [text, node] : texts(table, "in", true)) add_operand(text, op_.in, false);
    for (const auto& [text, node] : texts(table, "out", true)) add_operand(text, op_.out, true);
    for (const auto& [text, node] : texts(table, "where", false)) op_.conditions.push_back({parse_condition(text), text.text});
    const toml::node* formula = table.get("formula");
    if (!formula) fail_at(op_.file, op_.place, "a key 'formula' in the head of " + op_.name, "none");
    op_.lines = parse_lines(text_at(*formula, "formula"));
    return std::move(op_);
  }

 private:
  toml::table parse() const {
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
      op_.types[operand.type] = {std::begin(kDefaultTypes), std::end(kDefaultTypes)};
    }
    list.push_back(std::move(operand));
  }

  std::string_view text_;
  Place begin_;
  CustomOp op_;
};

Place place_in(std::string_view text, std::size_t at) {
  Place place;
  for (std::size_t i = 0; i < at; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

// The first place between `begin` and `end` of text that is neither blank nor inside of a comment.
std::optional<std::size_t> code_in(std::string_view text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (std::isspace(static_cast<unsigned char>(text[i]))) continue;
    const std::string_view rest = text.substr(i, end - i);
    if (rest.starts_with("//")) {
      i = std::min(text.find('\n', i), end);
    } else if (rest.starts_with("/*")) {
      const std::size_t close = text.find("*/", i + 2);
      if (close == text.npos) return i;
      i = close + 1;
    } else {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<CustomOp> read_heads(std::string_view text, const std::string& file) {
  if (text.size() > kMostBytes) fail_at(file, {}, fmt::format("a file of at most {} bytes", kMostBytes), "more");
  std::vector<CustomOp> ops;
  std::size_t behind = 0;
  const auto refuse_code = [&](std::size_t end) {
    if (const auto at = code_in(text, behind, end))
      fail_at(file, place_in(text, *at), "comments alone outside of heads: a formula needs no OpenCL C", "code");
  };
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, behind)) {
    refuse_code(at);
    const std::size_t version = at + kBegin.size();
    const std::size_t begin = std::min(text.find_first_of(" \t\r\n*", version), text.size());
    if (text.substr(version, begin - version) != "1")
      fail_at(file, place_in(text, version), "version 1 of the format",
              fmt::format("'{}'", text.substr(version, std::min<std::size_t>(begin - version, 20))));
    const std::size_t end = text.find("*/", begin);
    if (end == text.npos) fail_at(file, place_in(text, at), "'*/' that ends the head", "none");
    ops.push_back(Head(file, text.substr(begin, end - begin), place_in(text, begin)).read());
    behind = end + 2;
  }
  if (ops.empty()) fail_at(file, {}, fmt::format("a comment that begins '{}1'", kBegin), "none");
  refuse_code(text.size());
  return ops;
}

const Operand* CustomOp::operand(std::string_view wanted) const {
  const auto at = std::find_if(in.begin(), in.end(), [&](const Operand& o) { return o.name == wanted; });
  return at == in.end() ? nullptr : &*at;
}

const Operand* CustomOp::output(std::string_view wanted) const {
  const auto at = std::find_if(out.begin(), out.end(), [&](const Operand& o) { return o.name == wanted; });
  return at == out.end() ? nullptr : &*at;
}

const AttributeRow* CustomOp::attribute(std::string_view wanted) const {
  const auto at = std::find_if(attributes.begin(), attributes.end(), [&](const AttributeRow& a) { return a.name == wanted; });
  return at == attributes.end() ? nullptr : &*at;
}

}  // namespace oclc::custom

namespace oclc {

void CustomOps::add(CustomOps more) {
  for (auto& [name, op] : more.ops_) {
    const auto [at, fresh] = ops_.emplace(name, op);
    if (!fresh)
      custom::fail_at(op->file, op->place, "one operator of a name",
                      fmt::format("'{}' in {}:{} as well", name, at->second->file, at->second->place.line));
  }
}

const custom::CustomOp* CustomOps::find(std::string_view name) const {
  const auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : at->second.get();
}

std::vector<std::string> CustomOps::names() const {
  std::vector<std::string> list;
  for (const auto& [name, op] : ops_) list.push_back(name);
  return list;
}

CustomOps parse_ops(std::string_view text, const std::string& file) {
  CustomOps ops;
  for (custom::CustomOp& read : custom::read_heads(text, file)) {
    custom::check_op(read);
    CustomOps one;
    const std::string name = read.name;
    one.ops_.emplace(name, std::make_shared<const custom::CustomOp>(std::move(read)));
    ops.add(std::move(one));
  }
  return ops;
}

CustomOps load_ops(const std::filesystem::path& file) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(file, error);
  std::ifstream in(file, std::ios::binary);
  if (folder || !in)
    throw CompileError({.stage = "operator",
                        .wanted = fmt::format("a file of operators that can be read as '{}'", file.string()),
                        .found = folder ? "a folder" : "none",
                        .exit_code = ExitCode::io});
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return parse_ops(text, file.filename().string());
}

}  // namespace oclc
