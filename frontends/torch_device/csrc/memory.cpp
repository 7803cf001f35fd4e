#include "frontends/torch_device/csrc/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <vector>

namespace oclc::torch_device {
namespace {

constexpr std::size_t kSmallest = 512, kPage = 4096, kHugePage = std::size_t{2} << 20;

// Eight sizes an octave: at most an eighth of a block is unused, and there are few enough sizes that blocks are found again.
std::size_t block_bytes(std::size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::max(kSmallest, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

struct Pool {
  std::map<std::size_t, std::vector<Block*>> free;
  MemoryStats stats;
};

struct Memory {
  std::mutex mutex;
  std::unordered_map<c10::DeviceIndex, Pool> pools;
  std::map<const std::byte*, Block*> by_address;
  std::map<const std::byte*, std::pair<std::size_t, cl_mem>> pinned;  // bytes and buffer (or null)
};

Memory& memory() {
  static auto* all = new Memory;
  return *all;
}

void* reserve_addresses(std::size_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

void release_base(const Block& block) {
  if (block.device->host_memory)
    std::free(block.base);
  else
    ::munmap(block.base, block.bytes);
}

// Null if there is no memory.
Block* create_block(Device& d, std::size_t bytes) {
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  block->device = &d;
  if (d.host_memory) {
    const bool huge = bytes >= 2 * kHugePage;
    if (::posix_memalign(&block->base, huge ? kHugePage : kPage, bytes) != 0) return nullptr;
    if (huge) ::madvise(block->base, bytes, MADV_HUGEPAGE);
  } else {
    block->base = reserve_addresses(bytes);
    if (!block->base) return nullptr;
  }
  cl_int code = CL_SUCCESS;
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (d.host_memory ? CL_MEM_USE_HOST_PTR : 0);
  block->memory = cl::clCreateBuffer(d.context, flags, bytes, d.host_memory ? block->base : nullptr, &code);
  if (code != CL_SUCCESS) {
    release_base(*block);
    return nullptr;
  }
  return block.release();
}

std::uint64_t limit_of(const Device& d, const Pool& pool) { return pool.stats.limit ? pool.stats.limit : d.info.global_bytes; }

void release_cached(Device& d, Pool& pool) {
  if (pool.free.empty()) return;
  synchronize(d);
  for (auto& [bytes, blocks] : pool.free) {
    for (Block* block : blocks) {
      cl::clReleaseMemObject(block->memory);
      memory().by_address.erase(static_cast<const std::byte*>(block->base));
      release_base(*block);
      pool.stats.reserved -= bytes;
      ++pool.stats.released;
      --pool.stats.cached_blocks;
      delete block;
    }
  }
  pool.free.clear();
}

// Null if there is none that wastes less than an eighth.
Block* take_cached(Pool& pool, std::size_t bytes) {
  const auto found = pool.free.lower_bound(bytes);
  if (found == pool.free.end() || found->first > bytes + bytes / 8) return nullptr;
  Block* block = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) pool.free.erase(found);
  --pool.stats.cached_blocks;
  return block;
}

Block* new_block(Device& d, Pool& pool, std::size_t bytes) {
  if (bytes > d.info.max_alloc_bytes) return nullptr;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (pool.stats.reserved + bytes <= limit_of(d, pool)) {
      if (Block* block = create_block(d, bytes)) {
        pool.stats.reserved += bytes;
        pool.stats.peak_reserved = std::max(pool.stats.peak_reserved, pool.stats.reserved);
        ++pool.stats.created;
        memory().by_address.emplace(static_cast<const std::byte*>(block->base), block);
        return block;
      }
    }
    release_cached(d, pool);
  }
  return nullptr;
}

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  Pool& pool = all.pools[block->device->index];
  pool.free[block->bytes].push_back(block);
  pool.stats.allocated -= block->bytes;
  pool.stats.freed_bytes += block->bytes;
  --pool.stats.blocks;
  ++pool.stats.frees;
  ++pool.stats.cached_blocks;
}

c10::DataPtr allocate_on(c10::DeviceIndex index, std::size_t bytes) {
  const c10::Device place(c10::DeviceType::PrivateUse1, index);
  Device& d = device(index);
  if (bytes == 0) return {nullptr, place};
  const std::size_t rounded = block_bytes(bytes);
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  Pool& pool = all.pools[index];
  Block* block = take_cached(pool, rounded);
  if (!block) block = new_block(d, pool, rounded);
  if (!block) {
    ++pool.stats.out_of_memory;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "device ocl:", static_cast<int>(index), " (", d.info.name,
                     ") is out of memory: wanted ", bytes, " bytes, in use are ", pool.stats.allocated, " of ",
                     limit_of(d, pool), ", the largest buffer has ", d.info.max_alloc_bytes,
                     "; use a smaller batch, or drop tensors that are not needed");
  }
  pool.stats.allocated += block->bytes;
  pool.stats.allocated_bytes += block->bytes;
  pool.stats.peak_allocated = std::max(pool.stats.peak_allocated, pool.stats.allocated);
  ++pool.stats.blocks;
  ++pool.stats.allocations;
  return {block->base, block, &free_block, place};
}

// A value now, at its peak, and what was added to it and taken from it.
c10::CachingAllocator::StatArray stat(std::uint64_t current, std::uint64_t peak, std::uint64_t added, std::uint64_t taken) {
  c10::CachingAllocator::StatArray all;
  auto& sum = all[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  sum.current = static_cast<std::int64_t>(current);
  sum.peak = static_cast<std::int64_t>(peak);
  sum.allocated = static_cast<std::int64_t>(added);
  sum.freed = static_cast<std::int64_t>(taken);
  return all;
}

// torch.accelerator's view of the memory, too.
struct DeviceAllocator final : c10::DeviceAllocator {
  bool initialized() override { return device_count() > 0; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) empty_cache(index);
  }
  // All streams of a device are one queue in order: memory is not used again before its last command ends.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const MemoryStats s = memory_stats(index);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocation = stats.active = stat(s.blocks, s.blocks, s.allocations, s.frees);
    stats.allocated_bytes = stats.active_bytes = stat(s.allocated, s.peak_allocated, s.allocated_bytes, s.freed_bytes);
    stats.reserved_bytes = stat(s.reserved, s.peak_reserved, s.reserved, 0);
    stats.segment = stat(s.created - s.released, s.created - s.released, s.created, s.released);
    stats.num_ooms = static_cast<std::int64_t>(s.out_of_memory);
    stats.num_device_alloc = static_cast<std::int64_t>(s.created);
    stats.num_device_free = static_cast<std::int64_t>(s.released);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override { reset_accumulated(index); }
  void resetPeakStats(c10::DeviceIndex index) override { reset_peak(index); }
  // OpenCL does not say what other processes use: what this one has not reserved counts as free.
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const MemoryStats s = memory_stats(index);
    const std::uint64_t total = device(index).info.global_bytes;
    return {total - std::min(total, s.reserved), total};
  }
  c10::DataPtr allocate(std::size_t bytes) override { return allocate_on(current_device(), bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    Memory& all = memory();
    const std::unique_lock lock(all.mutex);
    const auto find = [&](const void* pointer) {
      const auto found = all.by_address.find(static_cast<const std::byte*>(pointer));
      TORCH_CHECK(found != all.by_address.end(), "device ocl: copying memory that the allocator did not give");
      return found->second;
    };
    Block *source = find(from), *target = find(to);
    check(cl::clEnqueueCopyBuffer(target->device->queue, source->memory, target->memory, 0, 0, bytes, 0, nullptr, nullptr),
          "copying a storage");
  }
};

void free_pinned(void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.pinned.find(static_cast<const std::byte*>(pointer));
  if (found == all.pinned.end()) return;
  const cl_mem buffer = found->second.second;
  all.pinned.erase(found);
  Device& d = device(current_device());
  synchronize(d);  // a copy that does not wait may still read it
  if (!buffer) return std::free(pointer);
  cl::clEnqueueUnmapMemObject(d.queue, buffer, pointer, 0, nullptr, nullptr);
  cl::clReleaseMemObject(buffer);
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device host(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, host};
    Device& d = device(current_device());
    void* pointer = nullptr;
    cl_mem buffer = nullptr;
    if (d.host_memory) {
      if (::posix_memalign(&pointer, kPage, bytes) != 0) check(CL_OUT_OF_HOST_MEMORY, "pinning memory");
    } else {
      cl_int code = CL_SUCCESS;
      buffer = cl::clCreateBuffer(d.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &code);
      check(code, "pinning memory");
      pointer =
          cl::clEnqueueMapBuffer(d.queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &code);
      check(code, "mapping pinned memory");
    }
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    all.pinned.emplace(static_cast<const std::byte*>(pointer), std::pair(bytes, buffer));
    return {pointer, pointer, &free_pinned, host};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

c10::Allocator& device_allocator() {
  static auto* allocator = new DeviceAllocator;
  return *allocator;
}

c10::Allocator& pinned_allocator() {
  static auto* allocator = new PinnedAllocator;
  return *allocator;
}

bool is_pinned(const void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  auto found = all.pinned.upper_bound(static_cast<const std::byte*>(pointer));
  if (found == all.pinned.begin()) return false;
  --found;
  return static_cast<const std::byte*>(pointer) < found->first + found->second.first;
}

c10::Device device_of(const void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  auto found = all.by_address.upper_bound(static_cast<const std::byte*>(pointer));
  TORCH_CHECK(found != all.by_address.begin(), "device ocl: the address is none of the device's memory");
  --found;
  TORCH_CHECK(static_cast<const std::byte*>(pointer) < found->first + found->second->bytes,
              "device ocl: the address is none of the device's memory");
  return {c10::DeviceType::PrivateUse1, found->second->device->index};
}

Block& block_of(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  TORCH_CHECK(data.get_deleter() == &free_block,
              "device ocl: wanted a storage that the device allocated, found memory from elsewhere");
  return *static_cast<Block*>(data.get_context());
}

Place place_of(const at::Tensor& tensor) {
  const Block& block = block_of(tensor.storage());
  return {block.memory, static_cast<std::uint64_t>(tensor.storage_offset()) * tensor.element_size()};
}

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "device ocl: trying to resize a storage that is not resizable");
  const std::size_t kept = std::min(impl->nbytes(), bytes);
  c10::DataPtr data = allocate_on(storage.device().index(), bytes);
  if (kept > 0) {
    const Block& old = block_of(storage);
    const auto& grown = *static_cast<Block*>(data.get_context());
    check(cl::clEnqueueCopyBuffer(old.device->queue, old.memory, grown.memory, 0, 0, kept, 0, nullptr, nullptr),
          "resizing a storage");
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(bytes);
}

MemoryStats memory_stats(c10::DeviceIndex index) {
  Device& d = device(index);
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  MemoryStats stats = all.pools[index].stats;
  stats.limit = limit_of(d, all.pools[index]);
  return stats;
}

void reset_peak(c10::DeviceIndex index) {
  const std::lock_guard lock(memory().mutex);
  MemoryStats& stats = memory().pools[index].stats;
  stats.peak_allocated = stats.allocated;
  stats.peak_reserved = stats.reserved;
}

void reset_accumulated(c10::DeviceIndex index) {
  const std::lock_guard lock(memory().mutex);
  MemoryStats& stats = memory().pools[index].stats;
  stats.allocations = stats.frees = stats.allocated_bytes = stats.freed_bytes = 0;
}

void empty_cache(c10::DeviceIndex index) {
  if (!is_open(index)) return;
  Device& d = device(index);
  const std::lock_guard lock(memory().mutex);
  release_cached(d, memory().pools[index]);
}

void set_memory_limit(c10::DeviceIndex index, std::uint64_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().pools[index].stats.limit = bytes;
}

}  // namespace oclc::torch_device
