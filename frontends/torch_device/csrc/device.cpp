#include "frontends/torch_device/csrc/device.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "runtime/failure.h"

namespace oclc::torch_device {
namespace {

constexpr std::size_t kMostDevices = 64;

struct Devices {
  std::mutex mutex;
  std::array<std::unique_ptr<Device>, kMostDevices> open;
  std::array<std::atomic<Device*>, kMostDevices> ready{};
  std::atomic<pid_t> process{0};  // that opened the first device
};

// Lives until the process ends: drivers must not be called from destructors of static objects.
Devices& devices() {
  static auto* all = new Devices;
  return *all;
}

thread_local c10::DeviceIndex current = -1;

void open(Device& d) {
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_status status = oclc_device_get(static_cast<std::uint32_t>(d.index), &d.info, &error);
  check_runtime(status, error.message);
  const std::string selection = std::to_string(d.index);
  const char* profile = std::getenv("TORCH_OCL_PROFILE");
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = selection.c_str();
  options.profiling = profile && *profile == '1';
  status = oclc_context_create(&options, &d.runtime, &error);
  check_runtime(status, error.message);
  d.context = oclc_context_cl_context(d.runtime);
  d.queue = oclc_context_cl_queue(d.runtime);
  d.host_memory = d.info.device_class == OCLC_DEVICE_CPU;
  d.profiling = options.profiling;
}

}  // namespace

c10::DeviceIndex device_count() noexcept {
  static const c10::DeviceIndex count = [] {
    std::uint32_t found = 0;
    if (oclc_device_count(&found, nullptr) != OCLC_OK) found = 0;
    return static_cast<c10::DeviceIndex>(found < kMostDevices ? found : kMostDevices);
  }();
  return count;
}

Device& device(c10::DeviceIndex index) {
  Devices& all = devices();
  if (const pid_t process = all.process.load(std::memory_order_relaxed); process != 0)
    TORCH_CHECK(process == ::getpid(),
                "device ocl: Cannot re-initialize ocl in forked subprocess. To use ocl with multiprocessing, you must use the "
                "'spawn' start method (DataLoader: multiprocessing_context='spawn'), or use the device in the child alone");
  TORCH_CHECK(index >= 0 && index < device_count(), "device ocl:", static_cast<int>(index), " is not there: found ",
              static_cast<int>(device_count()), " OpenCL devices; torch.ocl.device_count() gives their number");
  const auto at = static_cast<std::size_t>(index);
  if (Device* d = all.ready[at].load(std::memory_order_acquire)) return *d;
  const std::lock_guard lock(all.mutex);
  if (!all.open[at]) {
    auto d = std::make_unique<Device>();
    d->index = index;
    open(*d);
    all.open[at] = std::move(d);
    all.process = ::getpid();
    all.ready[at].store(all.open[at].get(), std::memory_order_release);
  }
  return *all.open[at];
}

bool is_open(c10::DeviceIndex index) {
  return index >= 0 && index < device_count() && devices().ready[static_cast<std::size_t>(index)].load() != nullptr;
}

c10::DeviceIndex current_device() {
  if (current < 0) {
    static const c10::DeviceIndex first = [] {
      std::uint32_t selected = 0;
      oclc_error error = OCLC_INIT(oclc_error);
      const oclc_status status = oclc_device_select(nullptr, &selected, &error);
      check_runtime(status, error.message);
      return static_cast<c10::DeviceIndex>(selected);
    }();
    current = first;
  }
  return current;
}

void set_current_device(c10::DeviceIndex index) {
  if (index < 0) return;
  TORCH_CHECK(index < device_count(), "device ocl:", static_cast<int>(index), " is not there: found ",
              static_cast<int>(device_count()), " OpenCL devices; torch.ocl.device_count() gives their number");
  current = index;
}

c10::DeviceIndex resolve(c10::Device device) { return device.has_index() ? device.index() : current_device(); }

void synchronize(Device& device) { check(cl::clFinish(device.queue), "waiting for the device"); }

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  TORCH_CHECK_WITH(OutOfMemoryError, !memory, "device ocl: ", what, ": ", cl::cl_error_text(code));
  TORCH_CHECK(false, "device ocl: ", what, ": ", cl::cl_error_text(code));
}

void check_runtime(oclc_status status, const std::string& message) {
  if (status == OCLC_OK) return;
  TORCH_CHECK_WITH(OutOfMemoryError, status != OCLC_E_MEMORY, "device ocl: ", message);
  TORCH_CHECK(false, "device ocl: ", message, " (", oclc_status_name(status), ")");
}

}  // namespace oclc::torch_device
