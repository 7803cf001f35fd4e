#include "compiler/ir/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/ir/scanner.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Symbols = std::map<std::string, Expr, std::less<>>;

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (text.find_first_not_of(' ') != std::string_view::npos) parts.push_back(text.substr(start));
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> read_number(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const OpLookup& find_op) : in_(text), find_op_(find_op) {}

  void symbols() {
    for (;;) {
      in_.lines();
      if (in_.take_word("symbol")) {
        const std::string name = in_.word("a symbol's name");
        std::int64_t lo = 1, hi = kUnbounded;
        if (in_.take_word("in")) {
          in_.expect('[');
          lo = integer();
          in_.expect(',');
          hi = integer();
          in_.expect(']');
        } else if (in_.take('>')) {
          in_.expect('=');
          lo = integer();
        }
        symbols_[name] = Expr::symbol(name, lo, hi);
        order_.push_back(symbols_[name]);
      } else if (in_.take_word("axis")) {
        const std::string name = in_.word("an axis' name");
        in_.expect('<');
        const Expr extent = expression(in_.rest_of_line());
        symbols_[name] = Expr::axis(name, extent);
      } else {
        return;
      }
      in_.end_of_line();
    }
  }

  std::unique_ptr<Graph> graph() {
    in_.lines();
    if (!in_.take_word("graph")) in_.fail("'graph'");
    return named_graph();
  }

  // After the keyword.
  std::unique_ptr<Graph> named_graph() {
    auto graph = std::make_unique<Graph>();
    graph->name = in_.name("the graph's name");
    Values values;
    in_.expect('(');
    while (!in_.take(')')) {
      if (!graph->inputs().empty()) in_.expect(',');
      const auto [ref, name] = declaration();
      in_.expect(':');
      Value* input = graph->add_input(name, type());
      input->layout = layout(input->type.rank());
      if (!values.emplace(ref, input).second) in_.fail("a new value", "a second %" + ref);
    }
    in_.expect('{');
    in_.end_of_line();
    for (in_.lines(); !in_.take_word("return"); in_.lines()) node(*graph, values);
    while (in_.peek() != '\n' && in_.peek() != '\r' && in_.peek() != '}' && in_.peek() != '\0') {
      if (!graph->outputs().empty()) in_.expect(',');
      const std::string name = in_.name("an output's name");
      in_.expect('=');
      Value* value = reference(values);
      if (!value) in_.fail("a value");
      graph->add_output(name, value);
    }
    in_.lines();
    in_.expect('}');
    return graph;
  }

  Module module() {
    Module module;
    in_.lines();
    if (!in_.take_word("module")) in_.fail("'module'");
    module.name = in_.text();
    symbols();
    module.symbols = order_;
    for (; in_.take_word("state"); in_.lines()) {
      StateVariable state;
      state.name = in_.name("the state's name");
      in_.expect(':');
      state.type = type();
      if (in_.take('='))
        state.initial = tensor();
      else
        state.initial = HostTensor();
      in_.end_of_line();
      module.states.push_back(std::move(state));
    }
    while (!in_.at_end()) module.entries.push_back(graph());
    return module;
  }

  void finish() {
    if (!in_.at_end()) in_.fail("the end of the text");
  }

 private:
  using Values = std::unordered_map<std::string, Value*>;

  std::int64_t integer() {
    const std::string_view text = in_.number();
    const auto value = read_number<std::int64_t>(text);
    if (!value) in_.fail("an integer", fmt::format("'{}'", text));
    return *value;
  }

  Expr expression(std::string_view text) {
    const auto e = parse_expr(trimmed(text), symbols_);
    if (!e) in_.fail("an expression", fmt::format("'{}'", trimmed(text)));
    return *e;
  }

  std::vector<Expr> expressions(std::string_view text) {
    std::vector<Expr> list;
    for (const auto part : split_list(text)) list.push_back(expression(part));
    return list;
  }

  DType dtype() {
    const std::string name = in_.word("an element type");
    const auto dtype = dtype_of(name);
    if (!dtype) in_.fail("an element type", "'" + name + "'");
    return *dtype;
  }

  TensorType type() {
    const DType element = dtype();
    in_.expect('[');
    return {element, expressions(in_.enclosed(']'))};
  }

  Layout layout(std::size_t rank) {
    Layout layout;
    if (!in_.take('@')) return layout;
    in_.expect('[');
    std::vector<bool> seen(rank);
    while (!in_.take(']')) {
      if (!layout.order.empty()) in_.expect(',');
      const std::int64_t dim = integer();
      if (dim < 0 || dim >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(dim)])
        in_.fail("an order of the dimensions", std::to_string(dim));
      seen[static_cast<std::size_t>(dim)] = true;
      layout.order.push_back(static_cast<int>(dim));
    }
    if (layout.order.size() != rank)
      in_.fail(fmt::format("an order of {} dimensions", rank), std::to_string(layout.order.size()));
    return layout;
  }

  // A tensor after its element type and shape.
  HostTensor payload(const TensorType& type) {
    std::vector<std::int64_t> shape;
    for (const Expr& dim : type.shape) {
      if (!dim.is_constant() || dim.value() < 0) in_.fail("a tensor of constant shape", type.text());
      shape.push_back(dim.value());
    }
    HostTensor tensor(type.dtype, std::move(shape));
    const std::int64_t count = tensor.elements();
    if (type.dtype == DType::string) {
      texts(tensor);
      return tensor;
    }
    if (in_.take_word("splat")) {
      const std::string_view value = in_.number();
      for (std::int64_t i = 0; i < count; ++i) set(tensor, i, value);
    } else if (in_.take_word("random")) {
      std::uint64_t state = static_cast<std::uint64_t>(integer());
      for (std::int64_t i = 0; i < count; ++i) {  // splitmix64
        std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        if (is_float(type.dtype))
          tensor.set(i, static_cast<double>(z >> 40) * 0x1p-23 - 1);
        else
          tensor.set_int(i, static_cast<std::int64_t>(type.dtype == DType::boolean ? z >> 63 : z >> 61));
      }
    } else if (in_.take_word("xxh3")) {
      in_.fail("a tensor's values", "its hash alone");
    } else if (in_.take('[')) {
      const auto parts = split_list(in_.enclosed(']'));
      if (static_cast<std::int64_t>(parts.size()) != count)
        in_.fail(fmt::format("{} elements", count), std::to_string(parts.size()));
      for (std::size_t i = 0; i < parts.size(); ++i) set(tensor, static_cast<std::int64_t>(i), trimmed(parts[i]));
    } else {
      if (count != 1) in_.fail(fmt::format("{} elements", count), "one");
      set(tensor, 0, in_.number());
    }
    return tensor;
  }

  void texts(HostTensor& tensor) {
    const std::int64_t count = tensor.elements();
    if (in_.take_word("splat")) {
      const std::string text = in_.text();
      for (std::int64_t i = 0; i < count; ++i) tensor.set_text(i, text);
    } else if (in_.take_word("xxh3")) {
      in_.fail("a tensor's values", "its hash alone");
    } else if (in_.take('[')) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (i > 0) in_.expect(',');
        tensor.set_text(i, in_.text());
      }
      in_.expect(']');
    } else {
      if (count != 1) in_.fail(fmt::format("{} elements", count), "one");
      tensor.set_text(0, in_.text());
    }
  }

  HostTensor tensor() { return payload(type()); }

  void set(HostTensor& tensor, std::int64_t i, std::string_view text) {
    const auto bad = [&] {
      in_.fail(fmt::format("an element of type {}", name_of(tensor.dtype())), fmt::format("'{}'", text));
    };
    switch (tensor.dtype()) {
      case DType::f64: {
        const auto v = read_number<double>(text);
        return v ? tensor.set(i, *v) : bad();
      }
      case DType::f32:
      case DType::f16:
      case DType::bf16:
      case DType::f8e4m3fn:
      case DType::f8e4m3fnuz:
      case DType::f8e5m2:
      case DType::f8e5m2fnuz:
      case DType::f4e2m1: {
        const auto v = read_number<float>(text);
        return v ? tensor.set(i, static_cast<double>(*v)) : bad();
      }
      case DType::boolean:
        return text == "true" || text == "false" ? tensor.set_int(i, text == "true") : bad();
      case DType::u64: {
        const auto v = read_number<std::uint64_t>(text);
        return v ? tensor.set_int(i, static_cast<std::int64_t>(*v)) : bad();
      }
      default: {
        const auto v = read_number<std::int64_t>(text);
        return v ? tensor.set_int(i, *v) : bad();
      }
    }
  }

  Attribute attribute() {
    const char c = in_.peek();
    if (c == '"') return in_.text();
    if (c == '(') {
      in_.take('(');
      return expressions(in_.enclosed(')'));
    }
    if (c == '[') return list();
    for (const bool reals : {true, false}) {
      if (!in_.take_word(reals ? "reals" : "texts")) continue;
      in_.expect('[');
      in_.expect(']');
      if (reals) return std::vector<double>();
      return std::vector<std::string>();
    }
    const std::string_view text = in_.number();
    if (const auto element = dtype_of(text)) {
      if (!in_.take('[')) return *element;
      return payload({*element, expressions(in_.enclosed(']'))});
    }
    if (const auto v = read_number<std::int64_t>(text)) return *v;
    if (const auto v = read_number<double>(text)) return *v;
    in_.fail("an attribute's value", fmt::format("'{}'", text));
  }

  Attribute list() {
    in_.expect('[');
    if (in_.peek() == '"') {
      std::vector<std::string> texts{in_.text()};
      while (!in_.take(']')) {
        in_.expect(',');
        texts.push_back(in_.text());
      }
      return texts;
    }
    std::vector<std::int64_t> ints;
    std::vector<double> reals;
    for (const auto part : split_list(in_.enclosed(']'))) {
      const auto i = read_number<std::int64_t>(part);
      const auto r = read_number<double>(part);
      if (!r) in_.fail("a number", fmt::format("'{}'", trimmed(part)));
      if (i) ints.push_back(*i);
      reals.push_back(*r);
    }
    if (ints.size() == reals.size()) return ints;
    if (!ints.empty()) in_.fail("a list of integers or of reals", "a mixed list");
    return reals;
  }

  // %ref "model's name"
  std::pair<std::string, std::string> declaration() {
    in_.expect('%');
    std::string ref = in_.name("a value's name");
    const bool numbered = ref[0] >= '0' && ref[0] <= '9';
    std::string name = in_.peek() == '"' ? in_.text() : numbered ? std::string() : ref;
    return {std::move(ref), std::move(name)};
  }

  Value* reference(const Values& values) {
    if (in_.take_word("_")) return nullptr;
    in_.expect('%');
    const std::string ref = in_.name("a value's name");
    const auto at = values.find(ref);
    if (at == values.end()) in_.fail("a value defined before", "%" + ref);
    return at->second;
  }

  void node(Graph& graph, Values& values) {
    std::vector<std::pair<std::string, std::string>> results{declaration()};
    while (in_.take(',')) results.push_back(declaration());
    in_.expect('=');
    const std::string name = in_.word("an operator's name");
    const OpDef* def = find_op_(name);
    if (!def) in_.fail("an operator", "'" + name + "'");
    std::vector<Value*> inputs;
    std::map<std::string, Attribute, std::less<>> attributes;
    struct Annotation {
      TensorType type;
      Layout layout;
    };
    std::vector<Annotation> annotations;
    if (in_.take('(')) {
      while (!in_.take(')')) {
        if (!inputs.empty()) in_.expect(',');
        inputs.push_back(reference(values));
      }
      if (in_.take('{')) {
        while (!in_.take('}')) {
          if (!attributes.empty()) in_.expect(',');
          const std::string key = in_.word("an attribute's name");
          in_.expect('=');
          attributes.insert_or_assign(key, attribute());
        }
      }
      if (in_.take(':')) {
        do {
          TensorType stated = type();
          Layout order = layout(stated.rank());
          annotations.push_back({std::move(stated), std::move(order)});
        } while (in_.take(','));
      }
    } else {
      const TensorType stated = type();
      attributes.emplace("tensor", payload(stated));
      annotations.push_back({stated, layout(stated.rank())});
    }
    const std::string source = in_.comment();
    in_.end_of_line();
    const std::size_t line = in_.line();
    std::vector<std::unique_ptr<Graph>> bodies;
    for (in_.lines(); in_.take_word("body"); in_.lines()) bodies.push_back(named_graph());
    Node* node = nullptr;
    try {
      node = graph.add(*def, std::move(inputs), std::move(attributes), source, nullptr, std::move(bodies));
    } catch (const CompileError& error) {
      throw CompileError({.stage = "parse", .wanted = fmt::format("line {}: {}", line, error.what())});
    }
    if (node->outputs.size() != results.size())
      Scanner::fail(line, fmt::format("{} results", node->outputs.size()), std::to_string(results.size()));
    if (!annotations.empty() && annotations.size() != results.size())
      Scanner::fail(line, fmt::format("{} types", results.size()), std::to_string(annotations.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      Value* value = node->output(i);
      value->name = results[i].second;
      if (!values.emplace(results[i].first, value).second) Scanner::fail(line, "a new value", "a second %" + results[i].first);
      if (annotations.empty()) continue;
      if (!(annotations[i].type == value->type)) Scanner::fail(line, value->type.text(), annotations[i].type.text());
      value->layout = annotations[i].layout;
    }
  }

  Scanner in_;
  const OpLookup& find_op_;
  Symbols symbols_;
  std::vector<Expr> order_;
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text, const OpLookup& find_op) {
  Parser parser(text, find_op);
  parser.symbols();
  auto graph = parser.graph();
  parser.finish();
  return graph;
}

Module parse_module(std::string_view text, const OpLookup& find_op) { return Parser(text, find_op).module(); }

}  // namespace oclc
