// Every elementwise operator of the core written again as a formula.
#include "compiler/ops/op_list.h"
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

// Operand types that the operator takes: the first of these that it does.
std::vector<DType> fitting_types(const OpDef& def) {
  for (const DType dtype : {DType::f32, DType::i32, DType::boolean, DType::u32}) {
    std::vector<DType> types(static_cast<std::size_t>(def.min_inputs), dtype);
    if (def.name == "where") types[0] = DType::boolean;
    Graph graph;
    Builder b(graph);
    std::vector<Value*> inputs;
    for (const DType type : types) inputs.push_back(graph.add_input("x", {type, {Expr(2), Expr(3)}}));
    try {
      b.call(def.name, inputs);
      return types;
    } catch (const CompileError&) {
    }
  }
  return {};
}

std::string letters_to(std::size_t count, const std::string& between, const std::string& behind) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i ? between : "") + std::string(1, static_cast<char>('a' + i)) + behind;
  return text;
}

struct Spelling {
  std::string_view op, formula;
};
// Signs beside functions.
constexpr Spelling kSigns[] = {{"add", "a + b"},      {"sub", "a - b"},
                               {"mul", "a * b"},      {"div", "a / b"},
                               {"mod", "a % b"},      {"neg", "-a"},
                               {"not", "!a"},         {"and", "a && b"},
                               {"or", "a || b"},      {"equal", "a == b"},
                               {"less", "a < b"},     {"less_equal", "a <= b"},
                               {"greater", "a > b"},  {"greater_equal", "a >= b"},
                               {"where", "a ? b : c"}};

void same_graph(const OpDef& def, const std::string& formula, const std::string& dims) {
  const std::vector<DType> types = fitting_types(def);
  REQUIRE(!types.empty());
  std::string in;
  for (std::size_t i = 0; i < types.size(); ++i)
    in +=
        (i ? ", \"" : "\"") + std::string(1, static_cast<char>('a' + i)) + ": " + std::string(name_of(types[i])) + dims + "\"";
  std::vector<TensorType> operands;
  for (const DType type : types) operands.push_back({type, {Expr(2), Expr(3)}});
  Graph wanted;
  Builder b(wanted, "use");
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < types.size(); ++i)
    inputs.push_back(wanted.add_input(std::string(1, static_cast<char>('a' + i)), operands[i]));
  Value* y = b.call(def.name, inputs);
  wanted.add_output("y", y);
  const std::string left = dims == "[...]" ? "y" : "y[i, j]";
  const OpUse use = use_of(head("name = \"my.op\"\nin = [" + in + "]\nout = [\"y: " + std::string(name_of(y->type.dtype)) +
                                dims + "\"]\nformula = '" + left + " = " + formula + "'"),
                           operands);
  CHECK_MESSAGE(print_graph(*use.graph) == print_graph(wanted), formula);
}

}  // namespace

TEST_CASE("Each elementwise operator written as a formula gives the same graph") {
  int count = 0;
  for (const OpDef& def : elementwise_ops()) {
    CAPTURE(def.name);
    const auto arity = static_cast<std::size_t>(def.min_inputs);
    same_graph(def, std::string(def.name) + "(" + letters_to(arity, ", ", "") + ")", "[...]");
    same_graph(def, std::string(def.name) + "(" + letters_to(arity, ", ", "[i, j]") + ")", "[M, N]");
    ++count;
  }
  CHECK(count >= 50);
  for (const Spelling& row : kSigns) same_graph(op(row.op), std::string(row.formula), "[...]");
}

}  // namespace oclc::test
