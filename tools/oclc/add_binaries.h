// Binaries of a device's driver, put into a plan.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace oclc::tool {

// Builds the programs of the plan at `path` on a device, runs every entry point once, so that its kernels are compiled, and
// writes the plan again with the driver's binaries. `sizes`: of dimensions that are open; others take 1, or the least the plan
// allows. Throws rt::Error.
void add_binaries(const std::string& path, const std::string& device, const std::map<std::string, std::int64_t>& sizes);

}  // namespace oclc::tool
