// ONNX TensorProto files (input_0.pb, output_0.pb of a test_data_set), read without protobuf.
#pragma once
#include <string>

#include "tools/io/tensor.h"

namespace oclc::io {

// Throws FileError: damaged wire format, segments, external data, element types without an oclc_dtype, a size that
// does not fit the dimensions.
Tensor read_tensor_proto(const std::string& path);
Tensor parse_tensor_proto(const std::string& bytes, const std::string& where);

}  // namespace oclc::io
