// An OpenCL of one device that executes nothing: for OCLC_OPENCL. A launch fills the buffers that its kernel may write with
// numbers by chance, as the worst of kernels could, so that whatever the host reads from the device is wild. What drivers
// follow without a look (pointers that are no objects, transfers beyond a buffer, memory that was released) ends the process
// with a text.
#include <CL/cl.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/fake_opencl/calls.h"

using oclc::fake::answer;
using oclc::fake::check_waits;
using oclc::fake::checked;
using oclc::fake::done;
using oclc::fake::fault;
using oclc::fake::made;
using oclc::fake::not_made;

struct _cl_platform_id {};
struct _cl_device_id {};

namespace {

_cl_platform_id the_platform;
_cl_device_id the_device;

cl_mem transfer(cl_command_queue queue, cl_mem memory, std::size_t offset, std::size_t bytes, const char* call) {
  checked(queue, "queue", call);
  checked(memory, "memory object", call);
  if (offset > memory->bytes || bytes > memory->bytes - offset)
    fault("%s: bytes %zu to %zu + %zu of a buffer of %zu", call, offset, offset, bytes, memory->bytes);
  memory->check();
  return memory;
}

cl_int retain(void* object, const char* kind) {
  FAKE_LOCK;
  ++checked(object, kind, "retain")->references;
  return CL_SUCCESS;
}
cl_int release(void* object, const char* kind) {
  FAKE_LOCK;
  oclc::fake::Object* found = checked(object, kind, "release");
  if (--found->references == 0) delete found;
  return CL_SUCCESS;
}

}  // namespace

#define FAKE_REFERENCES(type, kind, name)                                       \
  FAKE_CALL cl_int clRetain##name(type object) { return retain(object, kind); } \
  FAKE_CALL cl_int clRelease##name(type object) { return release(object, kind); }
FAKE_REFERENCES(cl_context, "context", Context)
FAKE_REFERENCES(cl_command_queue, "queue", CommandQueue)
FAKE_REFERENCES(cl_event, "event", Event)
FAKE_REFERENCES(cl_program, "program", Program)
FAKE_REFERENCES(cl_kernel, "kernel", Kernel)
FAKE_REFERENCES(cl_mem, "memory object", MemObject)

// For tests: how many objects live.
FAKE_CALL long fake_opencl_objects() {
  FAKE_LOCK;
  return oclc::fake::alive();
}

FAKE_CALL cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  if (count) *count = 1;
  if (platforms && room > 0) platforms[0] = &the_platform;
  return CL_SUCCESS;
}

FAKE_CALL cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info what, size_t room, void* value, size_t* size) {
  if (what == CL_PLATFORM_VERSION) return answer(std::string("OpenCL 1.2 fake"), room, value, size);
  if (what == CL_PLATFORM_EXTENSIONS) return answer(std::string(), room, value, size);
  return answer(std::string("Fake platform"), room, value, size);
}

FAKE_CALL cl_int clGetDeviceIDs(cl_platform_id, cl_device_type type, cl_uint room, cl_device_id* devices, cl_uint* count) {
  if ((type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT)) == 0) return CL_DEVICE_NOT_FOUND;
  if (count) *count = 1;
  if (devices && room > 0) devices[0] = &the_device;
  return CL_SUCCESS;
}

FAKE_CALL cl_int clGetDeviceInfo(cl_device_id, cl_device_info what, size_t room, void* value, size_t* size) {
  constexpr cl_ulong kMemory = cl_ulong{4} << 30;
  switch (what) {
    case CL_DEVICE_TYPE:
      return answer(cl_device_type{CL_DEVICE_TYPE_CPU}, room, value, size);
    case CL_DEVICE_PLATFORM:
      return answer(cl_platform_id{&the_platform}, room, value, size);
    case CL_DEVICE_NAME:
      return answer(std::string("Fake device"), room, value, size);
    case CL_DEVICE_VENDOR:
    case CL_DRIVER_VERSION:
      return answer(std::string("fake"), room, value, size);
    case CL_DEVICE_VERSION:
      return answer(std::string("OpenCL 1.2 fake"), room, value, size);
    case CL_DEVICE_OPENCL_C_VERSION:
      return answer(std::string("OpenCL C 1.2 fake"), room, value, size);
    case CL_DEVICE_EXTENSIONS:
      return answer(std::string("cl_khr_fp16 cl_khr_fp64"), room, value, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
      return answer(cl_uint{8}, room, value, size);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
      return answer(cl_uint{1000}, room, value, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
    case CL_DEVICE_MAX_PARAMETER_SIZE:
      return answer(size_t{4096}, room, value, size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
      const size_t sizes[3] = {4096, 4096, 4096};
      return answer(sizes, sizeof sizes, room, value, size);
    }
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
      return answer(cl_uint{1024}, room, value, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return answer(kMemory, room, value, size);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return answer(kMemory / 4, room, value, size);
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return answer(cl_ulong{65536}, room, value, size);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return answer(cl_bool{CL_TRUE}, room, value, size);
    case CL_DEVICE_ADDRESS_BITS:
      return answer(cl_uint{64}, room, value, size);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
      return answer(cl_device_exec_capabilities{CL_EXEC_KERNEL}, room, value, size);
    case CL_DEVICE_SINGLE_FP_CONFIG:
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      return answer(cl_device_fp_config{CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN}, room, value, size);
    default:
      return CL_INVALID_VALUE;
  }
}

FAKE_CALL void* clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char*) { return nullptr; }

FAKE_CALL cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                     void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*, cl_int* code) {
  FAKE_LOCK;
  return made(new _cl_context, code);
}

FAKE_CALL cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id, cl_command_queue_properties properties,
                                                cl_int* code) {
  FAKE_LOCK;
  checked(context, "context", "clCreateCommandQueue");
  return made(new _cl_command_queue(context, properties), code);
}

FAKE_CALL cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t room, void* value,
                                       size_t* size) {
  FAKE_LOCK;
  checked(queue, "queue", "clGetCommandQueueInfo");
  if (what == CL_QUEUE_CONTEXT) return answer(queue->context, room, value, size);
  if (what == CL_QUEUE_DEVICE) return answer(cl_device_id{&the_device}, room, value, size);
  return what == CL_QUEUE_PROPERTIES ? answer(queue->properties, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code) {
  FAKE_LOCK;
  checked(context, "context", "clCreateBuffer");
  if (bytes == 0 || bytes > (size_t{1} << 30)) return not_made(cl_mem{}, CL_INVALID_BUFFER_SIZE, code);
  auto* memory = new _cl_mem(context, flags, bytes, host);
  if (memory->data) return made(memory, code);
  delete memory;
  return not_made(cl_mem{}, CL_MEM_OBJECT_ALLOCATION_FAILURE, code);
}

FAKE_CALL cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t room, void* value, size_t* size) {
  FAKE_LOCK;
  checked(memory, "memory object", "clGetMemObjectInfo");
  if (what == CL_MEM_SIZE) return answer(memory->bytes, room, value, size);
  if (what == CL_MEM_CONTEXT) return answer(memory->context, room, value, size);
  if (what == CL_MEM_ASSOCIATED_MEMOBJECT) return answer(cl_mem{}, room, value, size);
  return what == CL_MEM_OFFSET ? answer(size_t{0}, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool, size_t offset, size_t bytes, void* to,
                                     cl_uint waits, const cl_event* events, cl_event* event) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueReadBuffer");
  std::memcpy(to, transfer(queue, memory, offset, bytes, "clEnqueueReadBuffer")->data + offset, bytes);
  return done(event);
}

FAKE_CALL cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool, size_t offset, size_t bytes,
                                      const void* from, cl_uint waits, const cl_event* events, cl_event* event) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueWriteBuffer");
  std::memcpy(transfer(queue, memory, offset, bytes, "clEnqueueWriteBuffer")->data + offset, from, bytes);
  return done(event);
}

FAKE_CALL cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_bytes,
                                     size_t offset, size_t bytes, cl_uint waits, const cl_event* events, cl_event* event) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueFillBuffer");
  transfer(queue, memory, offset, bytes, "clEnqueueFillBuffer");
  if (pattern_bytes == 0 || offset % pattern_bytes != 0 || bytes % pattern_bytes != 0) return CL_INVALID_VALUE;
  for (size_t i = 0; i < bytes; i += pattern_bytes) std::memcpy(memory->data + offset + i, pattern, pattern_bytes);
  return done(event);
}

FAKE_CALL cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                                     size_t bytes, cl_uint waits, const cl_event* events, cl_event* event) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueCopyBuffer");
  transfer(queue, from, from_offset, bytes, "clEnqueueCopyBuffer");
  transfer(queue, to, to_offset, bytes, "clEnqueueCopyBuffer");
  if (from == to && std::max(from_offset, to_offset) - std::min(from_offset, to_offset) < bytes) return CL_MEM_COPY_OVERLAP;
  std::memmove(to->data + to_offset, from->data + from_offset, bytes);
  return done(event);
}

FAKE_CALL void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool, cl_map_flags, size_t offset, size_t bytes,
                                   cl_uint waits, const cl_event* events, cl_event* event, cl_int* code) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueMapBuffer");
  transfer(queue, memory, offset, bytes, "clEnqueueMapBuffer");
  done(event);
  return made(static_cast<void*>(memory->data + offset), code);
}

FAKE_CALL cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void*, cl_uint waits, const cl_event* events,
                                         cl_event* event) {
  FAKE_LOCK;
  check_waits(waits, events, "clEnqueueUnmapMemObject");
  transfer(queue, memory, 0, 0, "clEnqueueUnmapMemObject");
  return done(event);
}

FAKE_CALL cl_int clEnqueueNativeKernel(cl_command_queue, void(CL_CALLBACK*)(void*), void*, size_t, cl_uint, const cl_mem*,
                                       const void**, cl_uint, const cl_event*, cl_event*) {
  return CL_INVALID_OPERATION;
}

FAKE_CALL cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* events, cl_event* event) {
  FAKE_LOCK;
  checked(queue, "queue", "clEnqueueMarkerWithWaitList");
  check_waits(waits, events, "clEnqueueMarkerWithWaitList");
  return done(event);
}
FAKE_CALL cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* events, cl_event* event) {
  return clEnqueueMarkerWithWaitList(queue, waits, events, event);
}
FAKE_CALL cl_int clFlush(cl_command_queue queue) {
  FAKE_LOCK;
  checked(queue, "queue", "clFlush");
  return CL_SUCCESS;
}
FAKE_CALL cl_int clFinish(cl_command_queue queue) { return clFlush(queue); }
FAKE_CALL cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  FAKE_LOCK;
  check_waits(count, events, "clWaitForEvents");
  return CL_SUCCESS;
}

FAKE_CALL cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t room, void* value, size_t* size) {
  FAKE_LOCK;
  checked(event, "event", "clGetEventInfo");
  return what == CL_EVENT_COMMAND_EXECUTION_STATUS ? answer(cl_int{CL_COMPLETE}, room, value, size) : CL_INVALID_VALUE;
}
FAKE_CALL cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info, size_t room, void* value, size_t* size) {
  FAKE_LOCK;
  checked(event, "event", "clGetEventProfilingInfo");
  return answer(event->number, room, value, size);
}
