// What a driver made of a program, and the program made of that again.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/handles.h"

namespace oclc::runtime {

// What the driver made of a program; empty where it gives none.
std::vector<unsigned char> binary_of(cl_program program);
// A built program of the binary, or what the driver says against it.
cl_int build_binary(cl_context context, cl_device_id device, std::span<const unsigned char> binary, const std::string& options,
                    ClProgram& program);

}  // namespace oclc::runtime
