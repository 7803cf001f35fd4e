// Plans and what errors are, for oclc.hpp, which includes it.
#ifndef OCLC_PLAN_HPP
#define OCLC_PLAN_HPP

#include <cstdint>
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

  // See oclc_plan_borrow_memory: `bytes` begin at a multiple of 4096.
  static Plan borrow(const void* bytes, std::size_t size, void (*release)(void* user) = nullptr, void* user = nullptr) {
    Plan plan;
    oclc_plan* handle = nullptr;
    detail::checked([&](oclc_error* error) { return oclc_plan_borrow_memory(bytes, size, release, user, &handle, error); });
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

}  // namespace oclc::rt

#endif  // OCLC_PLAN_HPP
