// Replacing weights in an ONNX model file, without protobuf: everything but the initializers' data is copied byte for byte.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/io/tensor.h"

namespace oclc::io {

// The new value of an initializer, or none: it stays.
using FindWeight = std::function<std::optional<Tensor>(const std::string& name)>;

struct ReplacedWeights {
  std::uint64_t replaced = 0;
  std::vector<std::string> kept;  // initializers without a new value
};

// Writes `model` to `path` (atomically) with the initializers that `find` knows replaced by its values, as raw data within the
// file. Throws FileError: the model is no ONNX file; an initializer has another element type or shape than its value; no
// initializer is known; one that stays lies in a file beside the model and `path` is in another folder; the result would pass
// the 2 GiB that an ONNX file may have.
ReplacedWeights replace_onnx_weights(const std::string& model, const std::string& path, const FindWeight& find);

}  // namespace oclc::io
