// From a file to a parsed, not yet validated model.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "frontends/onnx/import.h"

namespace oclc_onnx {
class ModelProto;
}

namespace oclc::onnx {

// Contents of a regular file of at most `limit` bytes. CompileError (I/O) otherwise; FIFOs and devices are refused unread.
std::vector<std::byte> read_model_file(const std::filesystem::path& file, const ImportLimits& limits);

// CompileError if the bytes are no ONNX model within the limits; says what they look like instead.
std::unique_ptr<oclc_onnx::ModelProto> parse_model(std::span<const std::byte> bytes, const ImportOptions& options);

}  // namespace oclc::onnx
