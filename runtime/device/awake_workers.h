// Threads of a CPU driver that stay awake for a moment after a run, as threads of other engines do: threads that sleep
// between short runs are woken for each, one core after another.
#pragma once
#include <CL/cl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/handles.h"

namespace oclc::runtime {

class AwakeWorkers {
 public:
  // Null where the driver's threads do not sleep, run no functions of the host, or are one alone; OCLC_AWAKE=0 refuses. The
  // context is the runtime's own: what lingers holds up commands of no one else by more than a moment.
  static std::unique_ptr<AwakeWorkers> make(cl_context context, cl_device_id device, std::uint32_t quirks);

  ~AwakeWorkers();  // waits for what lingers, unless the process forked since and has no threads of the driver
  AwakeWorkers(const AwakeWorkers&) = delete;
  AwakeWorkers& operator=(const AwakeWorkers&) = delete;

  // The driver has something to do, in whichever context: what lingers ends, and finds it.
  static void begin() { runs_.fetch_add(1, std::memory_order_release); }
  // Others enqueue commands without a word: from now on all threads but one serve them at once.
  void share() { shared_.store(true, std::memory_order_relaxed); }
  // Has threads linger from the end of a run on, for at most kLinger or until the next one begins. A refusal costs speed
  // alone.
  void linger(cl_event done);
  // Looks for the end of a run that may be shorter than the caller takes to fall asleep and wake up, for at most kLook.
  static void look(cl_event done);

 private:
  explicit AwakeWorkers(std::vector<ClQueue> queues) : queues_(std::move(queues)) {}

  // Until runs_ is no longer *run, or kLinger; yields to whoever wants the core.
  static void CL_CALLBACK stay_awake(void* run);

  std::vector<ClQueue> queues_;  // a thread each
  const pid_t process_ = ::getpid();
  std::atomic<bool> shared_{false};
  // Of the process, whose contexts share the driver's threads. A hint: no result depends on it.
  static inline std::atomic<std::uint64_t> runs_{0};
};

}  // namespace oclc::runtime
