// What of a plan's constants is stored as integers of few bits: those of quantised models, whatever they were packed into.
#pragma once
#include <memory>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "runtime/package/quantized_constants.h"

namespace oclc {

// The tensor's bytes as runs of which those that are integers of 8 or 4 bits times scales are stored so, to the last bit what
// they were; of other types than f32 and bf16, blocks of zeros. Empty where nothing is.
std::vector<package::QuantizedPart> quantized_parts(const HostTensor& tensor);

// A constant of the section: its bytes, and how the plan may store them.
struct StoredConstant {
  std::shared_ptr<HostTensor> tensor;
  std::vector<package::QuantizedPart> parts;

  static StoredConstant of(const Buffer& buffer);
  static StoredConstant of(const HostTensor& initial);
};

}  // namespace oclc
