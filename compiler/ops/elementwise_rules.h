// What the rows of elementwise.cpp share: inference, reference, content and cost.
#pragma once
#include "compiler/ir/op_def.h"

namespace oclc {

enum class Accepts {
  floats,
  numbers,  // floats and integers
  booleans,
  integers,
  any,
  words,      // u32
  condition,  // the first operand bool, the others any
};

struct ElementwiseRow {
  std::string_view name;
  int arity;
  Accepts accepts;
  std::string_view formula;
  ScalarOp scalar;
  GradientFunction gradient;
};

// The row must outlive the definition.
OpDef elementwise_def(const ElementwiseRow& row);

}  // namespace oclc
