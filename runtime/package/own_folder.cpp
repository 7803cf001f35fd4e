#include "runtime/package/own_folder.h"

#include <dlfcn.h>

namespace oclc::package {

std::string folder_of(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || !found.dli_fname) return {};
  const std::string file = found.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

}  // namespace oclc::package
