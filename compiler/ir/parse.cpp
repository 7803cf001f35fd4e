#include "compiler/ir/parse.h"

#include <fmt/format.h>

#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/ir/parse_literals.h"
#include "compiler/ir/scanner.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpLookup& find_op) : in_(text), find_op_(find_op) {}

  void symbols() {
    for (;;) {
      in_.lines();
      if (in_.take_word("symbol")) {
        const std::string name = in_.word("a symbol's name");
        const auto [lo, hi] = literals_.bounds();
        literals_.symbols[name] = Expr::symbol(name, lo, hi);
        order_.push_back(literals_.symbols[name]);
      } else if (in_.take_word("axis")) {
        const std::string name = in_.word("an axis' name");
        in_.expect('<');
        const Expr extent = literals_.expression(in_.rest_of_line());
        literals_.symbols[name] = Expr::axis(name, extent);
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
      Value* input = graph->add_input(name, literals_.type());
      input->layout = literals_.layout(input->type.rank());
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
      state.type = literals_.type();
      if (in_.take('='))
        state.initial = literals_.tensor();
      else
        state.initial = HostTensor();
      if (in_.take_word("from")) state.carried_from = in_.text();
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
          attributes.insert_or_assign(key, literals_.attribute());
        }
      }
      if (in_.take(':')) {
        do {
          TensorType stated = literals_.type();
          Layout order = literals_.layout(stated.rank());
          annotations.push_back({std::move(stated), std::move(order)});
        } while (in_.take(','));
      }
    } else {
      const TensorType stated = literals_.type();
      attributes.emplace("tensor", literals_.payload(stated));
      annotations.push_back({stated, literals_.layout(stated.rank())});
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
    } catch (const InternalError& error) {  // attributes or operands that no operator is given elsewhere
      Scanner::fail(line, "what the operator takes", error.what());
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
  Literals literals_{in_};
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
