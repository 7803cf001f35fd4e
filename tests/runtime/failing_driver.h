// This program stands between the runtime and the driver in the functions that make, change and wait: the n-th call fails, and
// objects are counted.
#pragma once
#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace oclc::test {

struct FailingDriver {
  std::atomic<long> calls = 0;
  std::atomic<long> fail_at = 0;                                      // that call fails; 0: none
  bool from_then_on = false;                                          // and all that follow, but those that release
  cl_int code = CL_OUT_OF_RESOURCES;                                  // what they answer
  std::atomic<long> objects = 0;                                      // references that are not released
  std::atomic<std::uint64_t> bytes_to_host = 0, bytes_to_device = 0;  // by transfers that were enqueued
  std::string build_log;                                              // not empty: programs do not build, and this is why

  void reset(long at, cl_int with, bool for_good = false) {
    calls = 0;
    fail_at = at;
    from_then_on = for_good;
    code = with;
  }
};

extern FailingDriver failing;

}  // namespace oclc::test
