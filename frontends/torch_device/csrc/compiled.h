// Operators by plans of the compiler: one boxed function for all that have no row of their own.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <pybind11/pybind11.h>

#include <map>
#include <string>

#include "frontends/torch_device/csrc/memory.h"

namespace oclc::torch_device {

// Runs an operator on what lies on the stack. A call that differs from all earlier ones in operator, element types, sizes,
// strides or other arguments asks the tracer (see set_tracer) for a plan; what it refuses runs on the CPU and is counted.
void run_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The tensor in another element type, in rows.
at::Tensor convert(const at::Tensor& tensor, at::ScalarType dtype);

// The function of Python that makes a plan of a call, see oclc_torch/trace.py.
void set_tracer(pybind11::object tracer);

struct Counters {
  std::uint64_t calls = 0;     // operators that ran by plans
  std::uint64_t traced = 0;    // plans asked of the tracer
  std::uint64_t in_place = 0;  // results that took a storage's place, or were written where they belong
  std::uint64_t copied = 0;    // results that were copied to where they belong
};
Counters counters();

struct Fallback {
  std::uint64_t count = 0;
  std::string reason;
};
// By operator: what ran on the CPU.
std::map<std::string, Fallback> fallbacks();

}  // namespace oclc::torch_device
