#include "runtime/session/command_buffer.h"

#include <cstdlib>
#include <string_view>

#include "runtime/device/quirks.h"
#include "runtime/failure.h"

namespace oclc::runtime {

bool CommandBuffer::wanted(const Context& context) {
  if (!context.facts().command_buffer) return false;
  if (const char* wish = std::getenv("OCLC_COMMAND_BUFFER"); wish && *wish) return std::string_view(wish) != "0";
  return !has(context.quirks(), Quirk::no_command_buffer);
}

bool CommandBuffer::find(const Context& context, Functions& f) {
  const auto platform = device_value<cl_platform_id>(context.device(), CL_DEVICE_PLATFORM);
  const auto get = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(clGetExtensionFunctionAddressForPlatform(platform, name));
    return function != nullptr;
  };
  return get(f.create, "clCreateCommandBufferKHR") && get(f.finalize, "clFinalizeCommandBufferKHR") &&
         get(f.release, "clReleaseCommandBufferKHR") && get(f.enqueue, "clEnqueueCommandBufferKHR") &&
         get(f.launch, "clCommandNDRangeKernelKHR");
}

std::unique_ptr<CommandBuffer> CommandBuffer::record(const Context& context, const Schedule& schedule) {
  std::unique_ptr<CommandBuffer> result(new CommandBuffer);
  if (!find(context, result->functions_)) return nullptr;
  result->queue_ = context.queue();
  cl_int code = CL_SUCCESS;
  result->buffer_ = result->functions_.create(1, &result->queue_, nullptr, &code);
  if (code != CL_SUCCESS) return nullptr;
  // Each launch waits for the one before it: the queue is in-order, so is its recording.
  cl_sync_point_khr before = 0;
  for (const Schedule::Leaf& leaf : schedule.leaves()) {
    if (leaf.empty) continue;
    for (const Schedule::Leaf::Run& run : leaf.runs) {
      cl_sync_point_khr point = 0;
      const bool first = result->launches_ == 0;
      code = result->functions_.launch(result->buffer_, nullptr, nullptr, run.kernel, leaf.dims, nullptr, leaf.global,
                                       leaf.local, first ? 0 : 1, first ? nullptr : &before, &point, nullptr);
      if (code != CL_SUCCESS) return nullptr;
      before = point;
      ++result->launches_;
    }
  }
  if (result->launches_ == 0 || result->functions_.finalize(result->buffer_) != CL_SUCCESS) return nullptr;
  return result;
}

CommandBuffer::~CommandBuffer() {
  if (buffer_) functions_.release(buffer_);
}

bool CommandBuffer::enqueue() {
  cl_int status = CL_COMPLETE;
  if (last_) clGetEventInfo(last_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (status > CL_COMPLETE) return false;
  cl_event done = nullptr;
  const cl_int code = functions_.enqueue(1, &queue_, buffer_, 0, nullptr, &done);
  // So a driver says that the buffer is pending, which may last a moment longer than its event tells.
  if (code == CL_INVALID_OPERATION) return false;
  check_cl(code, "enqueuing a recorded entry point");
  last_ = ClEvent(done);
  return true;
}

}  // namespace oclc::runtime
