// Time of one SGD step with momentum and weight decay over a model's parameters, as one launch over all of them, as one launch
// a parameter, and as two (the momentum, then the parameter: what libraries with an optimizer kernel a tensor do).
//
//   bench_optimizer tests/models/resnet50/weights.json [DEVICE SUBSTRING] [ROUNDS]
//
// The three run alternately on one queue over the same buffers; each round ends with a finish. Prints median, smallest and
// largest time of each, GB/s of the five streams that any step needs, and the ratios to the single launch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>
#include <nlohmann/json.hpp>

namespace {

constexpr const char* kSource = R"(
#define STEP(momentum) (0.9f * (momentum) + fma(1e-4f, p[i], g[i]))
__kernel void whole(__global float* p, __global float* m, __global const float* g, int at, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  i += at;
  const float v = STEP(m[i]);
  m[i] = v;
  p[i] -= 1e-9f * v;
}
__kernel void momentum(__global float* p, __global float* m, __global const float* g, int at, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  i += at;
  m[i] = STEP(m[i]);
}
__kernel void parameter(__global float* p, __global float* m, __global const float* g, int at, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  i += at;
  p[i] -= 1e-9f * m[i];
}
)";

struct Timing {
  const char* name;
  std::vector<double> seconds;
  double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

cl::Device find_device(const std::string& part) {
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  for (const cl::Platform& platform : platforms) {
    std::vector<cl::Device> devices;
    platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    for (const cl::Device& device : devices) {
      if (device.getInfo<CL_DEVICE_NAME>().find(part) != std::string::npos) return device;
    }
  }
  std::fprintf(stderr, "bench_optimizer: error: no OpenCL device with '%s' in its name\n", part.c_str());
  std::exit(4);
}

// Elements of each trained tensor of a weights.json.
std::vector<int> sizes_of(const char* path) {
  std::vector<int> sizes;
  const nlohmann::json file = nlohmann::json::parse(std::ifstream(path));
  for (const auto& tensor : file.at("tensors")) {
    if (tensor.at("name").get<std::string>().find("running_") != std::string::npos) continue;
    sizes.push_back(tensor.at("count").get<int>());
  }
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_optimizer WEIGHTS.JSON [DEVICE] [ROUNDS]\n");
    return 2;
  }
  const std::vector<int> sizes = sizes_of(argv[1]);
  const cl::Device device = find_device(argc > 2 ? argv[2] : "");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 30;
  int total = 0;
  for (const int n : sizes) total += n;
  const cl::Context context(device);
  const cl::CommandQueue queue(context, device);
  cl::Program program(context, kSource);
  program.build(device);
  const std::size_t bytes = static_cast<std::size_t>(total) * sizeof(float);
  cl::Buffer p(context, CL_MEM_READ_WRITE, bytes), m(context, CL_MEM_READ_WRITE, bytes), g(context, CL_MEM_READ_WRITE, bytes);
  for (const cl::Buffer* b : {&p, &m, &g}) queue.enqueueFillBuffer(*b, 0.5f, 0, bytes);
  cl::Kernel whole(program, "whole"), momentum(program, "momentum"), parameter(program, "parameter");
  const auto launch = [&](cl::Kernel& kernel, int at, int n) {
    kernel.setArg(0, p);
    kernel.setArg(1, m);
    kernel.setArg(2, g);
    kernel.setArg(3, at);
    kernel.setArg(4, n);
    constexpr int kGroup = 256;
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(static_cast<std::size_t>((n + kGroup - 1) / kGroup * kGroup)),
                               cl::NDRange(kGroup));
  };
  const auto each = [&](const auto& body) {
    int at = 0;
    for (const int n : sizes) {
      body(at, n);
      at += n;
    }
  };
  const auto one = [&] { launch(whole, 0, total); };
  const auto per_tensor = [&] { each([&](int at, int n) { launch(whole, at, n); }); };
  const auto two_per_tensor = [&] { each([&](int at, int n) { launch(momentum, at, n), launch(parameter, at, n); }); };
  Timing timings[] = {{"one launch", {}}, {"one a parameter", {}}, {"two a parameter", {}}};
  for (int round = -3; round < rounds; ++round) {
    for (int k = 0; k < 3; ++k) {
      const auto start = std::chrono::steady_clock::now();
      if (k == 0) one();
      if (k == 1) per_tensor();
      if (k == 2) two_per_tensor();
      queue.finish();
      if (round >= 0)
        timings[k].seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  std::printf("%s, %zu parameters, %.1f M elements, %d rounds\n", device.getInfo<CL_DEVICE_NAME>().c_str(), sizes.size(),
              total * 1e-6, rounds);
  const double single = timings[0].median();
  for (Timing& t : timings) {
    const double median = t.median();
    std::printf("%-16s %9.3f ms [%.3f .. %.3f]  %7.1f GB/s  ratio %.2f\n", t.name, median * 1e3, t.seconds.front() * 1e3,
                t.seconds.back() * 1e3, 5.0 * static_cast<double>(bytes) / median * 1e-9, median / single);
  }
}
