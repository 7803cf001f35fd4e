// The model's inputs and the symbols of their dimensions.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "frontends/onnx/import.h"

namespace oclc_onnx {
class GraphProto;
class ValueInfoProto;
}  // namespace oclc_onnx

namespace oclc::onnx {

// Upper bounds of symbols, by the symbol's name.
using SymbolBounds = std::map<std::string, std::int64_t, std::less<>>;

// "batch size" -> "batch_size".
std::string identifier(std::string_view name);

class Inputs {
 public:
  // Applies --dim and --shape. CompileError if they do not fit the model, or if an input's shape is not known well enough.
  // `empty`: symbols of sizes that may be 0.
  Inputs(const oclc_onnx::GraphProto& graph, const ImportOptions& options, const SymbolBounds& bounds,
         const std::set<std::string>& empty);

  struct Input {
    std::string name;
    TensorType type;
    const HostTensor* value = nullptr;  // of the options, if the input is a constant
  };
  const std::vector<Input>& list() const { return inputs_; }
  // A sequence or an optional; its tensors are inputs of their own: a run of the list.
  struct Sequence {
    std::string name;
    bool none = false;  // an optional without content
    std::size_t first = 0, count = 0;
  };
  const std::vector<Sequence>& sequences() const { return sequences_; }
  const std::vector<Expr>& symbols() const { return symbols_; }  // in order of appearance
  // What the model calls the symbols.
  std::map<std::string, std::string> names() const;

 private:
  Expr dimension(const std::string& input, std::size_t axis, const std::string& param);
  Expr named(const std::string& input, std::size_t axis, const std::string& name);
  // The dimension's name read as an expression of other dimensions, "2*h" or "past + steps"; none if it is just a name.
  std::optional<Expr> expression(const std::string& input, std::size_t axis, const std::string& param);
  // What was given for dimensions whose names are expressions, as values of the symbols in them.
  void solve_expressions();
  void bind(const std::string& name, std::int64_t value, std::int64_t least, const std::string& why);

  // The constructor's steps. The tensors among the model's inputs, and those of its sequences, which `made` holds.
  std::vector<const oclc_onnx::ValueInfoProto*> tensors_of(const oclc_onnx::GraphProto& graph,
                                                           std::deque<oclc_onnx::ValueInfoProto>& made);
  // Shapes that the options give, in themselves or by a value.
  using GivenShapes = std::map<std::string, std::vector<std::int64_t>>;
  GivenShapes given_shapes(const std::vector<const oclc_onnx::ValueInfoProto*>& inputs);
  // Notes the names of an input's open dimensions, and binds those that `given` knows (null: none are given).
  void read_dims(const oclc_onnx::ValueInfoProto& input, const std::vector<std::int64_t>* given, std::set<std::string>& dims);
  void bind_dims(const std::set<std::string>& dims);
  Shape shape_of(const oclc_onnx::ValueInfoProto& input, const std::vector<std::int64_t>* given);
  void add(const oclc_onnx::ValueInfoProto& input, const std::vector<std::int64_t>* given);

  const ImportOptions& options_;
  const SymbolBounds& bounds_;
  const std::set<std::string>& empty_;
  std::map<std::string, HostTensor> constants_;  // of the options
  std::vector<Input> inputs_;
  std::vector<Sequence> sequences_;
  std::vector<Expr> symbols_;
  std::map<std::string, std::int64_t> bound_;  // by the model's name
  std::map<std::string, Expr> by_name_;        // the same
  std::set<std::string> plain_;                // names of dimensions that are no expressions
  std::map<std::string, std::int64_t> usual_;  // sizes of open dimensions by their kind, or 0
  std::map<std::string, std::string> taken_;   // identifiers in use, with the model's name
};

// A text for each way the declared type of an output contradicts the type found.
std::vector<std::string> contradictions(const oclc_onnx::ValueInfoProto& declared, const TensorType& found);

}  // namespace oclc::onnx
