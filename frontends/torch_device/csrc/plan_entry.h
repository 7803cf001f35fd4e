// A plan of the compiler that serves calls of an operator.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "frontends/torch_device/csrc/call.h"
#include "frontends/torch_device/csrc/memory.h"

namespace oclc::torch_device {

// Where an input of a plan comes from.
struct Input {
  enum class Kind { kTensor, kConstant, kNumbers };
  // Axes of a tensor in the order in which they lie in memory; of an expanded axis one element lies there.
  struct Axis {
    std::int64_t axis;
    bool expanded;
  };
  Kind kind = Kind::kTensor;
  std::size_t tensor = 0;  // position among the call's
  bool permuted = false;   // read as it lies, by `axes`; else in rows
  std::vector<Axis> axes;
  at::Tensor constant;
  std::vector<std::size_t> numbers;  // positions among the call's
  std::string name;
  oclc_dtype dtype = OCLC_F32;
};

struct Output {
  std::string name;  // empty: a tensor without elements, which the plan does not have
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes, strides;  // what torch expects; empty strides: rows, of the sizes that the plan finds
  bool fixed = true;                         // `sizes` are those of every call
};

// What the call gives back, in order: first the tensors that it writes, then the other results.
struct Result {
  int output = -1;  // -1: no tensor; -2: the tensor keeps what it holds
};

// A tensor as sessions take it, its elements in rows of this shape.
oclc_tensor tensor_at(const at::Tensor& tensor, at::IntArrayRef shape);
// Enqueues what the session is bound to; the device is locked meanwhile.
void enqueue(Device& device, oclc_session* session);

// Kernels that plans have enqueued, of all devices.
std::uint64_t launches();

class PlanEntry {
 public:
  // Reads the plan and builds its kernels for the device.
  PlanEntry(Device& device, const std::string& bytes, std::vector<Input> inputs, std::vector<Output> outputs,
            std::vector<Result> results, std::vector<std::pair<std::size_t, double>> fixed_numbers);
  ~PlanEntry();
  PlanEntry(const PlanEntry&) = delete;
  PlanEntry& operator=(const PlanEntry&) = delete;

  // Enqueues the plan on the call's tensors. `targets`: of each output memory to write, or an undefined tensor.
  std::vector<at::Tensor> run(const Call& call, std::vector<at::Tensor> targets);

  // Whether the numbers that the plan has for constants are the call's.
  bool serves(const Call& call) const;

  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Result>& results() const { return results_; }

 private:
  at::Tensor bind_input(const Call& call, const Input& input);
  at::Tensor bind_output(std::size_t index, at::Tensor target);
  void check_session(oclc_status status) const;

  Device& device_;
  oclc_plan* plan_ = nullptr;
  oclc_session* session_ = nullptr;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Result> results_;
  std::vector<std::pair<std::size_t, double>> fixed_numbers_;
};

}  // namespace oclc::torch_device
