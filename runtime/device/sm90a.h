// Programs with instructions of NVIDIA's sm_90a, which its OpenCL compiler does not target: it assembles for sm_90 whatever it
// is asked for, yet takes PTX of sm_90a as a binary.
#pragma once
#include <CL/cl.h>

#include <string>
#include <string_view>

namespace oclc::runtime {

// The macro of sources that have such instructions, behind "//@" in inline assembly.
inline constexpr std::string_view kSm90aOption = " -DOCLC_SM90A";

// Ten times the compute capability of a device of NVIDIA's; 0 of others.
unsigned compute_capability(cl_device_id device);
bool has_sm90a(cl_device_id device);
// The PTX that the driver made for sm_90, with the hidden instructions and for sm_90a; "" if it names no such target.
std::string lifted_to_sm90a(std::string_view ptx);

}  // namespace oclc::runtime
