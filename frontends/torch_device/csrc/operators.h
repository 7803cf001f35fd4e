// Operators with rows of their own: memory, views, copies, random numbers; and the registration of all others.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace oclc::torch_device {

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking);
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to);

void register_hooks();
// run_operator for these operators ("aten::add.Tensor"), which would otherwise take a kernel of torch that serves all devices.
void serve(const std::vector<std::string>& operators);

}  // namespace oclc::torch_device
