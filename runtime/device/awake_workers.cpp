#include "runtime/device/awake_workers.h"

#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "runtime/device/quirks.h"

namespace oclc::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than a caller needs between two runs, shorter than anybody notices.
constexpr std::chrono::microseconds kLinger{150};
// As long as it takes to fall asleep and be woken: a longer run needs the caller's core.
constexpr std::chrono::microseconds kLook{20};
constexpr int kLooks = 64;   // at the number of runs, between two of the clock
constexpr int kThreads = 2;  // that linger: on more cores, too, the first two begin, and wake others

}  // namespace

void CL_CALLBACK AwakeWorkers::stay_awake(void* run) {
  const std::uint64_t before = *static_cast<const std::uint64_t*>(run);
  const auto end = Clock::now() + kLinger;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (runs_.load(std::memory_order_acquire) != before) return;
    }
    ::sched_yield();
  } while (Clock::now() < end);
}

std::unique_ptr<AwakeWorkers> AwakeWorkers::make(cl_context context, cl_device_id device, std::uint32_t quirks) {
  const char* wish = std::getenv("OCLC_AWAKE");
  if (!has(quirks, Quirk::workers_sleep) || (wish && std::string_view(wish) == "0")) return nullptr;
  cl_device_exec_capabilities can = 0;
  cl_uint units = 0;
  if (clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, nullptr) != CL_SUCCESS ||
      clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr) != CL_SUCCESS ||
      (can & CL_EXEC_NATIVE_KERNEL) == 0 || units < kThreads)
    return nullptr;
  std::vector<ClQueue> queues;
  for (int i = 0; i < kThreads; ++i) {
    queues.emplace_back(clCreateCommandQueue(context, device, 0, nullptr));
    if (!queues.back()) return nullptr;
  }
  return std::unique_ptr<AwakeWorkers>(new AwakeWorkers(std::move(queues)));
}

AwakeWorkers::~AwakeWorkers() {
  begin();
  if (::getpid() != process_) return;
  for (const ClQueue& queue : queues_) clFinish(queue.get());
}

void AwakeWorkers::linger(cl_event done) {
  std::uint64_t run = runs_.load(std::memory_order_relaxed);
  for (const ClQueue& queue : queues_) {
    if (shared_.load(std::memory_order_relaxed) && &queue != &queues_.front()) return;
    if (clEnqueueNativeKernel(queue.get(), stay_awake, &run, sizeof run, 0, nullptr, nullptr, 1, &done, nullptr) == CL_SUCCESS)
      clFlush(queue.get());
  }
}

void AwakeWorkers::look(cl_event done) {
  const auto end = Clock::now() + kLook;
  cl_int status = CL_QUEUED;
  while (clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status > 0 &&
         Clock::now() < end)
    ::sched_yield();
}

}  // namespace oclc::runtime
