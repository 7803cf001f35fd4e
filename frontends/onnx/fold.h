// Values that are known when compiling although the graph computes them: shapes that go through floating-point arithmetic, say.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>

#include "compiler/ir/graph.h"

namespace oclc::onnx {

class KnownValues {
 public:
  // `input_value` gives the value of a graph input, if the caller knows it; it is asked for inputs of at most 1024 elements.
  explicit KnownValues(std::function<std::optional<HostTensor>(const Value*)> input_value)
      : input_value_(std::move(input_value)) {}

  // The value, if it depends on constants and known inputs alone and neither it nor what it is computed from has more than 1024
  // elements.
  std::optional<HostTensor> find(const Value* value);

 private:
  std::function<std::optional<HostTensor>(const Value*)> input_value_;
  std::optional<HostTensor> compute(const Value* value, int depth);
  std::unordered_map<const Value*, std::optional<HostTensor>> known_;
};

}  // namespace oclc::onnx
