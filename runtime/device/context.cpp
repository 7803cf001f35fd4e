#include "runtime/device/context.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "runtime/device/machine_memory.h"
#include "runtime/device/quirks.h"
#include "runtime/failure.h"
#include "runtime/package/limits.h"
#include "runtime/package/text/unicode.h"
#include "runtime/program/pocl_folder.h"
#include "runtime/session/loaded_plan.h"

namespace oclc::runtime {

Context::Context(const oclc_context_options& options, const Context* beside)
    : memory_limit_(options.memory_limit),
      max_host_steps_(options.max_host_steps ? options.max_host_steps : package::kMaxHostSteps),
      message_(options.message),
      progress_(options.progress),
      user_(options.user),
      process_(::getpid()) {
  if (beside)
    join(options, *beside);
  else if (options.cl_context || options.cl_queue)
    adopt(options);
  else
    create(options);
  if (!facts_.available)
    throw Failure(OCLC_E_DEVICE, std::string("device '") + facts_.name + "' is not available or has no compiler",
                  CL_DEVICE_NOT_AVAILABLE);
  if (!facts_.little_endian || facts_.address_bits != 64)
    throw Failure(OCLC_E_UNSUPPORTED, std::string("device '") + facts_.name + "' is not a little-endian 64-bit device");
  if (std::string_view(facts_.version).starts_with("OpenCL 1.0") || std::string_view(facts_.version).starts_with("OpenCL 1.1"))
    throw Failure(OCLC_E_UNSUPPORTED,
                  std::string("device '") + facts_.name + "' has " + facts_.version + ", wanted OpenCL 1.2 or newer");
  quirks_ = device_quirks(device_);
  if (const std::string program = missing_program(quirks_); !program.empty())
    throw Failure(OCLC_E_DEVICE, std::string("device '") + facts_.name + "': its driver (" + facts_.platform_name +
                                     ") links kernels by the program `" + program +
                                     "`, which is not on the PATH; install it (Debian: apt-get install binutils)");
  if (has(quirks_, Quirk::compiles_on_one_core) && !note_of_pocl_folder().empty()) warn_later(note_of_pocl_folder());
  if (!options.cl_context) awake_ = AwakeWorkers::make(context_.get(), device_, quirks_);

  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && std::string_view(value) == "1";
  };
  waits_for_optimized_ = options.wait_for_optimized != 0 || is_set("OCLC_WAIT_FOR_OPTIMIZED");
  uses_binaries_ = options.use_binaries != 0 || is_set("OCLC_USE_BINARIES");
  builds_whole_ = options.for_binaries != 0;
  takes_any_plan_ = options.any_device != 0 || is_set("OCLC_ANY_DEVICE");
  const char* wish = std::getenv("OCLC_CACHE");
  const bool off = wish ? std::string_view(wish) == "0" : has(quirks_, Quirk::own_cache) && !options.cache_dir;
  if (!off)
    cache_ = std::make_unique<ProgramCache>(options.cache_dir ? options.cache_dir : "",
                                            [this](const std::string& text) { warn_later(text); });
  if (beside && (uses_binaries_ != beside->uses_binaries_ || builds_whole_ != beside->builds_whole_))
    throw Failure(OCLC_E_ARGUMENT,
                  "beside: wanted use_binaries and for_binaries as that context has them, whose programs are shared");
  loaded_ = beside ? beside->loaded_ : std::make_shared<LoadedPlans>();
  flush_warnings();
}

std::string Context::memory_text() const {
  if (memory_limit_ && memory_limit_ < facts_.global_bytes) return "the context's limit is " + std::to_string(memory_limit_);
  return std::string("device '") + facts_.name + "' has " + std::to_string(facts_.global_bytes);
}

ClMem Context::allocate(std::uint64_t bytes, const std::string& what, cl_mem_flags flags) const {
  if (bytes > facts_.max_alloc_bytes)
    throw Failure(OCLC_E_MEMORY, what + " takes " + std::to_string(bytes) + " bytes, device '" + facts_.name +
                                     "' allows at most " + std::to_string(facts_.max_alloc_bytes) +
                                     " in one piece; use a smaller batch");
  if (facts_.device_class == OCLC_DEVICE_CPU) {
    if (const std::string problem = problem_of_memory(bytes); !problem.empty())
      throw Failure(OCLC_E_MEMORY, what + " takes " + std::to_string(bytes) + " bytes, " + problem + "; use a smaller batch");
  }
  cl_int code = CL_SUCCESS;
  ClMem memory(clCreateBuffer(context_.get(), flags, bytes, nullptr, &code));
  check_cl(code, "allocating " + std::to_string(bytes) + " bytes for " + what);
  return memory;
}

void Context::clear(cl_mem memory, std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes == 0) return;
  if (has(quirks_, Quirk::fill_unseen)) {
    const std::vector<std::byte> zeros(bytes);
    check_cl(clEnqueueWriteBuffer(queue(), memory, CL_TRUE, offset, bytes, zeros.data(), 0, nullptr, nullptr),
             "clearing a buffer");
    return;
  }
  const cl_uchar zero = 0;
  check_cl(clEnqueueFillBuffer(queue(), memory, &zero, 1, offset, bytes, 0, nullptr, nullptr), "clearing a buffer");
}

void Context::warn_later(const std::string& text) {
  const std::lock_guard lock(warnings_mutex_);
  warnings_.push_back(text);
}

void Context::warn_once(const std::string& text) {
  const std::lock_guard lock(warnings_mutex_);
  if (said_.insert(text).second) warnings_.push_back(text);
}

void Context::flush_warnings() {
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(warnings_mutex_);
    texts.swap(warnings_);
  }
  for (const std::string& text : texts) message(OCLC_WARNING, text);
}

void Context::create(const oclc_context_options& options) {
  const auto devices = list_devices();
  const Device& chosen = devices[select_device(devices, options.device)];
  device_ = chosen.id;
  facts_ = device_facts(device_);
  cl_int code = CL_SUCCESS;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(chosen.platform), 0};
  context_ = ClContext(clCreateContext(properties, 1, &device_, nullptr, nullptr, &code));
  check_cl(code, std::string("creating a context on device '") + facts_.name + "'");
  make_queue(options);
}

void Context::adopt(const oclc_context_options& options) {
  if (!options.cl_context || !options.cl_queue) throw Failure(OCLC_E_ARGUMENT, "cl_context and cl_queue: give both or none");
  if (options.device && *options.device)
    throw Failure(OCLC_E_ARGUMENT, "give either a device or a cl_context with its cl_queue");
  cl_context of_queue = nullptr;
  check_cl(clGetCommandQueueInfo(options.cl_queue, CL_QUEUE_CONTEXT, sizeof of_queue, &of_queue, nullptr), "asking cl_queue");
  if (of_queue != options.cl_context) throw Failure(OCLC_E_ARGUMENT, "cl_queue belongs to another context than cl_context");
  cl_command_queue_properties properties = 0;
  check_cl(clGetCommandQueueInfo(options.cl_queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
           "asking cl_queue");
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw Failure(OCLC_E_ARGUMENT, "cl_queue: wanted an in-order queue, found an out-of-order one");
  profiling_ = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  check_cl(clGetCommandQueueInfo(options.cl_queue, CL_QUEUE_DEVICE, sizeof device_, &device_, nullptr), "asking cl_queue");
  facts_ = device_facts(device_);
  context_ = ClContext::retain(options.cl_context);
  queue_ = ClQueue::retain(options.cl_queue);
}

void Context::join(const oclc_context_options& options, const Context& beside) {
  beside.check_process();
  if (options.device && *options.device) throw Failure(OCLC_E_ARGUMENT, "give either a device or a context beside this one");
  if (options.cl_context || options.cl_queue) {
    if (options.cl_context != beside.cl())
      throw Failure(OCLC_E_ARGUMENT, "beside: cl_context is another one than that context's");
    adopt(options);
    if (device_ != beside.device_) throw Failure(OCLC_E_ARGUMENT, "beside: cl_queue is of another device than that context's");
    return;
  }
  device_ = beside.device_;
  facts_ = beside.facts_;
  context_ = ClContext::retain(beside.cl());
  make_queue(options);
}

void Context::make_queue(const oclc_context_options& options) {
  cl_int code = CL_SUCCESS;
  profiling_ = options.profiling != 0;
  queue_ = ClQueue(clCreateCommandQueue(context_.get(), device_, profiling_ ? CL_QUEUE_PROFILING_ENABLE : 0, &code));
  check_cl(code, std::string("creating a queue on device '") + facts_.name + "'");
}

void Context::message(oclc_severity severity, const std::string& text) const {
  if (message_) message_(user_, severity, package::shown(text, true).c_str());
}

void Context::progress(std::uint32_t done, std::uint32_t total) const {
  if (progress_) progress_(user_, done, total);
}

void Context::check_process() const {
  if (::getpid() != process_)
    throw Failure(OCLC_E_ARGUMENT, "the process forked after the context was created; create a context in the child");
}

std::shared_ptr<LoadedPlan> Context::load(const std::shared_ptr<Context>& self,
                                          const std::shared_ptr<const package::Package>& package) {
  const std::lock_guard lock(loaded_->mutex);
  std::erase_if(loaded_->plans, [](const auto& item) { return item.second.expired(); });
  std::weak_ptr<LoadedPlan>& slot = loaded_->plans[package.get()];
  if (auto loaded = slot.lock()) return loaded;
  auto loaded = std::make_shared<LoadedPlan>(self, package);
  slot = loaded;
  return loaded;
}

}  // namespace oclc::runtime
