#include "runtime/program/program_binary.h"

namespace oclc::runtime {

std::vector<unsigned char> binary_of(cl_program program) {
  std::size_t bytes = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::vector<unsigned char> binary(bytes);
  unsigned char* data = binary.data();
  if (bytes == 0 || clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS) return {};
  return binary;
}

cl_int build_binary(cl_context context, cl_device_id device, std::span<const unsigned char> binary, const std::string& options,
                    ClProgram& program) {
  const unsigned char* data = binary.data();
  const std::size_t bytes = binary.size();
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  program = ClProgram(clCreateProgramWithBinary(context, 1, &device, &bytes, &data, &status, &code));
  if (code == CL_SUCCESS) code = status;
  return code == CL_SUCCESS ? clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr) : code;
}

}  // namespace oclc::runtime
