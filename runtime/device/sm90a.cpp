#include "runtime/device/sm90a.h"

#include <algorithm>

#include "runtime/device/opencl.h"

namespace oclc::runtime {
namespace {

// cl_nv_device_attribute_query
constexpr cl_device_info kComputeCapabilityMajor = 0x4000, kComputeCapabilityMinor = 0x4001;

}  // namespace

unsigned compute_capability(cl_device_id device) {
  cl_uint major = 0, minor = 0;
  if (clGetDeviceInfo(device, kComputeCapabilityMajor, sizeof major, &major, nullptr) != CL_SUCCESS ||
      clGetDeviceInfo(device, kComputeCapabilityMinor, sizeof minor, &minor, nullptr) != CL_SUCCESS)
    return 0;
  return 10 * major + minor;
}

bool has_sm90a(cl_device_id device) { return compute_capability(device) == 90; }

std::string lifted_to_sm90a(std::string_view ptx) {
  constexpr std::string_view kHidden = "//@", kTarget = ".target sm_90", kSize = ".reqntid ";
  if (ptx.find(kTarget) == ptx.npos) return "";
  std::string text;
  for (std::size_t at = 0; at < ptx.size();) {
    const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string line(ptx.substr(at, end - at));
    at = end + 1;
    if (line.starts_with(kTarget) && line.substr(kTarget.size(), 1) != "a") line.insert(kTarget.size(), 1, 'a');
    for (std::size_t hidden = line.find(kHidden); hidden != line.npos; hidden = line.find(kHidden))
      line.erase(hidden, kHidden.size());
    // What makes the assembler heed a trade of registers.
    if (line.starts_with(kSize)) line += "\n.minnctapersm 1";
    text += line + '\n';
  }
  return text;
}

}  // namespace oclc::runtime
