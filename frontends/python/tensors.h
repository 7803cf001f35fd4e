// Memory of Python's objects as tensors of the runtime, and results as numpy arrays.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

#include "oclc/oclc.h"

namespace oclc::python {

// An input or output of a plan.
struct Port {
  std::string name, shape_text;
  oclc_dtype dtype = OCLC_F32;
  std::uint32_t rank = 0;
  bool open = false;  // its size is known after a run alone
};

// A tensor of the runtime and what owns its memory. Moving it leaves the pointers valid.
struct HeldTensor {
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  std::vector<std::int64_t> shape;
  std::vector<std::string> texts;          // of strings
  std::vector<const char*> text_pointers;  // of strings
  nanobind::object owner;
  bool copied = false;  // the object was strided: `owner` is a copy in rows

  // Points tensor at shape.
  const oclc_tensor* get();
};

// Memory of `object`: what has __dlpack__ on the CPU (numpy, torch) or in OpenCL, or the buffer protocol. A strided object is
// copied once. Raises TypeError for anything else. For element types that numpy lacks, unsigned integers of the same size
// hold the bits.
HeldTensor input_tensor(nanobind::handle object, const Port& port);
// The same for memory to be written: contiguous and writable, else ValueError.
HeldTensor output_tensor(nanobind::handle object, const Port& port);
// New memory for an output of this shape, at a multiple of 4096 bytes and padded to 64; `bytes`: of its largest shape.
HeldTensor new_output(const Port& port, std::vector<std::int64_t> shape, std::uint64_t bytes);
// The array over the memory of new_output(), of the shape that the run found.
nanobind::object as_array(const HeldTensor& memory, const std::vector<std::int64_t>& shape);

}  // namespace oclc::python
