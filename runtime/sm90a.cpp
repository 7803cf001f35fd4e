#include "runtime/sm90a.h"

namespace oclc::runtime {
namespace {

// cl_nv_device_attribute_query
constexpr cl_device_info kComputeCapabilityMajor = 0x4000, kComputeCapabilityMinor = 0x4001;

}  // namespace

bool has_sm90a(cl_device_id device) {
  cl_uint major = 0, minor = 0;
  return clGetDeviceInfo(device, kComputeCapabilityMajor, sizeof major, &major, nullptr) == CL_SUCCESS &&
         clGetDeviceInfo(device, kComputeCapabilityMinor, sizeof minor, &minor, nullptr) == CL_SUCCESS && major == 9 &&
         minor == 0;
}

std::string lifted_to_sm90a(std::string_view ptx) {
  constexpr std::string_view kHidden = "//@", kTarget = ".target sm_90";
  const std::size_t target = ptx.find(kTarget);
  if (target == ptx.npos) return "";
  const std::size_t behind = target + kTarget.size();
  std::string text(ptx.substr(0, behind));
  if (!ptx.substr(behind).starts_with('a')) text += 'a';
  for (std::size_t at = behind; at < ptx.size();) {
    const std::size_t hidden = ptx.find(kHidden, at);
    text += ptx.substr(at, hidden == ptx.npos ? hidden : hidden - at);
    at = hidden == ptx.npos ? ptx.size() : hidden + kHidden.size();
  }
  return text;
}

}  // namespace oclc::runtime
