#include "frontends/torch_device/csrc/graph_plan.h"

#include <ATen/Functions.h>

#include "frontends/torch_device/csrc/copies.h"
#include "frontends/torch_device/csrc/plan_entry.h"

namespace oclc::torch_device {

GraphPlan::GraphPlan(c10::DeviceIndex index, const std::string& bytes, std::vector<std::string> inputs,
                     std::vector<std::string> outputs)
    : device_(device(index)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  oclc_error error = OCLC_INIT(oclc_error);
  check_runtime(oclc_plan_load_memory(bytes.data(), bytes.size(), &plan_, &error), error.message);
  const oclc_status status = oclc_session_create(plan_, device_.runtime, &session_, &error);
  if (status != OCLC_OK) oclc_plan_release(plan_);
  check_runtime(status, error.message);
}

GraphPlan::~GraphPlan() {
  oclc_session_release(session_);
  oclc_plan_release(plan_);
}

void GraphPlan::check_session(oclc_status status) const {
  if (status != OCLC_OK) check_runtime(status, oclc_session_message(session_));
}

void GraphPlan::run(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
                    const std::vector<std::pair<std::string, std::int64_t>>& dims) {
  TORCH_CHECK(inputs.size() == inputs_.size() && outputs.size() == outputs_.size(), "device ocl: the plan takes ",
              inputs_.size(), " tensors and gives ", outputs_.size(), ", found ", inputs.size(), " and ", outputs.size());
  std::vector<at::Tensor> written;  // in rows, as the plan writes
  written.reserve(outputs.size());
  for (const at::Tensor& t : outputs) written.push_back(t.is_contiguous() ? t : at::empty(t.sizes(), t.options()));
  {
    const std::lock_guard lock(mutex_);
    if (dims != dims_) {
      for (const auto& [name, value] : dims) check_session(oclc_session_bind_dim(session_, name.c_str(), value));
      dims_ = dims;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const oclc_tensor tensor = tensor_at(inputs[i], inputs[i].sizes());
      check_session(oclc_session_set_input(session_, 0, inputs_[i].c_str(), &tensor));
    }
    for (std::size_t i = 0; i < written.size(); ++i) {
      const oclc_tensor tensor = tensor_at(written[i], written[i].sizes());
      check_session(oclc_session_set_output(session_, 0, outputs_[i].c_str(), &tensor));
    }
    enqueue(device_, session_);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].is_contiguous()) copy_layout(outputs[i], written[i]);
}

}  // namespace oclc::torch_device
