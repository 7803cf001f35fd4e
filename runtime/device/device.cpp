#include "runtime/device/device.h"

#include <CL/cl_ext.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/device/cpu_features.h"
#include "runtime/device/opencl.h"
#include "runtime/device/quirks.h"
#include "runtime/failure.h"

namespace oclc::runtime {
namespace {

constexpr const char* kNoDevice =
    "no OpenCL device found; install a driver (Debian: pocl-opencl-icd for CPUs), check that `clinfo -l` lists a device, that "
    "OCL_ICD_VENDORS is unset or right, and that PoCL's cache folder (POCL_CACHE_DIR) is writable";

template <std::size_t N>
void copy(char (&to)[N], const std::string& from) {
  const std::size_t length = std::min(N - 1, from.size());
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string describe(const std::vector<Device>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& d = devices[i];
    text += "\n  " + std::to_string(i) + "  " + std::to_string(d.platform_index) + ":" + std::to_string(d.device_index) + "  " +
            device_string(d.id, CL_DEVICE_NAME) + " (" + platform_string(d.platform, CL_PLATFORM_NAME) + ")";
  }
  return text;
}

bool number(std::string_view text, std::size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::size_t first_of_type(const std::vector<Device>& devices, cl_device_type type) {
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (device_value<cl_device_type>(devices[i].id, CL_DEVICE_TYPE) & type) return i;
  return devices.size();
}

std::size_t select_by_name(const std::vector<Device>& devices, const std::string& selection) {
  std::string part = lower(selection);
  if (part.ends_with('~')) part.pop_back();
  std::vector<std::size_t> hits;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (lower(device_string(devices[i].id, CL_DEVICE_NAME)).find(part) != std::string::npos) hits.push_back(i);
  if (hits.empty())
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (lower(platform_string(devices[i].platform, CL_PLATFORM_NAME)).find(part) != std::string::npos) hits.push_back(i);
  if (hits.size() == 1) return hits[0];
  throw Failure(hits.empty() ? OCLC_E_DEVICE : OCLC_E_ARGUMENT,
                "device '" + selection + (hits.empty() ? "' fits no device" : "' fits several devices") +
                    "; choose by index, P:D, cpu, gpu or a part of a name:" + describe(devices));
}

}  // namespace

std::string device_string(cl_device_id id, cl_device_info what) {
  std::size_t bytes = 0;
  if (clGetDeviceInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (clGetDeviceInfo(id, what, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(std::strlen(text.c_str()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string platform_string(cl_platform_id id, cl_platform_info what) {
  std::size_t bytes = 0;
  if (clGetPlatformInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (clGetPlatformInfo(id, what, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(std::strlen(text.c_str()));
  return text;
}

bool has_extension(cl_device_id id, std::string_view name) {
  const std::string all = " " + device_string(id, CL_DEVICE_EXTENSIONS) + " ";
  return all.find(" " + std::string(name) + " ") != std::string::npos;
}

std::uint32_t device_quirks(cl_device_id id) {
  const auto platform = device_value<cl_platform_id>(id, CL_DEVICE_PLATFORM);
  return find_quirks({platform_string(platform, CL_PLATFORM_NAME) + " " + platform_string(platform, CL_PLATFORM_VERSION),
                      device_string(id, CL_DEVICE_NAME), device_string(id, CL_DRIVER_VERSION)});
}

std::vector<Device> list_devices() {
  cl_uint count = 0;
  const cl_int code = clGetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) return {};
  check_cl(code, "listing OpenCL platforms");
  std::vector<cl_platform_id> platforms(count);
  check_cl(clGetPlatformIDs(count, platforms.data(), nullptr), "listing OpenCL platforms");
  std::vector<Device> devices;
  for (cl_uint p = 0; p < count; ++p) {
    cl_uint n = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS || n == 0) continue;
    std::vector<cl_device_id> ids(n);
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, n, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < n; ++d) devices.push_back({platforms[p], ids[d], p, d});
  }
  return devices;
}

std::size_t select_device(const std::vector<Device>& devices, const char* selection) {
  if (devices.empty()) throw Failure(OCLC_E_DEVICE, kNoDevice, CL_DEVICE_NOT_FOUND);
  if (!selection || !*selection) selection = std::getenv("OCLC_DEVICE");
  if (!selection || !*selection) {
    const std::size_t gpu = first_of_type(devices, CL_DEVICE_TYPE_GPU);
    return gpu < devices.size() ? gpu : 0;
  }
  const std::string text = selection;
  if (text == "cpu" || text == "gpu") {
    const std::size_t found = first_of_type(devices, text == "cpu" ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU);
    if (found < devices.size()) return found;
    throw Failure(OCLC_E_DEVICE, "no OpenCL device is a " + text + "; there are:" + describe(devices), CL_DEVICE_NOT_FOUND);
  }
  std::size_t index = 0;
  if (number(text, index)) {
    if (index < devices.size()) return index;
    throw Failure(OCLC_E_DEVICE, "device index " + text + " is out of range; there are:" + describe(devices));
  }
  std::size_t platform = 0;
  const std::size_t colon = text.find(':');
  if (colon != text.npos && number(std::string_view(text).substr(0, colon), platform) &&
      number(std::string_view(text).substr(colon + 1), index)) {
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (devices[i].platform_index == platform && devices[i].device_index == index) return i;
    throw Failure(OCLC_E_DEVICE, "there is no device " + text + "; there are:" + describe(devices));
  }
  return select_by_name(devices, text);
}

oclc_device_info device_facts(cl_device_id id) {
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  const auto type = device_value<cl_device_type>(id, CL_DEVICE_TYPE);
  info.device_class = type & CL_DEVICE_TYPE_GPU   ? OCLC_DEVICE_GPU
                      : type & CL_DEVICE_TYPE_CPU ? OCLC_DEVICE_CPU
                                                  : OCLC_DEVICE_OTHER;
  info.id = id;
  const auto platform = device_value<cl_platform_id>(id, CL_DEVICE_PLATFORM);
  copy(info.name, device_string(id, CL_DEVICE_NAME));
  copy(info.vendor, device_string(id, CL_DEVICE_VENDOR));
  copy(info.driver, device_string(id, CL_DRIVER_VERSION));
  copy(info.version, device_string(id, CL_DEVICE_VERSION));
  copy(info.opencl_c, device_string(id, CL_DEVICE_OPENCL_C_VERSION));
  copy(info.platform_name, platform_string(platform, CL_PLATFORM_NAME));
  copy(info.platform_version, platform_string(platform, CL_PLATFORM_VERSION));
  if (info.device_class == OCLC_DEVICE_CPU) copy(info.cpu_features, cpu_features());
  copy(info.quirks, quirk_names(device_quirks(id)));
  info.compute_units = device_value<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.clock_mhz = device_value<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  info.max_work_group_size = static_cast<std::uint32_t>(device_value<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  std::size_t sizes[16] = {};
  if (clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, nullptr) == CL_SUCCESS)
    for (int d = 0; d < 3; ++d)
      info.max_work_item_sizes[d] = static_cast<std::uint32_t>(std::min<std::size_t>(sizes[d], UINT32_MAX));
  info.vector_width_float = device_value<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  info.max_parameter_bytes = static_cast<std::uint32_t>(device_value<std::size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE));
  info.alignment_bytes = device_value<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  info.global_bytes = device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_alloc_bytes = device_value<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.local_bytes = device_value<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  info.cache_bytes = device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  info.available = device_value<cl_bool>(id, CL_DEVICE_AVAILABLE) && device_value<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE);
  info.fp16 = has_extension(id, "cl_khr_fp16");
  info.fp64 = has_extension(id, "cl_khr_fp64") || device_value<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  info.unified_memory = device_value<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  info.command_buffer = has_extension(id, "cl_khr_command_buffer");
  info.sub_groups = has_extension(id, "cl_khr_subgroups") || has_extension(id, "cl_intel_subgroups");
  info.sub_group_size = device_value<cl_uint>(id, CL_DEVICE_WARP_SIZE_NV);
  info.little_endian = device_value<cl_bool>(id, CL_DEVICE_ENDIAN_LITTLE) != 0;
  info.address_bits = static_cast<std::uint8_t>(device_value<cl_uint>(id, CL_DEVICE_ADDRESS_BITS));
  return info;
}

}  // namespace oclc::runtime
