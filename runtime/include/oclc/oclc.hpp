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

namespace oclc::rt {

class Error : public std::runtime_error {
 public:
  Error(oclc_status status, std::int32_t cl_code, const std::string& message)
      : std::runtime_error(message), status_(status), cl_code_(cl_code) {}
  oclc_status status() const noexcept { return status_; }
  std::int32_t cl_code() const noexcept { return cl_code_; }

 private:
  oclc_status status_;
  std::int32_t cl_code_;
};

namespace detail {

template <class Call>
void checked(Call call) {
  oclc_error error = OCLC_INIT(oclc_error);
  const oclc_status status = call(&error);
  if (status != OCLC_OK) throw Error(status, error.cl_code, error.message);
}

// For queries that fail on an index or a null handle alone.
inline void checked_query(oclc_status status) {
  if (status != OCLC_OK) throw Error(status, 0, "index out of range");
}

template <auto Release>
struct Deleter {
  template <class T>
  void operator()(T* handle) const noexcept {
    Release(handle);
  }
};

}  // namespace detail

// The oclc_dtype of a C++ type.
template <class T>
constexpr oclc_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return OCLC_F32;
  else if constexpr (std::is_same_v<T, double>)
    return OCLC_F64;
  else if constexpr (std::is_same_v<T, bool>)
    return OCLC_BOOL;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return OCLC_I8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return OCLC_I16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return OCLC_I32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return OCLC_I64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return OCLC_U8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return OCLC_U16;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return OCLC_U32;
  else if constexpr (std::is_same_v<T, const char*>)
    return OCLC_STRING;
  else {
    static_assert(std::is_same_v<T, std::uint64_t>, "no oclc_dtype for this type");
    return OCLC_U64;
  }
}

inline std::vector<oclc_device_info> devices() {
  std::uint32_t count = 0;
  detail::checked([&](oclc_error* error) { return oclc_device_count(&count, error); });
  std::vector<oclc_device_info> list(count, OCLC_INIT(oclc_device_info));
  for (std::uint32_t i = 0; i < count; ++i)
    detail::checked([&](oclc_error* error) { return oclc_device_get(i, &list[i], error); });
  return list;
}

class Plan {
 public:
  static Plan load(const std::string& path, std::uint32_t flags = 0) {
    Plan plan;
    oclc_plan* handle = nullptr;
    detail::checked([&](oclc_error* error) { return oclc_plan_load(path.c_str(), flags, &handle, error); });
    plan.handle_.reset(handle);
    return plan;
  }
  static Plan load(const void* bytes, std::size_t size) {
    Plan plan;
    oclc_plan* handle = nullptr;
    detail::checked([&](oclc_error* error) { return oclc_plan_load_memory(bytes, size, &handle, error); });
    plan.handle_.reset(handle);
    return plan;
  }

  oclc_plan* get() const noexcept { return handle_.get(); }

  oclc_plan_info info() const {
    oclc_plan_info info = OCLC_INIT(oclc_plan_info);
    detail::checked_query(oclc_plan_get_info(get(), &info));
    return info;
  }
  // Names and values, see oclc_plan_get_metadata.
  std::vector<std::pair<std::string, std::string>> metadata() const {
    std::vector<std::pair<std::string, std::string>> list;
    for (std::uint32_t i = 0; i < info().metadata_count; ++i) {
      const char *name = nullptr, *value = nullptr;
      detail::checked_query(oclc_plan_get_metadata(get(), i, &name, &value));
      list.emplace_back(name, value);
    }
    return list;
  }
  std::uint32_t entry(const std::string& name) const {
    std::uint32_t index = 0;
    detail::checked([&](oclc_error* error) { return oclc_plan_find_entry(get(), name.c_str(), &index, error); });
    return index;
  }
  oclc_entry_info entry_info(std::uint32_t entry) const {
    oclc_entry_info info = OCLC_INIT(oclc_entry_info);
    detail::checked_query(oclc_plan_get_entry(get(), entry, &info));
    return info;
  }
  std::vector<oclc_binding_info> inputs(std::uint32_t entry) const {
    return bindings(entry, OCLC_INPUT, entry_info(entry).input_count);
  }
  std::vector<oclc_binding_info> outputs(std::uint32_t entry) const {
    return bindings(entry, OCLC_OUTPUT, entry_info(entry).output_count);
  }
  std::vector<oclc_symbol_info> symbols() const {
    std::vector<oclc_symbol_info> list(info().symbol_count, OCLC_INIT(oclc_symbol_info));
    for (std::uint32_t i = 0; i < list.size(); ++i) detail::checked_query(oclc_plan_get_symbol(get(), i, &list[i]));
    return list;
  }
  std::vector<oclc_binding_info> variables() const {
    std::vector<oclc_binding_info> list(info().variable_count, OCLC_INIT(oclc_binding_info));
    for (std::uint32_t i = 0; i < list.size(); ++i) detail::checked_query(oclc_plan_get_variable(get(), i, &list[i]));
    return list;
  }
  std::vector<std::int64_t> variable_shape(std::uint32_t index) const {
    oclc_binding_info info = OCLC_INIT(oclc_binding_info);
    detail::checked_query(oclc_plan_get_variable(get(), index, &info));
    std::vector<std::int64_t> shape(info.rank);
    detail::checked_query(oclc_plan_get_variable_shape(get(), index, shape.data(), info.rank, nullptr));
    return shape;
  }
  oclc_memory_info memory(std::uint32_t entry, const std::vector<oclc_dim>& dims = {}) const {
    oclc_memory_info info = OCLC_INIT(oclc_memory_info);
    detail::checked([&](oclc_error* error) {
      return oclc_plan_memory(get(), entry, dims.data(), static_cast<std::uint32_t>(dims.size()), &info, error);
    });
    return info;
  }

 private:
  std::vector<oclc_binding_info> bindings(std::uint32_t entry, oclc_direction direction, std::uint32_t count) const {
    std::vector<oclc_binding_info> list(count, OCLC_INIT(oclc_binding_info));
    for (std::uint32_t i = 0; i < count; ++i)
      detail::checked_query(oclc_plan_get_binding(get(), entry, direction, i, &list[i]));
    return list;
  }
  std::unique_ptr<oclc_plan, detail::Deleter<oclc_plan_release>> handle_;
};

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
  // Enqueues a run; host memory of its inputs and outputs stays in use until the event.
  Event start(std::uint32_t entry, const std::vector<struct _cl_event*>& wait = {}) { return Event(enqueue(entry, wait)); }
  // From any thread: ends the run that another one is enqueueing, see oclc_session_cancel.
  void cancel() noexcept { oclc_session_cancel(get()); }
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
