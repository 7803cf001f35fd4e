// Host memory that a device transfers from or to at full speed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/context.h"

namespace oclc::runtime {

class PinnedMemory {
 public:
  PinnedMemory() = default;
  // Pinned by the driver where the device has memory of its own, else plain memory.
  PinnedMemory(const Context& context, std::uint64_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  std::byte* data() const { return data_; }

 private:
  void reset();
  cl_command_queue queue_ = nullptr;  // the context outlives the memory
  ClMem memory_;
  std::vector<std::byte> plain_;
  std::byte* data_ = nullptr;
};

}  // namespace oclc::runtime
