// A call of an operator taken apart: its tensors in order, and keys that say which plan serves it.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

namespace oclc::torch_device {

struct Call {
  Call(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  const c10::OperatorHandle& op;
  std::size_t begin = 0;  // where the arguments lie on the stack
  std::vector<at::Tensor>
      tensors;                  // of the device or the CPU, those in lists too, in order; numbers that torch wrapped are none
  std::vector<bool> written;    // of each: the operator writes it
  std::vector<double> numbers;  // floating-point arguments in order
  c10::DeviceIndex device = -1;
  bool empty = false;      // a tensor without elements
  bool on_device = false;  // a tensor of the device
  bool mixed = false;      // a tensor of the CPU with axes among them
  bool out = false;        // what it writes is not read
  bool plain = true;       // dense tensors of types that plans have

  enum class Key {
    kExact,    // everything
    kNumbers,  // all but the values of floating-point arguments
    kSizes,    // nor sizes, but for which are equal or 1
  };
  std::string key(Key kind) const;

 private:
  void take(const c10::IValue& value, bool is_written);
  const torch::jit::Stack& stack_;
};

}  // namespace oclc::torch_device
