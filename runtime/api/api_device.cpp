#include "runtime/api/api.h"
#include "runtime/device/device.h"
#include "runtime/package/verify/verify.h"

using namespace oclc::runtime;

extern "C" {

const char* oclc_status_name(oclc_status status) {
  switch (status) {
#define OCLC_CASE(x) \
  case x:            \
    return #x
    OCLC_CASE(OCLC_OK);
    OCLC_CASE(OCLC_E_INTERNAL);
    OCLC_CASE(OCLC_E_ARGUMENT);
    OCLC_CASE(OCLC_E_PLAN);
    OCLC_CASE(OCLC_E_UNSUPPORTED);
    OCLC_CASE(OCLC_E_DEVICE);
    OCLC_CASE(OCLC_E_IO);
    OCLC_CASE(OCLC_E_BINDING);
    OCLC_CASE(OCLC_E_MEMORY);
    OCLC_CASE(OCLC_E_BUILD);
    OCLC_CASE(OCLC_E_NAN);
    OCLC_CASE(OCLC_E_CANCELLED);
    OCLC_CASE(OCLC_E_DEADLINE);
#undef OCLC_CASE
  }
  return "unknown status";
}

const char* oclc_version(void) { return OCLC_VERSION; }

size_t oclc_dtype_bytes(oclc_dtype dtype) {
  if (static_cast<unsigned>(dtype) > OCLC_U2) return 0;
  if (dtype == OCLC_STRING) return sizeof(const char*);
  return oclc::package::dtype_bytes(static_cast<oclc::plan::DType>(dtype));
}

const char* oclc_dtype_name(oclc_dtype dtype) {
  static constexpr const char* kNames[] = {
      "float32",    "float64",        "float16",    "bfloat16", "int8",  "int16",      "int32",        "int64",
      "uint8",      "uint16",         "uint32",     "uint64",   "bool",  "string",     "float8e4m3fn", "float8e4m3fnuz",
      "float8e5m2", "float8e5m2fnuz", "float4e2m1", "int4",     "uint4", "float8e8m0", "int2",         "uint2"};
  return static_cast<unsigned>(dtype) > OCLC_U2 ? "unknown" : kNames[dtype];
}

oclc_status oclc_device_count(uint32_t* count, oclc_error* error) {
  return guarded(error, [&] {
    need(count, "count");
    *count = static_cast<std::uint32_t>(list_devices().size());
  });
}

oclc_status oclc_device_get(uint32_t index, oclc_device_info* info, oclc_error* error) {
  return guarded(error, [&] {
    need(info, "info");
    const auto devices = list_devices();
    if (index >= devices.size())
      throw Failure(OCLC_E_ARGUMENT,
                    "device index " + std::to_string(index) + " of " + std::to_string(devices.size()) + " devices");
    oclc_device_info facts = device_facts(devices[index].id);
    facts.index = index;
    facts.platform = devices[index].platform_index;
    facts.device = devices[index].device_index;
    if (give(info, facts) != OCLC_OK) throw Failure(OCLC_E_ARGUMENT, "info: its size is not set");
  });
}

oclc_status oclc_device_select(const char* selection, uint32_t* index, oclc_error* error) {
  return guarded(error, [&] {
    need(index, "index");
    *index = static_cast<std::uint32_t>(select_device(list_devices(), selection));
  });
}

oclc_status oclc_device_extensions(uint32_t index, char* text, size_t capacity, size_t* needed, oclc_error* error) {
  return guarded(error, [&] {
    const auto devices = list_devices();
    if (index >= devices.size())
      throw Failure(OCLC_E_ARGUMENT,
                    "device index " + std::to_string(index) + " of " + std::to_string(devices.size()) + " devices");
    const std::string all = device_string(devices[index].id, CL_DEVICE_EXTENSIONS);
    if (needed) *needed = all.size() + 1;
    if (!text || capacity == 0) return;
    const std::size_t length = std::min(all.size(), capacity - 1);
    std::memcpy(text, all.data(), length);
    text[length] = '\0';
  });
}

}  // extern "C"
