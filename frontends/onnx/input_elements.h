// What the options say of one input of a model: its value in numbers, the tensors that a sequence stands for.
#pragma once
#include <oclc_onnx.pb.h>

#include <string>
#include <vector>

#include "compiler/ir/tensor.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/inputs.h"

namespace oclc::onnx {

// "input 'x'", in messages.
std::string where_of(const std::string& input);
// Exporters write -1 for a size that is not known.
bool is_open(const oclc_onnx::TensorShapeProto::Dimension& dim);
// The numbers as the value of `input`: one number for all of its elements, or one of each; a vector of open length has as many.
HostTensor value_of_text(const oclc_onnx::ValueInfoProto& input, const std::vector<std::string>& numbers);
// The tensors that an input of a sequence or an optional stands for.
std::vector<oclc_onnx::ValueInfoProto> elements_of(const oclc_onnx::ValueInfoProto& input, const ImportOptions& options,
                                                   Inputs::Sequence& sequence);

}  // namespace oclc::onnx
