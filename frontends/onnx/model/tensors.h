// From TensorProto to HostTensor.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/tensor.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/model/external.h"

namespace oclc_onnx {
class TensorProto;
}

namespace oclc::onnx {

// The element type of an ONNX number; CompileError naming `where` if it is unknown or unsupported (complex numbers, ...).
DType element_type(std::int32_t onnx_type, const std::string& where);
// The ONNX number of an element type.
std::int32_t onnx_type(DType dtype);
// The elements as raw_data holds them: numbers of 4 bits two in a byte, the first one in its low half. Not for texts.
std::string raw_data(const HostTensor& tensor);
// ONNX's name of it: "FLOAT".
std::string element_type_name(std::int32_t onnx_type);

// Throws unless type, sizes and the place of the data fit together. Registers external data with `files`.
void check_tensor(const oclc_onnx::TensorProto& tensor, const std::string& where, const ImportLimits& limits,
                  ExternalFiles& files);

// Tensors by their message, each decoded at most once. Data is moved out of the messages, not copied.
class TensorStore {
 public:
  explicit TensorStore(ExternalFiles& files) : files_(files) {}
  // `tensor` was checked before.
  const HostTensor& get(oclc_onnx::TensorProto& tensor);

 private:
  HostTensor decode(oclc_onnx::TensorProto& tensor);
  ExternalFiles& files_;
  std::unordered_map<const oclc_onnx::TensorProto*, HostTensor> decoded_;
};

}  // namespace oclc::onnx
