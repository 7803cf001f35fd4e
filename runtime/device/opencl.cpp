#include "runtime/device/opencl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "runtime/failure.h"
#include "runtime/program/pocl_folder.h"

namespace oclc::runtime {
namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

std::string last_reason() {
  const char* reason = ::dlerror();
  return reason ? reason : "unknown reason";
}

// Stays open: drivers do not survive that their loader is closed.
void* open_library() {
  if (const char* file = std::getenv("OCLC_OPENCL"); file && *file) {
    if (void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    throw Failure(OCLC_E_DEVICE, "the OpenCL library that OCLC_OPENCL names cannot be loaded: " + last_reason());
  }
  if (::dlsym(RTLD_DEFAULT, "clGetPlatformIDs")) return RTLD_DEFAULT;
  if (void* library = ::dlopen(kLoader, RTLD_NOW | RTLD_LOCAL)) return library;
  throw Failure(
      OCLC_E_DEVICE,
      "no OpenCL loader: " + last_reason() +
          "; install one and a driver (Debian: ocl-icd-libopencl1, and pocl-opencl-icd for CPUs), or name the library "
          "by the environment variable OCLC_OPENCL");
}

}  // namespace

void* find_opencl_function(const char* name) {
  static std::mutex mutex;
  static void* library = nullptr;
  static bool open = false;
  const std::lock_guard lock(mutex);
  if (!open) {
    make_room_for_pocl();
    library = open_library();
    open = true;
  }
  if (void* address = ::dlsym(library, name)) return address;
  throw Failure(OCLC_E_UNSUPPORTED, std::string("the OpenCL loader lacks ") + name +
                                        "; install one of OpenCL 1.2 or newer (Debian: ocl-icd-libopencl1)");
}

}  // namespace oclc::runtime
