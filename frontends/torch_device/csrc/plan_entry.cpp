#include "frontends/torch_device/csrc/plan_entry.h"

#include <ATen/Functions.h>
#include <atomic>
#include <cstddef>

#include "frontends/torch_device/csrc/compiled.h"
#include "frontends/torch_device/csrc/copies.h"

namespace oclc::torch_device {
namespace {

constexpr std::int64_t kScalar = 0;
constexpr std::uint32_t kMostUnflushed = 8;
std::atomic<std::uint64_t> launch_count = 0;

oclc_dtype runtime_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return OCLC_F32;
    case at::kDouble:
      return OCLC_F64;
    case at::kHalf:
      return OCLC_F16;
    case at::kBFloat16:
      return OCLC_BF16;
    case at::kChar:
      return OCLC_I8;
    case at::kShort:
      return OCLC_I16;
    case at::kInt:
      return OCLC_I32;
    case at::kLong:
      return OCLC_I64;
    case at::kByte:
      return OCLC_U8;
    case at::kUInt16:
      return OCLC_U16;
    case at::kUInt32:
      return OCLC_U32;
    case at::kUInt64:
      return OCLC_U64;
    case at::kBool:
      return OCLC_BOOL;
    default:
      TORCH_CHECK(false, "device ocl: plans have no elements of type ", type);
  }
}

}  // namespace

oclc_tensor tensor_at(const at::Tensor& t, at::IntArrayRef shape) {
  static std::byte nothing[16];  // the memory of tensors without elements, which have no storage of the device's
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = runtime_type(t.scalar_type());
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.empty() ? &kScalar : shape.data();
  if (t.numel() == 0) {
    tensor.host = nothing;
  } else {
    const Place place = place_of(t);
    tensor.buffer = place.memory;
    tensor.offset_bytes = place.offset;
  }
  std::uint64_t bytes = t.element_size();
  for (const std::int64_t d : shape) bytes *= static_cast<std::uint64_t>(d);
  tensor.bytes = bytes;
  return tensor;
}

std::uint64_t launches() { return launch_count; }

void enqueue(Device& device, oclc_session* session) {
  const std::lock_guard lock(device.mutex);
  if (const oclc_status status = oclc_session_enqueue_unflushed(session, 0); status != OCLC_OK)
    check_runtime(status, oclc_session_message(session));
  // A flush takes a GPU's driver as long as a launch. Whoever waits, reads or records an event flushes by that.
  static std::atomic<std::uint32_t> unflushed = 0;
  if (device.host_memory || ++unflushed >= kMostUnflushed) {
    unflushed = 0;
    check(cl::clFlush(device.queue), "flushing the queue");
  }
  oclc_stats stats = OCLC_INIT(oclc_stats);
  oclc_session_get_stats(session, &stats);
  launch_count += stats.launches;
}

PlanEntry::PlanEntry(Device& device, const std::string& bytes, std::vector<Input> inputs, std::vector<Output> outputs,
                     std::vector<Result> results, std::vector<std::pair<std::size_t, double>> fixed_numbers)
    : device_(device),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      results_(std::move(results)),
      fixed_numbers_(std::move(fixed_numbers)) {
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_status status = oclc_plan_load_memory(bytes.data(), bytes.size(), &plan_, &error);
  check_runtime(status, error.message);
  status = oclc_session_create(plan_, device.runtime, &session_, &error);
  if (status != OCLC_OK) oclc_plan_release(plan_);
  check_runtime(status, error.message);
}

PlanEntry::~PlanEntry() {
  oclc_session_release(session_);
  oclc_plan_release(plan_);
}

bool PlanEntry::serves(const Call& call) const {
  for (const auto& [at, value] : fixed_numbers_)
    if (call.numbers.at(at) != value) return false;
  return true;
}

void PlanEntry::check_session(oclc_status status) const {
  if (status != OCLC_OK) check_runtime(status, oclc_session_message(session_));
}

at::Tensor PlanEntry::bind_input(const Call& call, const Input& input) {
  at::Tensor held;
  c10::SmallVector<std::int64_t, 8> shape;
  if (input.kind == Input::Kind::kTensor) {
    held = call.tensors[input.tensor];
    if (held.is_cpu()) held = held.to(c10::Device(c10::DeviceType::PrivateUse1, device_.index));
    if (input.permuted) {
      for (const Input::Axis& a : input.axes) shape.push_back(a.expanded ? 1 : held.size(a.axis));
    } else {
      held = in_rows(held);
      shape.assign(held.sizes().begin(), held.sizes().end());
    }
  } else if (input.kind == Input::Kind::kConstant) {
    held = input.constant;
    shape.assign(held.sizes().begin(), held.sizes().end());
  } else {
    const auto count = static_cast<std::int64_t>(input.numbers.size());
    const bool wide = input.dtype == OCLC_F64;
    const auto options =
        at::TensorOptions().device(c10::DeviceType::PrivateUse1, device_.index).dtype(wide ? at::kDouble : at::kFloat);
    held = at::empty({count}, options);
    std::vector<double> doubles;
    std::vector<float> floats;
    for (const std::size_t n : input.numbers) {
      doubles.push_back(call.numbers[n]);
      floats.push_back(static_cast<float>(call.numbers[n]));
    }
    if (wide)
      write(held, doubles.data(), doubles.size() * sizeof(double));
    else
      write(held, floats.data(), floats.size() * sizeof(float));
    shape.push_back(count);
  }
  const oclc_tensor tensor = tensor_at(held, shape);
  check_session(oclc_session_set_input(session_, 0, input.name.c_str(), &tensor));
  return held;
}

at::Tensor PlanEntry::bind_output(std::size_t index, at::Tensor target) {
  const Output& output = outputs_[index];
  if (!target.defined()) {
    const auto options = at::TensorOptions().device(c10::DeviceType::PrivateUse1, device_.index).dtype(output.dtype);
    if (output.fixed) {
      target = at::empty(output.sizes, options);
    } else {
      c10::SmallVector<std::int64_t, 8> shape(output.sizes.size());
      check_session(oclc_session_get_shape(session_, 0, OCLC_OUTPUT, output.name.c_str(), shape.data(),
                                           static_cast<std::uint32_t>(shape.size()), nullptr, nullptr));
      target = at::empty(shape, options);
    }
  }
  if (output.name.empty()) return target;
  const oclc_tensor tensor = tensor_at(target, target.sizes());
  check_session(oclc_session_set_output(session_, 0, output.name.c_str(), &tensor));
  return target;
}

std::vector<at::Tensor> PlanEntry::run(const Call& call, std::vector<at::Tensor> targets) {
  // Copies into rows take the device's lock themselves: they come before.
  std::vector<at::Tensor> held;
  held.reserve(inputs_.size());
  static std::mutex binding;  // sessions are bound by one thread at a time
  const std::lock_guard lock(binding);
  for (const Input& input : inputs_) held.push_back(bind_input(call, input));
  std::vector<at::Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs.push_back(bind_output(i, std::move(targets[i])));
  enqueue(device_, session_);
  return outputs;
}

}  // namespace oclc::torch_device
