// Memory of the machine, asked for before a driver takes it.
#pragma once
#include <cstdint>
#include <string>

namespace oclc::runtime {

// Why so many bytes cannot be had now, or empty: the process may not have that much address space, or the machine or the
// process's control group has less left. "the machine has 5 left".
std::string problem_of_memory(std::uint64_t bytes);

}  // namespace oclc::runtime
