// Devices of all platforms: list, facts, selection.
#pragma once
#include "runtime/device/opencl.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oclc/oclc.h"

namespace oclc::runtime {

struct Device {
  cl_platform_id platform;
  cl_device_id id;
  unsigned platform_index;
  unsigned device_index;
};

// Platforms in the loader's order, devices in the platform's. Empty when there is none; throws on other errors.
std::vector<Device> list_devices();

// See oclc_device_select.
std::size_t select_device(const std::vector<Device>& devices, const char* selection);

// Facts, without index, platform and device number.
oclc_device_info device_facts(cl_device_id id);

std::string device_string(cl_device_id id, cl_device_info what);
std::string platform_string(cl_platform_id id, cl_platform_info what);
bool has_extension(cl_device_id id, std::string_view name);
std::uint32_t device_quirks(cl_device_id id);

template <class T>
T device_value(cl_device_id id, cl_device_info what, T otherwise = T()) {
  T value = otherwise;
  return clGetDeviceInfo(id, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}

}  // namespace oclc::runtime
