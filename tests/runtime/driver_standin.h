// This program stands between the runtime and the driver in the functions about binaries, devices and platforms.
#pragma once
#include <CL/cl.h>
#include <dlfcn.h>

#include <map>
#include <string>

namespace oclc::test {

struct DriverStandin {
  int binaries_offered = 0;
  std::string last_binary;       // of those offered
  cl_int answer = CL_SUCCESS;    // what the driver says of them; CL_SUCCESS: what it really says
  cl_uint capability_major = 0;  // not 0: the device says that it is one of NVIDIA's of this compute capability, X.0
  std::string platform;          // not empty: the name of every platform
  std::string ptx;               // not empty: the binary of every program
  std::map<cl_device_info, std::string> says;  // bytes that every device answers to a question
};

extern DriverStandin driver;

// The driver's own function of that name.
template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace oclc::test

#define OCLC_STANDIN extern "C" __attribute__((visibility("default")))
