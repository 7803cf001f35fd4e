// Graphs of operators from files, for tests.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/ops/reference/evaluate.h"
#include "frontends/op/custom_op.h"
#include "tests/support/run_plan.h"

namespace oclc::test {

// The text of a file with one head.
inline std::string head(const std::string& body) { return "/*! oclc-op 1\n" + body + "\n*/\n"; }

struct OpUse {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<Value*> results;
};

// One use of the file's only operator on inputs of these types, named a, b, c, ..; every result is an output.
inline OpUse use_of(const std::string& text, const std::vector<TensorType>& types, const Attributes& attributes = {}) {
  const CustomOps ops = parse_ops(text, "op.cl");
  const custom::CustomOp& op = *ops.find(ops.names().at(0));
  OpUse use;
  Builder b(*use.graph, "use");
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < types.size(); ++i)
    inputs.push_back(use.graph->add_input(std::string(1, static_cast<char>('a' + i)), types[i]));
  use.results = custom::build(b, op, inputs, attributes);
  for (std::size_t i = 0; i < use.results.size(); ++i) use.graph->add_output(op.out[i].name, use.results[i]);
  return use;
}

inline TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }
inline TensorType i64(Shape shape) { return {DType::i64, std::move(shape)}; }

inline HostTensor floats(const std::vector<double>& values, std::vector<std::int64_t> shape) {
  HostTensor tensor(DType::f32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

inline std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.at(i));
  return values;
}

// What is wrong, "no error" if nothing is.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const CompileError& error) {
    CHECK(error.parts().stage == "operator");
    return error.what();
  }
  return "no error";
}

}  // namespace oclc::test
