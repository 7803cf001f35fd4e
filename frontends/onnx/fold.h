// Values that are known when compiling although the graph computes them: shapes that go through floating-point arithmetic, say.
#pragma once
#include <optional>
#include <unordered_map>

#include "compiler/ir/graph.h"

namespace oclc::onnx {

class KnownValues {
 public:
  // The value, if it depends on constants alone and neither it nor what it is computed from has more than 1024 elements.
  std::optional<HostTensor> find(const Value* value);

 private:
  std::optional<HostTensor> compute(const Value* value, int depth);
  std::unordered_map<const Value*, std::optional<HostTensor>> known_;
};

}  // namespace oclc::onnx
