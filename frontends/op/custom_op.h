// Operators that users bring in files (docs/custom_operators.md): read, looked up by name, and built into graphs.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/builder.h"
#include "frontends/op/formula.h"

namespace oclc::custom {

// An attribute of the node: integer, number, text, or a list of integers or numbers.
struct AttributeRow {
  std::string name;
  Attribute value;        // the default; of a required one an empty value of its type
  bool required = false;  // has no default
};

struct Condition {
  Formula formula;
  std::string text;
};

struct Code;

// An array in local memory, whose size dimensions and attributes may give.
struct Local {
  std::string type, name;
  Formula elements;
};

struct CustomOp : std::enable_shared_from_this<CustomOp> {
  std::string name;  // "domain.Name"
  std::string file;
  Place place;  // of the head
  std::vector<Operand> in, out;
  std::map<std::string, std::vector<DType>, std::less<>> types;  // which element types a name of one stands for
  std::vector<AttributeRow> attributes;
  std::vector<Condition> conditions;
  std::vector<Line> lines;  // the formula; none of an operator in OpenCL C

  // Of an operator in OpenCL C: a function of elements, or a body over an index space.
  std::string scalar, kernel;
  std::shared_ptr<const Code> code;
  std::vector<Formula> each;  // extents of the space
  std::vector<std::uint32_t> group;
  std::vector<Local> locals;
  std::optional<Formula> flops, bytes;
  std::shared_ptr<const CustomOp> reference;  // the same operands, with a formula
  // The gradients as an operator of formulas over inputs, outputs and gradients of outputs, in this order, those of variable
  // number last; and which input each result belongs to.
  std::shared_ptr<const CustomOp> gradient;
  std::vector<std::size_t> differentiated;
  std::string gradient_op;  // or the name of an operator over gradients of outputs, inputs and outputs
  std::shared_ptr<const CustomOp> gradient_of;
  Place gradient_place;

  std::vector<std::pair<std::size_t, std::size_t>> inplace;  // outputs that may lie where an input does
  bool for_host = false;                                     // in code, or the formulas of an operator in code
  bool ragged = true;                                        // uses of several sizes may share a launch
  std::string identity;                                      // the file's text, which tells operators apart

  bool in_code() const { return !scalar.empty() || !kernel.empty(); }
  const Operand* operand(std::string_view name) const;
  const Operand* output(std::string_view name) const;
  const AttributeRow* attribute(std::string_view name) const;
};

// A dimension or a side of a condition, where names are dimensions and integer attributes. CompileError if it is no size.
Expr size_of(const CustomOp& op, const Formula& f, const Substitution& dims, const Attributes& attributes);

// What a body is built as.
enum class Build {
  plain,
  checked  // one output more: for each point of the space 0, or which call was outside of its operand; see call_place()
};

inline constexpr std::string_view kOutside = "oclc_outside";  // the name of that output

// Where the call with that number stands, and what it says: "volt.cl:14:3: LOAD(pre, ..)".
std::string call_place(const CustomOp& op, int call);

// The core operators of one use. An absent optional input is null; inputs of a variable operand follow the others. Attributes
// that are left out have their defaults. CompileError "file:line:column: .." if it does not fit.
std::vector<Value*> build(Builder& builder, const CustomOp& op, const std::vector<Value*>& inputs, const Attributes& attributes,
                          Build form = Build::plain);

// Adds a use of the operator: inputs of small random sizes, of `dtype` where their types leave a choice that has it; attributes
// at their defaults, required ones 1. Every other seed leaves optional inputs out. `suffix` ends the names of inputs and
// outputs, `sizes` is a line about the sizes. CompileError if sizes like these do not fit the operator.
void add_example(Graph& graph, const CustomOp& op, DType dtype, unsigned seed, const std::string& suffix, std::string& sizes,
                 Build form = Build::plain);
// A graph with one use.
std::unique_ptr<Graph> example(const CustomOp& op, DType dtype, unsigned seed, std::string& sizes, Build form = Build::plain);

}  // namespace oclc::custom

namespace oclc {

class CustomOps {
 public:
  // CompileError if there is an operator of one of the names.
  void add(CustomOps more);
  const custom::CustomOp* find(std::string_view name) const;
  std::vector<std::string> names() const;
  bool empty() const { return ops_.empty(); }

 private:
  friend CustomOps parse_ops(std::string_view text, const std::string& file);
  std::map<std::string, std::shared_ptr<const custom::CustomOp>, std::less<>> ops_;
};

// The operators of a file. CompileError "file:line:column: wanted .., found ..", or of exit code `io` if it cannot be read.
CustomOps load_ops(const std::filesystem::path& file);
// The same from text; `file` is what messages call it.
CustomOps parse_ops(std::string_view text, const std::string& file);

}  // namespace oclc
