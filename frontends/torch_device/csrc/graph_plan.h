// Plans of graphs of torch.compile on tensors of the device.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "frontends/torch_device/csrc/device.h"

namespace oclc::torch_device {

class GraphPlan {
 public:
  // `inputs`, `outputs`: their names in the order in which `run` takes them.
  GraphPlan(c10::DeviceIndex index, const std::string& bytes, std::vector<std::string> inputs,
            std::vector<std::string> outputs);
  ~GraphPlan();
  GraphPlan(const GraphPlan&) = delete;
  GraphPlan& operator=(const GraphPlan&) = delete;

  // Enqueues the plan. Inputs lie on the device in rows; outputs may be strided. `dims`: sizes that no input's shape gives.
  void run(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
           const std::vector<std::pair<std::string, std::int64_t>>& dims);

 private:
  void check_session(oclc_status status) const;

  Device& device_;
  oclc_plan* plan_ = nullptr;
  oclc_session* session_ = nullptr;
  std::vector<std::string> inputs_, outputs_;
  std::vector<std::pair<std::string, std::int64_t>> dims_;  // that are bound
  std::mutex mutex_;                                        // a session is bound and enqueued by one thread at a time
};

}  // namespace oclc::torch_device
