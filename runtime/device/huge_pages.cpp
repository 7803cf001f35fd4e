#include "runtime/device/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "runtime/failure.h"

namespace oclc::runtime {

bool grants_huge_pages() {
  static const bool grants = [] {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string text;
    return std::getline(file, text) && text.find("[never]") == std::string::npos;
  }();
  return grants;
}

void use_huge_pages(cl_command_queue queue, cl_mem memory, std::size_t bytes, const std::function<void(std::byte*)>& fill) {
  cl_int code = CL_SUCCESS;
  void* begin =
      clEnqueueMapBuffer(queue, memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes, 0, nullptr, nullptr, &code);
  check_cl(code, "mapping " + std::to_string(bytes) + " bytes");
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page,
                       last = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
  if (fill) fill(static_cast<std::byte*>(begin));
  check_cl(clEnqueueUnmapMemObject(queue, memory, begin, 0, nullptr, nullptr), "unmapping");
}

}  // namespace oclc::runtime
