#include "tests/runtime/failing_driver.h"

#include <algorithm>
#include <cstring>

#include "tests/runtime/driver_standin.h"

namespace oclc::test {
FailingDriver failing;
}

using oclc::test::failing;
using oclc::test::real;

namespace {

bool fails() {
  const long call = ++failing.calls, at = failing.fail_at;
  return at > 0 && (call == at || (failing.from_then_on && call > at));
}

template <class T>
T counted(T object) {
  if (object) ++failing.objects;
  return object;
}

}  // namespace

// A function that answers with a code.
#define OCLC_CALL(name, parameters, arguments)            \
  OCLC_STANDIN cl_int name parameters {                   \
    if (fails()) return failing.code;                     \
    static const auto next = real<decltype(name)>(#name); \
    return next arguments;                                \
  }
// One that moves bytes between host and device.
#define OCLC_MOVE(name, counter, parameters, arguments)   \
  OCLC_STANDIN cl_int name parameters {                   \
    if (fails()) return failing.code;                     \
    failing.counter += bytes;                             \
    static const auto next = real<decltype(name)>(#name); \
    return next arguments;                                \
  }
// One that waits. A device that is lost executes nothing any more, this one does: what was asked of it ends before the answer.
#define OCLC_WAIT(name, parameters, arguments)            \
  OCLC_STANDIN cl_int name parameters {                   \
    static const auto next = real<decltype(name)>(#name); \
    const cl_int answer = next arguments;                 \
    return fails() ? failing.code : answer;               \
  }
// One that makes an object.
#define OCLC_MAKE(type, name, parameters, arguments)      \
  OCLC_STANDIN type name parameters {                     \
    if (fails()) {                                        \
      if (code) *code = failing.code;                     \
      return nullptr;                                     \
    }                                                     \
    static const auto next = real<decltype(name)>(#name); \
    return counted(next arguments);                       \
  }
// References are taken and given back without fail.
#define OCLC_REFERENCE(type, retain, release)                   \
  OCLC_STANDIN cl_int retain(type object) {                     \
    static const auto next = real<decltype(retain)>(#retain);   \
    ++failing.objects;                                          \
    return next(object);                                        \
  }                                                             \
  OCLC_STANDIN cl_int release(type object) {                    \
    static const auto next = real<decltype(release)>(#release); \
    --failing.objects;                                          \
    return next(object);                                        \
  }

OCLC_REFERENCE(cl_context, clRetainContext, clReleaseContext)
OCLC_REFERENCE(cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue)
OCLC_REFERENCE(cl_mem, clRetainMemObject, clReleaseMemObject)
OCLC_REFERENCE(cl_program, clRetainProgram, clReleaseProgram)
OCLC_REFERENCE(cl_kernel, clRetainKernel, clReleaseKernel)

OCLC_MAKE(cl_context, clCreateContext,
          (const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* user, cl_int* code),
          (properties, count, devices, notify, user, code))
OCLC_MAKE(cl_command_queue, clCreateCommandQueue,
          (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code),
          (context, device, properties, code))
OCLC_MAKE(cl_mem, clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code),
          (context, flags, bytes, host, code))
OCLC_MAKE(cl_program, clCreateProgramWithSource,
          (cl_context context, cl_uint count, const char** texts, const size_t* lengths, cl_int* code),
          (context, count, texts, lengths, code))
OCLC_MAKE(cl_kernel, clCreateKernel, (cl_program program, const char* name, cl_int* code), (program, name, code))

OCLC_CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void* value), (kernel, index, bytes, value))
OCLC_CALL(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info what, size_t bytes, void* value, size_t* size),
          (kernel, what, bytes, value, size))
OCLC_CALL(clEnqueueNDRangeKernel,
          (cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t* offset, const size_t* global,
           const size_t* local, cl_uint count, const cl_event* wait, cl_event* event),
          (queue, kernel, dims, offset, global, local, count, wait, event))
OCLC_MOVE(clEnqueueReadBuffer, bytes_to_host,
          (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void* to, cl_uint count,
           const cl_event* wait, cl_event* event),
          (queue, memory, blocking, offset, bytes, to, count, wait, event))
OCLC_MOVE(clEnqueueWriteBuffer, bytes_to_device,
          (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, const void* from,
           cl_uint count, const cl_event* wait, cl_event* event),
          (queue, memory, blocking, offset, bytes, from, count, wait, event))
OCLC_CALL(clEnqueueFillBuffer,
          (cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_bytes, size_t offset, size_t bytes,
           cl_uint count, const cl_event* wait, cl_event* event),
          (queue, memory, pattern, pattern_bytes, offset, bytes, count, wait, event))
OCLC_CALL(clEnqueueCopyBuffer,
          (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes, cl_uint count,
           const cl_event* wait, cl_event* event),
          (queue, from, to, from_offset, to_offset, bytes, count, wait, event))
OCLC_CALL(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event* wait, cl_event* event),
          (queue, count, wait, event))
OCLC_CALL(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event* wait, cl_event* event),
          (queue, count, wait, event))
OCLC_CALL(clFlush, (cl_command_queue queue), (queue))
OCLC_WAIT(clFinish, (cl_command_queue queue), (queue))
OCLC_WAIT(clWaitForEvents, (cl_uint count, const cl_event* events), (count, events))
OCLC_CALL(clGetMemObjectInfo, (cl_mem memory, cl_mem_info what, size_t bytes, void* value, size_t* size),
          (memory, what, bytes, value, size))
OCLC_CALL(clGetCommandQueueInfo, (cl_command_queue queue, cl_command_queue_info what, size_t bytes, void* value, size_t* size),
          (queue, what, bytes, value, size))

OCLC_STANDIN cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                                   void(CL_CALLBACK* notify)(cl_program, void*), void* user) {
  if (!failing.build_log.empty()) return CL_BUILD_PROGRAM_FAILURE;
  if (fails()) return failing.code;
  static const auto next = real<decltype(clBuildProgram)>("clBuildProgram");
  return next(program, count, devices, options, notify, user);
}

OCLC_STANDIN cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what, size_t bytes,
                                          void* value, size_t* size) {
  static const auto next = real<decltype(clGetProgramBuildInfo)>("clGetProgramBuildInfo");
  if (failing.build_log.empty() || what != CL_PROGRAM_BUILD_LOG) return next(program, device, what, bytes, value, size);
  const std::size_t length = failing.build_log.size() + 1;
  if (size) *size = length;
  if (value) std::memcpy(value, failing.build_log.c_str(), std::min(bytes, length));
  return CL_SUCCESS;
}
