#include "tests/runtime/driver_standin.h"

#include <algorithm>
#include <cstring>

#include "tests/runtime/failing_driver.h"

namespace oclc::test {
DriverStandin driver;
}

using oclc::test::driver;
using oclc::test::failing;
using oclc::test::real;

OCLC_STANDIN cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                                  const std::size_t* lengths, const unsigned char** binaries, cl_int* status,
                                                  cl_int* code) {
  ++driver.binaries_offered;
  driver.last_binary.assign(reinterpret_cast<const char*>(binaries[0]), lengths[0]);
  if (driver.answer != CL_SUCCESS) {
    *code = driver.answer;
    return nullptr;
  }
  static const auto next = real<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary");
  const cl_program program = next(context, count, devices, lengths, binaries, status, code);
  if (program) ++failing.objects;
  return program;
}

OCLC_STANDIN cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, std::size_t bytes, void* value,
                                    std::size_t* size) {
  constexpr cl_device_info kMajor = 0x4000, kMinor = 0x4001;
  if (driver.capability_major != 0 && (what == kMajor || what == kMinor)) {
    const cl_uint number = what == kMajor ? driver.capability_major : 0;
    std::memcpy(value, &number, sizeof number);
    return CL_SUCCESS;
  }
  if (const auto said = driver.says.find(what); said != driver.says.end()) {
    if (size) *size = said->second.size();
    if (value) std::memcpy(value, said->second.data(), std::min(bytes, said->second.size()));
    return CL_SUCCESS;
  }
  static const auto next = real<decltype(clGetDeviceInfo)>("clGetDeviceInfo");
  return next(device, what, bytes, value, size);
}

OCLC_STANDIN cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, std::size_t bytes, void* value,
                                      std::size_t* size) {
  static const auto next = real<decltype(clGetPlatformInfo)>("clGetPlatformInfo");
  if (driver.platform.empty() || what != CL_PLATFORM_NAME) return next(platform, what, bytes, value, size);
  if (size) *size = driver.platform.size() + 1;
  if (value) std::memcpy(value, driver.platform.c_str(), driver.platform.size() + 1);
  return CL_SUCCESS;
}

OCLC_STANDIN cl_int clGetProgramInfo(cl_program program, cl_program_info what, std::size_t bytes, void* value,
                                     std::size_t* size) {
  if (!driver.ptx.empty() && what == CL_PROGRAM_BINARY_SIZES) {
    const std::size_t length = driver.ptx.size();
    std::memcpy(value, &length, sizeof length);
    return CL_SUCCESS;
  }
  if (!driver.ptx.empty() && what == CL_PROGRAM_BINARIES) {
    std::memcpy(*static_cast<unsigned char**>(value), driver.ptx.data(), driver.ptx.size());
    return CL_SUCCESS;
  }
  static const auto next = real<decltype(clGetProgramInfo)>("clGetProgramInfo");
  return next(program, what, bytes, value, size);
}
