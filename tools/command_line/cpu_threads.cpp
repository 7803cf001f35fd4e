// keep_threads_on_cores: see the header. Two of 16 cores of a virtual machine, resnet50 in bfloat16: 7.2 ms with it, 8.5
// without.
#include "tools/command_line/cpu_threads.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace oclc::command_line {

bool keep_threads_on_cores() {
  const char* limit = std::getenv("POCL_MAX_PTHREAD_COUNT");
  const long threads = limit ? std::strtol(limit, nullptr, 10) : ::sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t cores;
  if (std::getenv("POCL_AFFINITY") || ::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) != threads)
    return false;
  for (long i = 0; i < threads; ++i) {
    if (!CPU_ISSET(i, &cores)) return false;
  }
  return ::setenv("POCL_AFFINITY", "1", 0) == 0;
}

}  // namespace oclc::command_line
