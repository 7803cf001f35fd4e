// Copies between host and device, and between layouts on the device.
#pragma once
#include <ATen/core/Tensor.h>

#include "frontends/torch_device/csrc/memory.h"

namespace oclc::torch_device {

// Of the same element type and sizes, on one device; any strides. Does not wait.
void copy_layout(const at::Tensor& to, const at::Tensor& from);
// A tensor in rows: itself if it lies so.
at::Tensor in_rows(const at::Tensor& tensor);
// Contiguous host memory to a contiguous tensor; the memory may be freed on return. Does not wait for the device.
void write(const at::Tensor& to, const void* host, std::size_t bytes);
// Waits for what was enqueued and reads a contiguous tensor.
void read(const at::Tensor& from, void* host, std::size_t bytes);
at::Tensor to_cpu(const at::Tensor& tensor);

// A kernel of a program of this package, built at its first use on each device.
cl_kernel kernel_of(Device& device, const char* source, const char* name, const std::string& options);
void launch(Device& device, cl_kernel kernel, std::size_t items);

}  // namespace oclc::torch_device
