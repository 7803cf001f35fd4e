// The OpenCL devices behind torch's device `ocl`: index i is device i of the runtime's list.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <string>

#include "oclc/oclc.h"
#include "runtime/device/opencl.h"

namespace oclc::torch_device {

namespace cl = ::oclc::runtime;

struct Device {
  c10::DeviceIndex index = 0;
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  oclc_context* runtime = nullptr;
  ::cl_context context = nullptr;
  cl_command_queue queue = nullptr;  // in-order: what is enqueued later sees what earlier commands wrote
  bool host_memory = false;          // buffers lie in memory of this process, and data_ptr() points to it
  bool profiling = false;
  std::mutex mutex;  // sessions and kernels of this device are used by one thread at a time
};

// 0 where there is no OpenCL or no device; never throws.
c10::DeviceIndex device_count() noexcept;
// Opens the device at the first call. Error for an index that is not there, and in a child of a process that opened it.
Device& device(c10::DeviceIndex index);
bool is_open(c10::DeviceIndex index);

// Of this thread; at first the one that the runtime selects (OCLC_DEVICE, else the first GPU, else the first device).
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);
c10::DeviceIndex resolve(c10::Device device);

// Waits for all that was enqueued.
void synchronize(Device& device);

// An exception of torch unless the code is CL_SUCCESS: OutOfMemoryError where memory ran out.
void check(cl_int code, const char* what);
// The same for calls of the runtime; `message` is its text.
void check_runtime(oclc_status status, const std::string& message);

}  // namespace oclc::torch_device
