// Pages of 2 MiB for what kernels on a CPU read through: processors keep the addresses of few pages of 4 KiB at hand.
#pragma once
#include <CL/cl.h>

#include <cstddef>
#include <functional>

namespace oclc::runtime {

// Memory from this size on gains: the addresses of less are at hand.
constexpr std::size_t kLeastHuge = std::size_t{4} << 20;

// Whether the system grants huge pages to memory that asks for them.
bool grants_huge_pages();

// Asks for them for a CPU device's buffer that nothing was written to, and has it filled. A refusal costs speed alone. Throws
// Failure where the buffer cannot be mapped.
void use_huge_pages(cl_command_queue queue, cl_mem memory, std::size_t bytes, const std::function<void(std::byte*)>& fill = {});

}  // namespace oclc::runtime
