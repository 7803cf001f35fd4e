// What an operator is: one OpDef value. Passes ask these facts; they do not switch on names.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

enum class OpKind {
  elementwise,  // out[i] = f(in_0[i], in_1[i], ...) with numpy broadcasting
  reduction,    // combines over axes
  row,          // reductions over the trailing axes with elementwise work between: softmax, layer norm
  contraction,  // sums of products: matmul, conv
  window,       // reductions over a sliding window: pooling
  movement,     // moves elements without computing: an index map
  indexing,     // reads at positions given by a tensor
  generator,    // no tensor inputs: constants, iota, expressions
  control,      // holds sub-graphs
  host,         // on texts, computed by the host between launches: see host_op.h
  scan,         // running combination along an axis
  opaque
};

// One elementwise operation on scalars. `a`, `b`, `c` in the text are replaced by the operands.
struct ScalarOp {
  std::string_view float_text;    // OpenCL C, valid for scalars and vectors of floats; empty: not for floats
  std::string_view integer_text;  // the same for integers; empty: not for integers
  double (*on_float)(double a, double b, double c) = nullptr;  // reference, in double
  std::int64_t (*on_int)(std::int64_t a, std::int64_t b, std::int64_t c) = nullptr;
  std::int64_t (*on_u64)(std::int64_t a, std::int64_t b, std::int64_t c) = nullptr;  // u64 bits; null: on_int serves
  bool result_is_bool = false;                                                       // comparisons and logic
  double flops = 1;
};

struct Cost {
  Expr flops = 0;
};

// Of all nodes; those without a cost have none.
Expr flops_of(const Graph& graph);

class Builder;

// The gradients of the node's inputs, one each (null: none flows there), from those of its outputs (null: zero), in core
// operators that `builder` adds. Reverse mode: the result has the type of the input.
using GradientFunction = std::vector<Value*> (*)(Builder& builder, const Node& node, std::span<Value* const> gradients);

// InternalError reporting aside, functions throw CompileError (without node and stage, which Graph::add fills in).
struct OpDef {
  std::string_view name;
  OpKind kind = OpKind::opaque;
  std::string_view formula;  // documentation, one line
  int min_inputs = 0, max_inputs = 0;
  // Types of the outputs.
  std::vector<TensorType> (*infer)(const Node& node) = nullptr;
  // The slow, obviously right reference. Inputs are in the node's order; absent optional inputs are tensors without elements.
  // `symbols` binds the symbols of expression attributes and types.
  std::vector<HostTensor> (*eval)(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) = nullptr;
  // Content of output 0 as expressions, from the inputs' contents; nothing if unknown. Optional.
  std::optional<std::vector<Expr>> (*content)(const Node& node) = nullptr;
  Cost (*cost)(const Node& node) = nullptr;
  const ScalarOp* scalar = nullptr;     // elementwise only
  GradientFunction gradient = nullptr;  // null: not known
};

// Numeric contract: operations are IEEE single precision with round to nearest; sums may be reordered and contracted to fma;
// NaN propagates through max, min and relu; integers wrap; division of them by zero gives 0; shifts by the width or more give
// 0. 16-bit floats are computed with in single precision and rounded where they are stored, and where they are cast to.

}  // namespace oclc
