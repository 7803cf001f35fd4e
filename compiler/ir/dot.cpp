#include "compiler/ir/dot.h"

#include <fmt/format.h>

#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/ir/text.h"

namespace oclc {
namespace {

// The inside of a quoted dot string; lines end with \l (left aligned). Backslashes and quotes of names are escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      out += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

std::string_view fill(OpKind kind) {
  switch (kind) {
    case OpKind::elementwise:
      return "#e8f4e8";
    case OpKind::contraction:
      return "#f9dcc4";
    case OpKind::row:
    case OpKind::reduction:
    case OpKind::window:
    case OpKind::scan:
      return "#dbe7f5";
    case OpKind::movement:
    case OpKind::indexing:
      return "#f5f5f5";
    case OpKind::control:
      return "#efe0f5";
    default:
      return "#ffffff";
  }
}

class DotPrinter {
 public:
  std::string out;

  void print(const Graph& graph, const std::string& prefix, const std::string& indent) {
    std::unordered_map<const Value*, std::string> made;
    for (const auto& input : graph.inputs()) {
      const std::string id = fmt::format("{}i{}", prefix, input->index);
      out += fmt::format("{}{} [label=\"{}\\l{}\\l\", shape=ellipse];\n", indent, id, escaped(input->name),
                         escaped(input->type.text()));
      made[input.get()] = id;
    }
    for (const Node* node : graph.nodes()) {
      if (node->op->name == "constant") continue;
      const std::string id = fmt::format("{}n{}", prefix, node->id);
      out += fmt::format("{}{} [label=\"{}\", fillcolor=\"{}\"];\n", indent, id, label(*node), fill(node->op->kind));
      for (const auto& output : node->outputs) made[output.get()] = id;
      for (const Value* input : node->inputs) {
        if (!input || !made.count(input)) continue;
        out += fmt::format("{}{} -> {} [label=\"{}\"];\n", indent, made[input], id, escaped(input->type.text()));
      }
      for (std::size_t i = 0; i < node->bodies.size(); ++i) {
        const std::string inner = fmt::format("{}_b{}_", id, i);
        out += fmt::format("{}subgraph cluster_{} {{\n", indent, inner);
        print(*node->bodies[i], inner, indent + "  ");
        out += indent + "}\n";
      }
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const auto& [name, value] = graph.outputs()[i];
      const std::string id = fmt::format("{}o{}", prefix, i);
      out +=
          fmt::format("{}{} [label=\"{}\\l{}\\l\", shape=ellipse];\n", indent, id, escaped(name), escaped(value->type.text()));
      if (made.count(value)) out += fmt::format("{}{} -> {};\n", indent, made[value], id);
    }
  }

 private:
  static std::string label(const Node& node) {
    std::string text = escaped(node.op->name) + "\\l";
    if (!node.source.empty()) text += escaped(node.source) + "\\l";
    for (const auto& [name, value] : node.attributes) text += escaped(name + " = " + print_attribute(value)) + "\\l";
    for (const Value* input : node.inputs) {
      if (const HostTensor* tensor = constant_of(input))
        text += escaped(tensor->elements() == 1 ? print_tensor(*tensor) : input->name + " " + input->type.text()) + "\\l";
    }
    return text;
  }
};

}  // namespace

std::string print_dot(const Graph& graph) {
  DotPrinter printer;
  printer.out =
      fmt::format("digraph \"{}\" {{\n  node [shape=box, style=filled, fontname=\"monospace\", fillcolor=\"#ffffff\"];\n",
                  escaped(graph.name));
  printer.print(graph, "", "  ");
  return printer.out + "}\n";
}

}  // namespace oclc
