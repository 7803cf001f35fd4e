// Device guard, streams, events and hooks: what torch asks of an accelerator.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "frontends/torch_device/csrc/generator.h"
#include "frontends/torch_device/csrc/memory.h"

namespace oclc::torch_device {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr c10::StreamId kStreams = 32;

// All streams of a device are its one queue: more is ordered than was asked for, nothing less.
thread_local std::array<c10::StreamId, 64> current_stream{};
std::atomic<c10::StreamId> next_stream{1};

c10::Stream stream_of(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index), id);
}

c10::Stream new_stream(c10::Device device) {
  return stream_of(resolve(device), 1 + (next_stream.fetch_add(1) - 1) % (kStreams - 1));
}

cl_ulong event_end(cl_event event) {
  cl_ulong end = 0;
  check(cl::clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr),
        "asking an event for its time");
  return end;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {kType, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kType, "device ocl: wanted a device of this type, found ", device);
    set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) set_current_device(device.index());
  }
  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = resolve(device);
    return stream_of(index, current_stream.at(static_cast<std::size_t>(index)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(resolve(device), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return new_stream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return new_stream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream old = getStream(stream.device());
    current_stream.at(static_cast<std::size_t>(stream.device_index())) = stream.id();
    return old;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index, const c10::EventFlag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "device ocl: the event belongs to ocl:", static_cast<int>(index),
                ", the stream to ", stream.device());
    Device& d = device(stream.device_index());
    cl_event recorded = nullptr;
    check(cl::clEnqueueMarkerWithWaitList(d.queue, 0, nullptr, &recorded), "recording an event");
    check(cl::clFlush(d.queue), "recording an event");
    if (*event) cl::clReleaseEvent(static_cast<cl_event>(*event));
    *event = recorded;
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    // Of another device: its context cannot be waited for by this queue.
    auto waited = static_cast<cl_event>(event);
    cl_command_queue queue = nullptr;
    check(cl::clGetEventInfo(waited, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, nullptr), "asking an event");
    if (queue != device(stream.device_index()).queue) check(cl::clWaitForEvents(1, &waited), "waiting for an event");
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    cl_int status = CL_COMPLETE;
    check(cl::clGetEventInfo(static_cast<cl_event>(event), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
          "asking an event");
    check(status < 0 ? status : CL_SUCCESS, "a command before the event");
    return status == CL_COMPLETE;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event) cl::clReleaseEvent(static_cast<cl_event>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    auto waited = static_cast<cl_event>(event);
    check(cl::clWaitForEvents(1, &waited), "waiting for an event");
  }
  double elapsedTime(void* begin, void* end, const c10::DeviceIndex index) const override {
    TORCH_CHECK(begin && end, "device ocl: both events must be recorded before the time between them is asked for");
    TORCH_CHECK(
        device(index < 0 ? current_device() : index).profiling,
        "device ocl: events have times where the environment variable TORCH_OCL_PROFILE=1 was set before the device was used");
    synchronizeEvent(begin);
    synchronizeEvent(end);
    const cl_ulong a = event_end(static_cast<cl_event>(begin)), b = event_end(static_cast<cl_event>(end));
    return (static_cast<double>(b) - static_cast<double>(a)) * 1e-6;
  }
  bool queryStream(const c10::Stream& stream) const override {
    Device& d = device(stream.device_index());
    cl_event marker = nullptr;
    check(cl::clEnqueueMarkerWithWaitList(d.queue, 0, nullptr, &marker), "asking a stream");
    check(cl::clFlush(d.queue), "asking a stream");
    cl_int status = CL_QUEUED;
    const cl_int code = cl::clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    cl::clReleaseEvent(marker);
    check(code, "asking a stream");
    return status == CL_COMPLETE;
  }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize(device(stream.device_index())); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    synchronize(device(index < 0 ? current_device() : index));
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override { device(current_device()); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return is_open(index); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex old = current_device();
    set_current_device(index);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  c10::Device getDeviceFromPtr(void* data) const override { return device_of(data); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index < 0 ? current_device() : index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index < 0 ? current_device() : index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override { resize_storage(storage, bytes); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

void register_hooks() {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::SetAllocator(kType, &device_allocator());
}

}  // namespace oclc::torch_device
