#include "compiler/ir/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr_poly.h"
#include "compiler/ir/op_def.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace oclc {
namespace {

// The shortest text that reads back as the same number and is recognisably not an integer.
std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Control characters and those of `marked` behind a backslash.
std::string escaped(std::string_view text, std::string_view marked) {
  std::string out;
  for (const char c : text) {
    if (marked.find(c) != std::string_view::npos)
      out += fmt::format("\\{}", c);
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 32 || c == 127)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

std::string element_text(const HostTensor& tensor, std::int64_t i) {
  if (tensor.dtype() == DType::boolean) return tensor.int_at(i) != 0 ? "true" : "false";
  if (tensor.dtype() == DType::string) return quoted(tensor.text_at(i));
  if (tensor.dtype() == DType::u64) return fmt::format("{}", static_cast<std::uint64_t>(tensor.int_at(i)));
  if (!is_float(tensor.dtype()) && !is_narrow_float(tensor.dtype())) return fmt::format("{}", tensor.int_at(i));
  const double value = tensor.at(i);
  if (std::isnan(value)) return "nan";
  return tensor.dtype() == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

bool all_equal(const HostTensor& tensor) {
  const std::size_t size = size_bytes(tensor.dtype());
  return tensor.bytes() > 0 && std::memcmp(tensor.data(), tensor.data() + size, tensor.bytes() - size) == 0;
}

std::string payload_text(const HostTensor& tensor, const TextOptions& options) {
  const std::int64_t count = tensor.elements();
  if (count > 1 && all_equal(tensor)) return "splat " + element_text(tensor, 0);
  if (count > options.max_elements && tensor.dtype() == DType::string) {
    std::string all;
    for (std::int64_t i = 0; i < count; ++i) all += tensor.text_at(i) + '\0';
    return fmt::format("xxh3:{:016x}", XXH3_64bits(all.data(), all.size()));
  }
  if (count > options.max_elements) return fmt::format("xxh3:{:016x}", XXH3_64bits(tensor.data(), tensor.bytes()));
  if (count == 1 && tensor.shape().empty()) return element_text(tensor, 0);
  std::string text = "[";
  for (std::int64_t i = 0; i < count; ++i) text += (i ? ", " : "") + element_text(tensor, i);
  return text + "]";
}

template <class T, class Print>
std::string list_text(const std::vector<T>& values, std::string_view empty, Print&& print) {
  if (values.empty()) return std::string(empty);
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + print(values[i]);
  return text + "]";
}

struct AttributeText {
  const TextOptions& options;
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return real_text(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(const std::vector<std::int64_t>& v) const {
    return list_text(v, "[]", [](std::int64_t i) { return std::to_string(i); });
  }
  std::string operator()(const std::vector<double>& v) const { return list_text(v, "reals[]", real_text); }
  std::string operator()(const std::vector<std::string>& v) const { return list_text(v, "texts[]", quoted); }
  std::string operator()(const std::vector<Expr>& v) const {
    const std::string list = text_of(v);
    return "(" + list.substr(1, list.size() - 2) + ")";
  }
  std::string operator()(DType v) const { return std::string(name_of(v)); }
  std::string operator()(const HostTensor& v) const { return print_tensor(v, options); }
};

// Symbols of a graph, by name; those with an extent last since they refer to others.
class SymbolTable {
 public:
  void add(const Expr& e) {
    const ExprPoly* poly = ExprAccess::poly(e);
    if (!poly) return;
    for (const ExprTerm& term : poly->terms) {
      for (const auto& factor : term.factors) {
        if (factor->kind == ExprAtom::Kind::symbol) {
          if (factor->has_extent) add(factor->a);
          (factor->has_extent ? axes_ : plain_).emplace(factor->key, factor.get());
        } else {
          add(factor->a);
          add(factor->b);
        }
      }
    }
  }

  void add(const TensorType& type) {
    for (const Expr& dim : type.shape) add(dim);
  }

  void add(const Graph& graph) {
    for (const auto& input : graph.inputs()) add(input->type);
    for (const Node* node : graph.nodes()) {
      for (const auto& output : node->outputs) add(output->type);
      for (const auto& [name, value] : node->attributes) {
        if (const auto* exprs = std::get_if<std::vector<Expr>>(&value)) {
          for (const Expr& e : *exprs) add(e);
        }
      }
      for (const auto& body : node->bodies) add(*body);
    }
  }

  std::string text() const {
    std::string text;
    for (const auto& [name, atom] : plain_) text += fmt::format("symbol {}{}\n", name, bounds_text(atom->lo, atom->hi));
    for (const auto& [name, atom] : axes_) text += fmt::format("axis {} < {}\n", name, atom->a.text());
    return text;
  }

 private:
  std::map<std::string, const ExprAtom*> plain_, axes_;
};

// A name that stands after '%' as it is: no digit first, none of the characters that end a reference.
bool is_plain_name(std::string_view name) {
  if (name.empty() || name.back() == ':' || (name[0] >= '0' && name[0] <= '9')) return false;
  return name.find_first_of("(),={}[]\"%\\@") == std::string_view::npos && name.find("//") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) > 32 && static_cast<unsigned char>(c) != 127; });
}

class GraphPrinter {
 public:
  GraphPrinter(const TextOptions& options, std::string& out) : options_(options), out_(out) {}

  void print(const Graph& graph, std::string_view keyword, const std::string& indent) {
    out_ += indent + std::string(keyword) + " " + name_text(graph.name) + "(";
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value& input = *graph.inputs()[i];
      out_ += (i ? ", " : "") + declare(input, true) + ": " + typed(input);
    }
    out_ += ") {\n";
    for (const Node* node : graph.nodes()) print(*node, indent + "  ");
    out_ += indent + "  return";
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const auto& [name, value] = graph.outputs()[i];
      out_ += (i ? ", " : " ") + name_text(name) + "=" + reference(value);
    }
    out_ += "\n" + indent + "}\n";
  }

 private:
  // The text that introduces a value. The model's name is kept for inputs and constants.
  std::string declare(const Value& value, bool keep_name) {
    if (keep_name && is_plain_name(value.name) && taken_.insert(value.name).second) return refs_[&value] = "%" + value.name;
    const std::string& ref = refs_[&value] = fmt::format("%{}", next_++);
    return keep_name && !value.name.empty() ? ref + " " + quoted(value.name) : ref;
  }

  std::string reference(const Value* value) const {
    if (!value) return "_";
    const auto at = refs_.find(value);
    return at != refs_.end() ? at->second : "%?";
  }

  static std::string typed(const Value& value) {
    std::string text = value.type.text();
    if (!value.layout.is_row_major()) text += fmt::format(" @[{}]", fmt::join(value.layout.order, ", "));
    return text;
  }

  void print(const Node& node, const std::string& indent) {
    out_ += indent;
    const HostTensor* tensor = nullptr;
    if (node.op->name == "constant" && node.inputs.empty() && node.outputs.size() == 1 && node.attributes.size() == 1) {
      const auto at = node.attributes.find("tensor");
      if (at != node.attributes.end()) tensor = std::get_if<HostTensor>(&at->second);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      out_ += (i ? ", " : "") + declare(*node.outputs[i], tensor != nullptr);
    out_ += " = " + std::string(node.op->name);
    if (tensor) {
      out_ += " " + print_tensor(*tensor, options_);
      const Value& value = *node.outputs[0];
      if (!value.layout.is_row_major()) out_ += fmt::format(" @[{}]", fmt::join(value.layout.order, ", "));
    } else {
      out_ += "(";
      for (std::size_t i = 0; i < node.inputs.size(); ++i) out_ += (i ? ", " : "") + reference(node.inputs[i]);
      out_ += ")";
      if (!node.attributes.empty()) {
        out_ += " {";
        bool first = true;
        for (const auto& [name, value] : node.attributes) {
          out_ += (first ? "" : ", ") + name + "=" + print_attribute(value, options_);
          first = false;
        }
        out_ += "}";
      }
      out_ += " : ";
      for (std::size_t i = 0; i < node.outputs.size(); ++i) out_ += (i ? ", " : "") + typed(*node.outputs[i]);
    }
    if (!node.source.empty()) out_ += "  // " + escaped(node.source, "\\");
    out_ += "\n";
    for (const auto& body : node.bodies) GraphPrinter(options_, out_).print(*body, "body", indent + "  ");
  }

  const TextOptions& options_;
  std::string& out_;
  std::unordered_map<const Value*, std::string> refs_;
  std::unordered_set<std::string> taken_;
  int next_ = 0;
};

}  // namespace

std::string quoted(std::string_view text) { return "\"" + escaped(text, "\"\\") + "\""; }

std::string print_tensor(const HostTensor& tensor, const TextOptions& options) {
  return tensor.type().text() + " " + payload_text(tensor, options);
}

std::string print_attribute(const Attribute& attribute, const TextOptions& options) {
  return std::visit(AttributeText{options}, attribute);
}

std::string bounds_text(std::int64_t lo, std::int64_t hi) {
  if (hi != kUnbounded) return fmt::format(" in [{}, {}]", lo, hi);
  return lo != 1 ? fmt::format(" >= {}", lo) : "";
}

std::string name_text(std::string_view name) { return is_plain_name(name) ? std::string(name) : quoted(name); }

std::string print_graph(const Graph& graph, const TextOptions& options) {
  SymbolTable symbols;
  symbols.add(graph);
  std::string out = symbols.text();
  GraphPrinter(options, out).print(graph, "graph", "");
  return out;
}

std::string print_module(const Module& module, const TextOptions& options) {
  std::string out = "module " + quoted(module.name) + "\n";
  SymbolTable symbols;
  for (const Expr& e : module.symbols) symbols.add(e);
  for (const auto& state : module.states) symbols.add(state.type);
  for (const auto& entry : module.entries) symbols.add(*entry);
  out += symbols.text();
  for (const auto& state : module.states) {
    out += "state " + quoted(state.name) + " : " + state.type.text();
    if (state.initial.data() && state.initial.type() == state.type) out += " = " + print_tensor(state.initial, options);
    if (!state.carried_from.empty()) out += " from " + quoted(state.carried_from);
    out += "\n";
  }
  for (const auto& entry : module.entries) GraphPrinter(options, out).print(*entry, "graph", "");
  return out;
}

}  // namespace oclc
