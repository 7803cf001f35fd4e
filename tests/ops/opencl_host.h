// Runs one kernel on the first OpenCL device of PoCL (or of the first platform), with nothing of ours in between.
#pragma once
#include <CL/cl.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/ir/tensor.h"

namespace oclc {

class OpenClHost {
 public:
  OpenClHost() {
    cl_uint count = 0;
    clGetPlatformIDs(0, nullptr, &count);
    if (count == 0) throw std::runtime_error("no OpenCL platform");
    std::vector<cl_platform_id> platforms(count);
    clGetPlatformIDs(count, platforms.data(), nullptr);
    cl_platform_id chosen = platforms[0];
    for (const cl_platform_id p : platforms) {
      char name[256] = {};
      clGetPlatformInfo(p, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
      if (std::strstr(name, "Portable")) chosen = p;
    }
    check(clGetDeviceIDs(chosen, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "device");
    cl_int status = 0;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    check(status, "context");
    queue_ = clCreateCommandQueueWithProperties(context_, device_, nullptr, &status);
    check(status, "queue");
  }
  OpenClHost(const OpenClHost&) = delete;
  OpenClHost& operator=(const OpenClHost&) = delete;
  ~OpenClHost() {
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }

  // Runs kernel `run` of `source` with `items` work-items in groups of one. Its arguments are the inputs, then the output,
  // whose bytes are returned.
  HostTensor run(const std::string& source, const std::vector<HostTensor>& inputs, HostTensor output, std::size_t items) const {
    cl_int status = 0;
    const char* text = source.c_str();
    cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &status);
    check(status, "program");
    if (clBuildProgram(program, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS) {
      std::string log(20000, '\0');
      clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
      throw std::runtime_error("build failed: " + std::string(log.c_str()));
    }
    cl_kernel kernel = clCreateKernel(program, "run", &status);
    check(status, "kernel");
    std::vector<cl_mem> buffers;
    for (const HostTensor& input : inputs) {
      buffers.push_back(
          clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, input.bytes(), const_cast<std::byte*>(input.data()), &status));
      check(status, "input");
    }
    buffers.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE, output.bytes(), nullptr, &status));
    check(status, "output");
    for (cl_uint i = 0; i < buffers.size(); ++i) check(clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]), "argument");
    const std::size_t local = 1;
    check(clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &items, &local, 0, nullptr, nullptr), "launch");
    check(clEnqueueReadBuffer(queue_, buffers.back(), CL_TRUE, 0, output.bytes(), output.mutable_data(), 0, nullptr, nullptr),
          "read");
    for (const cl_mem buffer : buffers) clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    return output;
  }

 private:
  static void check(cl_int status, const char* what) {
    if (status != CL_SUCCESS) throw std::runtime_error(std::string("OpenCL ") + what + ": " + std::to_string(status));
  }

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

}  // namespace oclc
