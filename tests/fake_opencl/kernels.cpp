// Programs, kernels and launches of the device that executes nothing.
#include <algorithm>
#include <cstring>

#include "tests/fake_opencl/calls.h"

using oclc::fake::answer;
using oclc::fake::Argument;
using oclc::fake::check_waits;
using oclc::fake::checked;
using oclc::fake::done;
using oclc::fake::made;
using oclc::fake::not_made;

namespace {

constexpr std::size_t kLargestGroup = 4096;
constexpr const char* kBinary = "fake binary\n";

std::uint64_t chance = 0x9e3779b97f4a7c15;

std::uint64_t next_chance() {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return chance;
}

// Small numbers, none, huge ones, or what is left of the last launch: the host reads some of them as sizes. At both ends of the
// buffer, which is what sizes are read from.
void overwrite(const _cl_mem& memory) {
  constexpr std::size_t kEnd = 4096;
  const std::uint64_t kind = next_chance() % 4;
  if (kind == 0) return;
  for (std::size_t i = 0; i < memory.bytes; i += 8) {
    if (i == kEnd && memory.bytes > 3 * kEnd) i = (memory.bytes - kEnd) / 8 * 8;
    const std::uint64_t value = kind == 1 ? next_chance() % 16 : kind == 2 ? 0 : next_chance();
    std::memcpy(memory.data + i, &value, std::min<std::size_t>(8, memory.bytes - i));
  }
}

std::string binary_of(const _cl_program& program) { return kBinary + program.source; }

const Argument* argument_of(cl_kernel kernel, cl_uint index) {
  checked(kernel, "kernel", "clGetKernelArgInfo");
  const auto& arguments = kernel->function.arguments;
  return index < arguments.size() ? &arguments[index] : nullptr;
}

}  // namespace

FAKE_CALL cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts, const size_t* lengths,
                                               cl_int* code) {
  FAKE_LOCK;
  checked(context, "context", "clCreateProgramWithSource");
  std::string source;
  for (cl_uint i = 0; i < count; ++i) source += lengths && lengths[i] ? std::string(texts[i], lengths[i]) : texts[i];
  return made(new _cl_program(source), code);
}

FAKE_CALL cl_program clCreateProgramWithBinary(cl_context context, cl_uint, const cl_device_id*, const size_t* lengths,
                                               const unsigned char** binaries, cl_int* status, cl_int* code) {
  FAKE_LOCK;
  checked(context, "context", "clCreateProgramWithBinary");
  const std::string binary(reinterpret_cast<const char*>(binaries[0]), lengths[0]);
  const bool good = binary.starts_with(kBinary);
  if (status) *status = good ? CL_SUCCESS : CL_INVALID_BINARY;
  if (!good) return not_made(cl_program{}, CL_INVALID_BINARY, code);
  return made(new _cl_program(binary.substr(std::strlen(kBinary))), code);
}

FAKE_CALL cl_int clBuildProgram(cl_program program, cl_uint, const cl_device_id*, const char*,
                                void(CL_CALLBACK*)(cl_program, void*), void*) {
  FAKE_LOCK;
  checked(program, "program", "clBuildProgram");
  program->kernels.clear();
  program->built = oclc::fake::parse_kernels(program->source, program->kernels);
  if (!program->built) program->log = "1:1: error: no kernels that this device can read\n";
  return program->built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

FAKE_CALL cl_int clGetProgramBuildInfo(cl_program program, cl_device_id, cl_program_build_info what, size_t room, void* value,
                                       size_t* size) {
  FAKE_LOCK;
  checked(program, "program", "clGetProgramBuildInfo");
  return what == CL_PROGRAM_BUILD_LOG ? answer(program->log, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t room, void* value, size_t* size) {
  FAKE_LOCK;
  checked(program, "program", "clGetProgramInfo");
  if (what == CL_PROGRAM_NUM_KERNELS) return answer(program->kernels.size(), room, value, size);
  if (what == CL_PROGRAM_BINARY_SIZES) return answer(binary_of(*program).size(), room, value, size);
  if (what != CL_PROGRAM_BINARIES) return CL_INVALID_VALUE;
  const std::string binary = binary_of(*program);
  std::memcpy(*static_cast<unsigned char**>(value), binary.data(), binary.size());
  return CL_SUCCESS;
}

FAKE_CALL cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* code) {
  FAKE_LOCK;
  checked(program, "program", "clCreateKernel");
  if (!program->built) return not_made(cl_kernel{}, CL_INVALID_PROGRAM_EXECUTABLE, code);
  const auto found =
      std::find_if(program->kernels.begin(), program->kernels.end(), [&](const auto& k) { return k.name == name; });
  if (found == program->kernels.end()) return not_made(cl_kernel{}, CL_INVALID_KERNEL_NAME, code);
  return made(new _cl_kernel(program, *found), code);
}

FAKE_CALL cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t room, void* value, size_t* size) {
  FAKE_LOCK;
  checked(kernel, "kernel", "clGetKernelInfo");
  if (what == CL_KERNEL_NUM_ARGS) return answer(static_cast<cl_uint>(kernel->function.arguments.size()), room, value, size);
  return what == CL_KERNEL_FUNCTION_NAME ? answer(kernel->function.name, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t room, void* value,
                                    size_t* size) {
  FAKE_LOCK;
  const Argument* argument = argument_of(kernel, index);
  if (!argument) return CL_INVALID_ARG_INDEX;
  if (what == CL_KERNEL_ARG_ADDRESS_QUALIFIER) return answer(argument->space, room, value, size);
  if (what == CL_KERNEL_ARG_TYPE_NAME) return answer(argument->type, room, value, size);
  return what == CL_KERNEL_ARG_NAME ? answer(argument->name, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id, cl_kernel_work_group_info what, size_t room,
                                          void* value, size_t* size) {
  FAKE_LOCK;
  checked(kernel, "kernel", "clGetKernelWorkGroupInfo");
  const size_t none[3] = {0, 0, 0};
  if (what == CL_KERNEL_WORK_GROUP_SIZE) return answer(kLargestGroup, room, value, size);
  if (what == CL_KERNEL_COMPILE_WORK_GROUP_SIZE) return answer(none, sizeof none, room, value, size);
  return what == CL_KERNEL_LOCAL_MEM_SIZE ? answer(cl_ulong{0}, room, value, size) : CL_INVALID_VALUE;
}

FAKE_CALL cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  FAKE_LOCK;
  const Argument* argument = argument_of(kernel, index);
  if (!argument) return CL_INVALID_ARG_INDEX;
  Set& set = kernel->arguments[index];
  if (argument->space == CL_KERNEL_ARG_ADDRESS_LOCAL) {
    if (value || bytes == 0) return CL_INVALID_ARG_VALUE;
  } else if (argument->space != CL_KERNEL_ARG_ADDRESS_PRIVATE) {
    if (bytes != sizeof(cl_mem)) return CL_INVALID_ARG_SIZE;
    // A driver follows what stands there.
    set.memory = nullptr;
    if (value) std::memcpy(&set.memory, value, sizeof set.memory);
    if (set.memory) checked(set.memory, "memory object", "clSetKernelArg");
  } else if (!value) {
    return CL_INVALID_ARG_VALUE;
  }
  set.set = true;
  return CL_SUCCESS;
}

FAKE_CALL cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t*,
                                        const size_t* global, const size_t* local, cl_uint waits, const cl_event* events,
                                        cl_event* event) {
  FAKE_LOCK;
  checked(queue, "queue", "clEnqueueNDRangeKernel");
  checked(kernel, "kernel", "clEnqueueNDRangeKernel");
  check_waits(waits, events, "clEnqueueNDRangeKernel");
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  size_t group = 1;
  for (cl_uint d = 0; d < dimensions; ++d) {
    if (global[d] == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (!local) continue;
    if (local[d] == 0 || local[d] > kLargestGroup || global[d] % local[d] != 0) return CL_INVALID_WORK_GROUP_SIZE;
    group *= local[d];
  }
  if (group > kLargestGroup) return CL_INVALID_WORK_GROUP_SIZE;
  for (size_t i = 0; i < kernel->arguments.size(); ++i) {
    if (!kernel->arguments[i].set) return CL_INVALID_KERNEL_ARGS;
    if (!kernel->arguments[i].memory) continue;
    // It may have been released since it was set.
    const auto& memory =
        *static_cast<_cl_mem*>(checked(kernel->arguments[i].memory, "memory object", "clEnqueueNDRangeKernel"));
    memory.check();
    const Argument& argument = kernel->function.arguments[i];
    const bool constant = argument.is_const || argument.space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
    if (!constant && (memory.flags & CL_MEM_READ_ONLY) == 0) overwrite(memory);
  }
  return done(event);
}
