// A device with a queue, its program cache, and what the sessions of one plan share on it.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/awake_workers.h"
#include "runtime/device/device.h"
#include "runtime/handles.h"
#include "runtime/package/package.h"
#include "runtime/program/program_cache.h"

namespace oclc::runtime {

class LoadedPlan;

class Context {
 public:
  // `beside`, or null: whose OpenCL context and loaded plans this one shares.
  explicit Context(const oclc_context_options& options, const Context* beside = nullptr);

  cl_context cl() const { return context_.get(); }
  // For work of any kind: threads that linger behind a run are told that there is some.
  cl_command_queue queue() const {
    if (awake_) AwakeWorkers::begin();
    return queue_.get();
  }
  // For a run, whose schedule tells them as soon as its first launch can be found.
  cl_command_queue queue_of_run() const { return queue_.get(); }
  // For the caller's own work, of which they are not told: from now on one of them alone lingers.
  cl_command_queue lent_queue() {
    if (awake_) awake_->share();
    return queue_.get();
  }
  cl_device_id device() const { return device_; }
  const oclc_device_info& facts() const { return facts_; }
  std::uint32_t quirks() const { return quirks_; }
  bool profiling() const { return profiling_; }
  ProgramCache* cache() { return cache_.get(); }  // null: off
  AwakeWorkers* awake() { return awake_.get(); }  // or null

  void message(oclc_severity severity, const std::string& text) const;
  // Keeps a warning, from any thread, until flush_warnings delivers it.
  void warn_later(const std::string& text);
  void warn_once(const std::string& text);  // likewise; nothing if it was said before
  void flush_warnings();
  void progress(std::uint32_t done, std::uint32_t total) const;

  // What a session may take: the device's memory, or less where the caller set a limit; and the same for messages, "device 'x'
  // has 8 bytes".
  std::uint64_t memory_bytes() const {
    return memory_limit_ ? std::min(memory_limit_, facts_.global_bytes) : facts_.global_bytes;
  }
  std::string memory_text() const;
  // No unoptimized kernels.
  bool waits_for_optimized() const { return waits_for_optimized_; }
  // Binaries that plans hold are taken; programs are built whole, to be such binaries.
  bool uses_binaries() const { return uses_binaries_; }
  bool builds_whole() const { return builds_whole_; }
  bool takes_any_plan() const { return takes_any_plan_; }           // for CPUs on a GPU too
  std::uint64_t max_host_steps() const { return max_host_steps_; }  // of a run
  // A buffer of the device. Failure(OCLC_E_MEMORY) naming `what` if it allows no buffer of this size, or if a CPU's memory
  // cannot be had, for which drivers end the process when it is first used.
  ClMem allocate(std::uint64_t bytes, const std::string& what, cl_mem_flags flags = CL_MEM_READ_WRITE) const;

  // Enqueues zeros into `bytes` bytes of a buffer.
  void clear(cl_mem memory, std::uint64_t offset, std::uint64_t bytes) const;

  // Throws in a process that forked after the context was made.
  void check_process() const;

  // Programs and constants of a plan, made once for all contexts beside each other. Thread-safe.
  std::shared_ptr<LoadedPlan> load(const std::shared_ptr<Context>& self,
                                   const std::shared_ptr<const package::Package>& package);

 private:
  void adopt(const oclc_context_options& options);
  void create(const oclc_context_options& options);
  void make_queue(const oclc_context_options& options);
  void join(const oclc_context_options& options, const Context& beside);

  ClContext context_;
  ClQueue queue_;
  cl_device_id device_ = nullptr;
  oclc_device_info facts_{};
  std::uint32_t quirks_ = 0;
  bool profiling_ = false;
  bool waits_for_optimized_ = false, uses_binaries_ = false, builds_whole_ = false, takes_any_plan_ = false;
  std::uint64_t memory_limit_ = 0;  // 0: none
  std::uint64_t max_host_steps_ = 0;
  std::unique_ptr<AwakeWorkers> awake_;
  std::unique_ptr<ProgramCache> cache_;
  void (*message_)(void*, oclc_severity, const char*) = nullptr;
  void (*progress_)(void*, std::uint32_t, std::uint32_t) = nullptr;
  void* user_ = nullptr;
  pid_t process_ = 0;

  std::mutex warnings_mutex_;
  std::vector<std::string> warnings_;
  std::set<std::string> said_;

  // Of all contexts beside each other.
  struct LoadedPlans {
    std::mutex mutex;
    std::map<const package::Package*, std::weak_ptr<LoadedPlan>> plans;
  };
  std::shared_ptr<LoadedPlans> loaded_;
};

}  // namespace oclc::runtime
