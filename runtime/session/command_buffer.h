// Recording an entry point's launches once and replaying them with one call (cl_khr_command_buffer). On PoCL 3.1 it neither
// gains nor costs: a run of seven small launches takes 27 us replayed and 26 to 27 us enqueued one by one.
#pragma once
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <memory>

#include "runtime/session/schedule.h"

namespace oclc::runtime {

class CommandBuffer {
 public:
  // Whether to record on this context: the device has the extension and no quirk against it. OCLC_COMMAND_BUFFER=0 or 1
  // decides.
  static bool wanted(const Context& context);

  // Records the leaves with their present arguments; null if the device refuses.
  static std::unique_ptr<CommandBuffer> record(const Context& context, const Schedule& schedule);

  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;

  // False, with nothing enqueued, while an earlier replay is under way: a buffer may be pending once only.
  bool enqueue();
  std::uint32_t launches() const { return launches_; }

 private:
  struct Functions {
    clCreateCommandBufferKHR_fn create = nullptr;
    clFinalizeCommandBufferKHR_fn finalize = nullptr;
    clReleaseCommandBufferKHR_fn release = nullptr;
    clEnqueueCommandBufferKHR_fn enqueue = nullptr;
    clCommandNDRangeKernelKHR_fn launch = nullptr;
  };
  CommandBuffer() = default;
  static bool find(const Context& context, Functions& functions);

  Functions functions_;
  cl_command_buffer_khr buffer_ = nullptr;
  cl_command_queue queue_ = nullptr;
  ClEvent last_;
  std::uint32_t launches_ = 0;
};

}  // namespace oclc::runtime
