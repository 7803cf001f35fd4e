#include "runtime/awake_worker.h"

#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "runtime/quirks.h"

namespace oclc::runtime {
namespace {

// Longer than a caller needs between two runs, shorter than anybody notices.
constexpr std::chrono::microseconds kLinger{150};
constexpr int kLooks = 64;  // at the number of runs, between two of the clock

struct Lingering {
  const std::atomic<std::uint64_t>* runs;
  std::uint64_t run;
};

// Yields to whoever wants the core.
void CL_CALLBACK stay_awake(void* argument) {
  const Lingering l = *static_cast<const Lingering*>(argument);
  const auto end = std::chrono::steady_clock::now() + kLinger;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (l.runs->load(std::memory_order_acquire) != l.run) return;
    }
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

std::unique_ptr<AwakeWorker> AwakeWorker::make(cl_context context, cl_device_id device, std::uint32_t quirks) {
  const char* wish = std::getenv("OCLC_AWAKE");
  if (!has(quirks, Quirk::workers_sleep) || (wish && std::string_view(wish) == "0")) return nullptr;
  cl_device_exec_capabilities can = 0;
  cl_uint units = 0;
  if (clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, nullptr) != CL_SUCCESS ||
      clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr) != CL_SUCCESS ||
      (can & CL_EXEC_NATIVE_KERNEL) == 0 || units < 2)
    return nullptr;
  ClQueue queue(clCreateCommandQueue(context, device, 0, nullptr));
  return queue ? std::unique_ptr<AwakeWorker>(new AwakeWorker(std::move(queue))) : nullptr;
}

AwakeWorker::~AwakeWorker() {
  begin();
  if (::getpid() == process_) clFinish(queue_.get());
}

void AwakeWorker::linger(cl_event done) {
  Lingering l{&runs_, runs_.load(std::memory_order_relaxed)};
  if (clEnqueueNativeKernel(queue_.get(), stay_awake, &l, sizeof l, 0, nullptr, nullptr, 1, &done, nullptr) == CL_SUCCESS)
    clFlush(queue_.get());
}

}  // namespace oclc::runtime
