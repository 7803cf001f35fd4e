// GFLOP/s of fused multiply-adds on registers, all cores of the first CPU device of OpenCL: the roofline of computation.
//
//   oclc-fma-peak        prints one number
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>

namespace {

constexpr int kSteps = 1000000, kRounds = 8;
// WIDTH lanes a vector, VECTORS sums: enough to hide the latency of an addition, few enough for the registers.
constexpr const char* kSource = R"(
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(float, WIDTH)
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void peak(__global float* y, int steps, float x) {
  VEC a[VECTORS];
  #pragma unroll
  for (int i = 0; i < VECTORS; ++i) a[i] = (VEC)(i + x);
  const VEC b = (VEC)(0.999f * x), c = (VEC)(0.001f + x);
  for (int k = 0; k < steps; ++k) {
    #pragma unroll
    for (int i = 0; i < VECTORS; ++i) a[i] = fma(a[i], b, c);
  }
  VEC sum = 0;
  #pragma unroll
  for (int i = 0; i < VECTORS; ++i) sum += a[i];
  JOIN(vstore, WIDTH)(sum, get_group_id(0), y);
})";

cl::Device first_cpu() {
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  for (const cl::Platform& platform : platforms) {
    std::vector<cl::Device> devices;
    platform.getDevices(CL_DEVICE_TYPE_CPU, &devices);
    if (!devices.empty()) return devices.front();
  }
  throw cl::Error(CL_DEVICE_NOT_FOUND, "no CPU device");
}

}  // namespace

int main() {
  try {
    const cl::Device device = first_cpu();
    const auto cores = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
    const cl::Context context(device);
    const cl::CommandQueue queue(context, device);
    cl::Program program(context, kSource);
    const int width = device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>() >= 16 ? 16 : 8, vectors = width == 16 ? 24 : 12;
    program.build(device, ("-DWIDTH=" + std::to_string(width) + " -DVECTORS=" + std::to_string(vectors)).c_str());
    const cl::Buffer y(context, CL_MEM_READ_WRITE, std::size_t{cores} * static_cast<std::size_t>(width) * sizeof(float));
    cl::Kernel kernel(program, "peak");
    kernel.setArg(0, y);
    kernel.setArg(1, kSteps);
    kernel.setArg(2, 0.5f);
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(cores), cl::NDRange(1));
      queue.finish();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::printf("%.1f\n", 2.0 * vectors * width * kSteps * cores / best * 1e-9);
  } catch (const cl::Error& error) {
    std::fprintf(stderr, "oclc-fma-peak: error: %s (%d)\n", error.what(), error.err());
    return 5;
  }
}
