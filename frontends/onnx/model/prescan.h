// A pass over the bytes of a model before protobuf builds objects of them: two bytes of a file can become hundreds in memory,
// so counts, nesting and names are bounded here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "frontends/onnx/import.h"

namespace oclc::onnx {

struct Counts {
  std::int64_t nodes = 0;
  std::int64_t tensors = 0;
  std::int64_t message_bytes = 0;  // estimated memory of the parsed messages, without tensors' data
};

// CompileError if the bytes are no protobuf message or exceed a limit.
Counts prescan(std::span<const std::byte> bytes, const ImportLimits& limits);

}  // namespace oclc::onnx
