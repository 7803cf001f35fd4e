// Mesa's llvmpipe counts the iterations of all loops of a work-item down from 65535 and then leaves every loop: the results are
// wrong and no call reports an error. The quirk loop_limit says so, the target llvmpipe stays
// below; both are to go with the driver that no longer does it.
#include <CL/cl.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"

namespace {

constexpr const char* kSource = R"(
__kernel void count(__global int* counted, int rows, int columns) {
  int count = 0;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      ++count;
      if (counted[1] == 5) break;  // never: the loops cannot be replaced by a product
    }
  counted[0] = count;
}
)";

cl_device_id find_llvmpipe() {
  cl_uint platform_count = 0;
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return nullptr;
  std::vector<cl_platform_id> platforms(platform_count);
  clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    char name[256] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, nullptr);
    cl_device_id device = nullptr;
    if (std::string(name) == "rusticl" && clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS)
      return device;
  }
  return nullptr;
}

// Iterations that one work-item of the device makes of rows * columns.
int count_iterations(cl_device_id device, int rows, int columns) {
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  REQUIRE(code == CL_SUCCESS);
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
  REQUIRE(clBuildProgram(program, 1, &device, "-cl-std=CL1.2", nullptr, nullptr) == CL_SUCCESS);
  cl_kernel kernel = clCreateKernel(program, "count", &code);
  REQUIRE(code == CL_SUCCESS);
  int counted[2] = {0, 0};
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof counted, counted, &code);
  REQUIRE(code == CL_SUCCESS);
  clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  clSetKernelArg(kernel, 1, sizeof rows, &rows);
  clSetKernelArg(kernel, 2, sizeof columns, &columns);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &code);
  REQUIRE(code == CL_SUCCESS);
  const std::size_t one = 1;
  REQUIRE(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr) == CL_SUCCESS);
  REQUIRE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof counted, counted, 0, nullptr, nullptr) == CL_SUCCESS);
  clReleaseCommandQueue(queue);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseContext(context);
  return counted[0];
}

}  // namespace

TEST_CASE("llvmpipe ends loops early exactly where the quirk table says so") {
  setenv("RUSTICL_ENABLE", "llvmpipe", 1);  // before the first OpenCL call of the process
  const cl_device_id device = find_llvmpipe();
  REQUIRE_MESSAGE(device != nullptr, "no rusticl device although its library is installed");
  CHECK(count_iterations(device, 60, 1000) == 60000);
  bool marked = false, seen = false;
  for (const oclc_device_info& d : oclc::rt::devices())
    if (std::string(d.name).starts_with("llvmpipe")) {
      seen = true;
      marked = std::string(d.quirks).find("loop_limit") != std::string::npos;
    }
  REQUIRE(seen);
  CHECK((count_iterations(device, 70, 1000) < 70000) == marked);
}
