// Small helpers to write one-operator tests.
#pragma once
#include <string>
#include <vector>

#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"

namespace oclc {

inline HostTensor floats(Ints shape, const std::vector<double>& values, DType dtype = DType::f32) {
  HostTensor t(dtype, std::move(shape));
  if (t.elements() != static_cast<std::int64_t>(values.size())) throw InternalError("number of test values");
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

inline HostTensor ints(Ints shape, const Ints& values, DType dtype = DType::i64) {
  HostTensor t(dtype, std::move(shape));
  if (t.elements() != static_cast<std::int64_t>(values.size())) throw InternalError("number of test values");
  for (std::size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// 1, 2, 3, ...
inline HostTensor counting(Ints shape, DType dtype = DType::f32) {
  HostTensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set_int(i, i + 1);
  return t;
}

inline std::vector<double> values(const HostTensor& t) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < t.elements(); ++i) list.push_back(t.at(i));
  return list;
}

inline Ints int_values(const HostTensor& t) {
  Ints list;
  for (std::int64_t i = 0; i < t.elements(); ++i) list.push_back(t.int_at(i));
  return list;
}

// Builds a graph of one operator on inputs of the tensors' types and evaluates it.
inline HostTensor run(std::string_view name, const std::vector<HostTensor>& inputs, Attributes attributes = {}) {
  Graph graph;
  std::vector<Value*> operands;
  for (const HostTensor& input : inputs)
    operands.push_back(graph.add_input("x" + std::to_string(operands.size()), input.type()));
  Builder builder(graph, "node");
  graph.add_output("y", builder.call(name, operands, std::move(attributes)));
  return evaluate(graph, inputs).at(0);
}

// The text of the CompileError that `f` throws, or "no error".
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace oclc
