#include "runtime/device/pinned.h"

#include <utility>

#include "runtime/failure.h"

namespace oclc::runtime {

PinnedMemory::PinnedMemory(const Context& context, std::uint64_t bytes) : queue_(context.queue()) {
  if (bytes == 0) return;
  if (context.facts().unified_memory) {
    plain_.resize(bytes);
    data_ = plain_.data();
    return;
  }
  cl_int code = CL_SUCCESS;
  memory_ = ClMem(clCreateBuffer(context.cl(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &code));
  check_cl(code, "allocating " + std::to_string(bytes) + " bytes of pinned memory");
  data_ = static_cast<std::byte*>(
      clEnqueueMapBuffer(queue_, memory_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &code));
  check_cl(code, "mapping pinned memory");
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  if (this == &other) return *this;
  reset();
  queue_ = other.queue_;
  memory_ = std::move(other.memory_);
  plain_ = std::move(other.plain_);
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

PinnedMemory::~PinnedMemory() { reset(); }

void PinnedMemory::reset() {
  if (memory_ && data_) clEnqueueUnmapMemObject(queue_, memory_.get(), data_, 0, nullptr, nullptr);
  memory_.reset();
  data_ = nullptr;
}

}  // namespace oclc::runtime
