// This program stands between the runtime and the driver in the functions about binaries, devices and platforms.
#pragma once
#include <CL/cl.h>

#include <string>

namespace oclc::test {

struct DriverStandin {
  int binaries_offered = 0;
  std::string last_binary;       // of those offered
  cl_int answer = CL_SUCCESS;    // what the driver says of them; CL_SUCCESS: what it really says
  cl_uint capability_major = 0;  // not 0: the device says that it is one of NVIDIA's of this compute capability, X.0
  std::string platform;          // not empty: the name of every platform
  std::string ptx;               // not empty: the binary of every program
};

extern DriverStandin driver;

}  // namespace oclc::test
