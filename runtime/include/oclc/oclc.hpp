// The runtime for C++17: owning classes over oclc.h that throw oclc::rt::Error. Rules of ownership and threads are those of
// oclc.h.
#ifndef OCLC_OCLC_HPP
#define OCLC_OCLC_HPP

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "oclc/oclc.h"
#include "oclc/plan.hpp"

namespace oclc::rt {

class Context {
 public:
  explicit Context(const oclc_context_options& options) { create(&options); }
  explicit Context(const std::string& device = "") {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.device = device.c_str();
    create(&options);
  }
  // On the caller's own objects.
  Context(struct _cl_context* cl_context, struct _cl_command_queue* cl_queue) {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.cl_context = cl_context;
    options.cl_queue = cl_queue;
    create(&options);
  }

  // With a queue of its own on the other one's device; sessions of a plan on both share its programs and constants.
  static Context beside(const Context& other) {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.beside = other.get();
    return Context(options);
  }

  // See oclc_plan_write_binaries.
  void write_binaries(const Plan& plan, const std::string& path) const {
    detail::checked([&](oclc_error* error) { return oclc_plan_write_binaries(plan.get(), get(), path.c_str(), error); });
  }

  oclc_context* get() const noexcept { return handle_.get(); }
  struct _cl_context* cl_context() const noexcept {
    return oclc_context_cl_context(get());
  }
  struct _cl_command_queue* cl_queue() const noexcept {
    return oclc_context_cl_queue(get());
  }
  oclc_device_info device() const {
    oclc_device_info info = OCLC_INIT(oclc_device_info);
    detail::checked_query(oclc_context_get_device(get(), &info));
    return info;
  }

 private:
  void create(const oclc_context_options* options) {
    oclc_context* handle = nullptr;
    detail::checked([&](oclc_error* error) { return oclc_context_create(options, &handle, error); });
    handle_.reset(handle);
  }
  std::unique_ptr<oclc_context, detail::Deleter<oclc_context_release>> handle_;
};

// What Session::start gives: the end of a run. It is released with the object; the run goes on without it.
class Event {
 public:
  explicit Event(struct _cl_event* event) : handle_(event) {}
  struct _cl_event* get() const noexcept {
    return handle_.get();
  }
  void wait() const {
    detail::checked([&](oclc_error* error) { return oclc_event_wait(get(), error); });
  }

 private:
  std::unique_ptr<struct _cl_event, detail::Deleter<oclc_event_release>> handle_;
};

// `name` and `shape`, whose first dimension is the step, are not copied.
template <class T>
oclc_series host_series(oclc_direction direction, const char* name, T* data, const std::vector<std::int64_t>& shape) {
  oclc_series series = OCLC_INIT(oclc_series);
  series.direction = direction;
  series.name = name;
  series.dtype = dtype_of<std::remove_const_t<T>>();
  series.rank = static_cast<std::uint32_t>(shape.size());
  series.shape = shape.data();
  series.host = const_cast<std::remove_const_t<T>*>(data);
  series.bytes = sizeof(T);
  for (const std::int64_t d : shape) series.bytes *= static_cast<std::uint64_t>(d);
  return series;
}

// An output that is read where it lies, see oclc_session_map_output; the session outlives it.
class MappedOutput {
 public:
  MappedOutput(oclc_session* session, std::uint32_t entry, std::string name)
      : session_(session), entry_(entry), name_(std::move(name)) {
    const oclc_status status = oclc_session_map_output(session, entry, name_.c_str(), &host_, &bytes_);
    if (status != OCLC_OK) throw Error(status, oclc_session_cl_code(session), oclc_session_message(session));
  }
  MappedOutput(MappedOutput&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)),
        entry_(other.entry_),
        name_(std::move(other.name_)),
        host_(other.host_),
        bytes_(other.bytes_) {}
  MappedOutput& operator=(MappedOutput&&) = delete;
  ~MappedOutput() {
    if (session_) oclc_session_unmap_output(session_, entry_, name_.c_str());
  }
  std::uint64_t bytes() const noexcept { return bytes_; }
  const void* data() const noexcept { return host_; }
  template <class T>
  const T* as() const noexcept {
    return static_cast<const T*>(host_);
  }

 private:
  oclc_session* session_;
  std::uint32_t entry_;
  std::string name_;
  const void* host_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class Session {
 public:
  Session(const Plan& plan, const Context& context) {
    oclc_session* handle = nullptr;
    detail::checked([&](oclc_error* error) { return oclc_session_create(plan.get(), context.get(), &handle, error); });
    handle_.reset(handle);
  }

  oclc_session* get() const noexcept { return handle_.get(); }

  void bind_dim(const std::string& symbol, std::int64_t value) { check(oclc_session_bind_dim(get(), symbol.c_str(), value)); }

  // Host memory of the caller, used while a run executes.
  template <class T>
  void set_input(std::uint32_t entry, const std::string& name, const T* data, const std::vector<std::int64_t>& shape) {
    oclc_tensor t = host_tensor<T>(const_cast<T*>(data), shape);
    check(oclc_session_set_input(get(), entry, name.c_str(), &t));
  }
  template <class T>
  void set_output(std::uint32_t entry, const std::string& name, T* data, const std::vector<std::int64_t>& shape) {
    oclc_tensor t = host_tensor<T>(data, shape);
    check(oclc_session_set_output(get(), entry, name.c_str(), &t));
  }
  // Texts that end with a NUL, which are copied.
  void set_strings(std::uint32_t entry, const std::string& name, const std::vector<const char*>& texts,
                   const std::vector<std::int64_t>& shape) {
    oclc_tensor t = host_tensor<const char*>(const_cast<const char**>(texts.data()), shape);
    t.bytes = texts.size() * sizeof(const char*);
    check(oclc_session_set_input(get(), entry, name.c_str(), &t));
  }
  void set_input(std::uint32_t entry, const std::string& name, const oclc_tensor& tensor) {
    check(oclc_session_set_input(get(), entry, name.c_str(), &tensor));
  }
  void set_output(std::uint32_t entry, const std::string& name, const oclc_tensor& tensor) {
    check(oclc_session_set_output(get(), entry, name.c_str(), &tensor));
  }
  std::vector<std::int64_t> shape(std::uint32_t entry, oclc_direction direction, const std::string& name) const {
    std::uint32_t rank = 0;
    check(oclc_session_get_shape(get(), entry, direction, name.c_str(), nullptr, 0, &rank, nullptr));
    std::vector<std::int64_t> shape(rank);
    check(oclc_session_get_shape(get(), entry, direction, name.c_str(), shape.data(), rank, &rank, nullptr));
    return shape;
  }
  // What the memory of an output must have, also where the model computes its shape.
  std::uint64_t bytes(std::uint32_t entry, oclc_direction direction, const std::string& name) const {
    std::uint64_t size = 0;
    check(oclc_session_get_shape(get(), entry, direction, name.c_str(), nullptr, 0, nullptr, &size));
    return size;
  }

  void prepare(std::uint32_t entry) { check(oclc_session_prepare(get(), entry)); }
  void run(std::uint32_t entry) { check(oclc_session_run(get(), entry)); }
  // See oclc_session_run_steps. `host_series` makes what it takes of the caller's memory.
  void run_steps(std::uint32_t entry, std::uint64_t steps, const std::vector<oclc_series>& series = {}) {
    check(oclc_session_run_steps(get(), entry, steps, series.data(), static_cast<std::uint32_t>(series.size())));
  }
  void read_output(std::uint32_t entry, const std::string& name, void* host, std::uint64_t bytes) {
    check(oclc_session_read_output(get(), entry, name.c_str(), host, bytes));
  }
  // The result is read where it lies, and lives no longer than the session.
  MappedOutput map_output(std::uint32_t entry, const std::string& name) { return MappedOutput(get(), entry, name); }
  // Enqueues a run; host memory of its inputs and outputs stays in use until the event.
  Event start(std::uint32_t entry, const std::vector<struct _cl_event*>& wait = {}) { return Event(enqueue(entry, wait)); }
  // From any thread: ends the run that another one is enqueueing, see oclc_session_cancel.
  void cancel() noexcept { oclc_session_cancel(get()); }
  // Of later runs, see oclc_session_set_time_limit; 0: none.
  void set_time_limit(std::uint64_t ns) { check(oclc_session_set_time_limit(get(), ns)); }
  // The event belongs to the caller.
  struct _cl_event* enqueue(std::uint32_t entry, const std::vector<struct _cl_event*>& wait = {}) {
    struct _cl_event* event = nullptr;
    check(oclc_session_enqueue(get(), entry, static_cast<std::uint32_t>(wait.size()), wait.data(), &event));
    return event;
  }

  void read_variable(const std::string& name, void* host, std::uint64_t bytes) const {
    check(oclc_session_read_variable(get(), name.c_str(), host, bytes));
  }
  void write_variable(const std::string& name, const void* host, std::uint64_t bytes) {
    check(oclc_session_write_variable(get(), name.c_str(), host, bytes));
  }
  void reset_state() { check(oclc_session_reset_state(get())); }
  void save_state(const std::string& path) { check(oclc_session_save_state(get(), path.c_str())); }
  void load_state(const std::string& path) { check(oclc_session_load_state(get(), path.c_str())); }

  oclc_stats stats() const {
    oclc_stats stats = OCLC_INIT(oclc_stats);
    check(oclc_session_get_stats(get(), &stats));
    return stats;
  }
  void enable_nan_check(bool enabled) { check(oclc_session_enable_nan_check(get(), enabled)); }
  void enable_profile(bool enabled) { check(oclc_session_enable_profile(get(), enabled)); }
  std::vector<oclc_launch_info> launches() {
    std::uint32_t count = 0;
    check(oclc_session_get_launches(get(), nullptr, 0, &count));
    std::vector<oclc_launch_info> list(count, OCLC_INIT(oclc_launch_info));
    check(oclc_session_get_launches(get(), list.data(), count, &count));
    return list;
  }
  std::vector<oclc_build_info> builds() {
    std::uint32_t count = 0;
    check(oclc_session_get_builds(get(), nullptr, 0, &count));
    std::vector<oclc_build_info> list(count, OCLC_INIT(oclc_build_info));
    check(oclc_session_get_builds(get(), list.data(), count, &count));
    return list;
  }

 private:
  void check(oclc_status status) const {
    if (status != OCLC_OK) throw Error(status, oclc_session_cl_code(get()), oclc_session_message(get()));
  }
  template <class T>
  static oclc_tensor host_tensor(T* data, const std::vector<std::int64_t>& shape) {
    oclc_tensor t = OCLC_INIT(oclc_tensor);
    t.dtype = dtype_of<T>();
    t.rank = static_cast<std::uint32_t>(shape.size());
    t.shape = shape.data();
    static constexpr std::int64_t kScalar = 0;
    if (shape.empty()) t.shape = &kScalar;
    t.host = data;
    t.bytes = sizeof(T);
    for (const std::int64_t d : shape) t.bytes *= static_cast<std::uint64_t>(d);
    return t;
  }
  std::unique_ptr<oclc_session, detail::Deleter<oclc_session_release>> handle_;
};

}  // namespace oclc::rt

#endif  // OCLC_OCLC_HPP
