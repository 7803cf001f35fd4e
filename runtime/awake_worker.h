// A thread of a CPU driver that stays awake for a moment after a run, as threads of other engines do: threads that sleep
// between short runs are woken for each, one core after another.
#pragma once
#include <CL/cl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/handles.h"

namespace oclc::runtime {

class AwakeWorker {
 public:
  // Null where the driver's threads do not sleep, run no functions of the host, or are one alone; OCLC_AWAKE=0 refuses. The
  // context is the runtime's own: what lingers holds up commands of no one else by more than a moment.
  static std::unique_ptr<AwakeWorker> make(cl_context context, cl_device_id device, std::uint32_t quirks);

  ~AwakeWorker();  // waits for what lingers, unless the process forked since and has no threads of the driver
  AwakeWorker(const AwakeWorker&) = delete;
  AwakeWorker& operator=(const AwakeWorker&) = delete;

  // A run begins: what lingers ends.
  void begin() { runs_.fetch_add(1, std::memory_order_release); }
  // Has a thread linger from the end of a run on, for at most kLinger or until the next one begins. A refusal costs speed
  // alone.
  void linger(cl_event done);

 private:
  explicit AwakeWorker(ClQueue queue) : queue_(std::move(queue)) {}

  ClQueue queue_;
  const pid_t process_ = ::getpid();
  std::atomic<std::uint64_t> runs_{0};
};

}  // namespace oclc::runtime
