// Memory of storages on the device, pinned memory of the host.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstdint>

#include "frontends/torch_device/csrc/device.h"

namespace oclc::torch_device {

// What a storage's DataPtr holds: a buffer, and the address that stands for it. On devices whose memory is the host's the
// buffer lies at that address; on others the addresses are reserved and not readable, so that pointers of different storages
// differ.
struct Block {
  cl_mem memory = nullptr;
  void* base = nullptr;
  std::size_t bytes = 0;
  Device* device = nullptr;
};

// A part of a buffer.
struct Place {
  cl_mem memory = nullptr;
  std::uint64_t offset = 0;
};

// Takes blocks that were freed before it makes new ones: the queue is in order, so that commands on the old tensor end first.
c10::Allocator& device_allocator();
c10::Allocator& pinned_allocator();
bool is_pinned(const void* pointer);
// The device of an address that the allocator gave. Error for any other.
c10::Device device_of(const void* pointer);

// Where a tensor's first element lies. Error if its storage was not made by the allocator.
Place place_of(const at::Tensor& tensor);
Block& block_of(const c10::Storage& storage);

// A storage's size, keeping what it holds.
void resize_storage(const c10::Storage& storage, std::size_t bytes);

struct MemoryStats {
  std::uint64_t allocated = 0, reserved = 0, peak_allocated = 0, peak_reserved = 0;
  std::uint64_t blocks = 0, cached_blocks = 0;  // in use, kept for later
  std::uint64_t created = 0, released = 0, out_of_memory = 0;
  std::uint64_t allocations = 0, frees = 0, allocated_bytes = 0, freed_bytes = 0;  // since the last reset_accumulated()
  std::uint64_t limit = 0;
};
MemoryStats memory_stats(c10::DeviceIndex index);
void reset_peak(c10::DeviceIndex index);
void reset_accumulated(c10::DeviceIndex index);
// Gives the blocks that no tensor uses back to the driver, after waiting for the device.
void empty_cache(c10::DeviceIndex index);
// Most bytes to reserve; 0: what the device has.
void set_memory_limit(c10::DeviceIndex index, std::uint64_t bytes);

}  // namespace oclc::torch_device
