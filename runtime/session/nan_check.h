// Looking for the launch that makes the first NaN of a run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/package/memory.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {

// Follows a run launch by launch: everything it reads is free of NaN before it (checked at the start, then by induction), so
// the first launch after which something it writes holds a NaN has made it.
class NanCheck : public Schedule::Watch {
 public:
  NanCheck(Context& context, const LoadedPlan& loaded, std::uint32_t entry, const package::EntryMemory& memory,
           const std::vector<std::uint64_t>& state_sizes, const Schedule& schedule);

  // Failure(OCLC_E_NAN) if an input or the state holds a NaN. Inputs are on the device.
  void begin();
  void before(const Schedule::Leaf& leaf, std::uint32_t index) override;
  // Failure(OCLC_E_NAN) naming the nodes of the launch.
  void after(const Schedule::Leaf& leaf, std::uint32_t index) override;

 private:
  struct Finding {
    std::uint64_t nans = 0;
    std::uint64_t infinities = 0;
    std::uint64_t first = 0;  // element: NaN if there is one, else infinity
    std::uint64_t elements = 0;
  };
  struct Range {
    std::uint64_t begin, bytes;
  };
  // What a launch that begins a buffer's life finds there is zeros.
  void clear_before(std::uint32_t buffer, std::uint32_t index);
  // At schedule index `step`; before the first if it is -1.
  Finding look(std::uint32_t buffer, int step = -1);
  void look_at(plan::DType dtype, std::uint64_t base, Finding& finding) const;
  std::vector<Range> ranges(std::uint32_t buffer, int index, bool just_begun) const;
  std::string described(std::uint32_t buffer) const;
  std::uint64_t bytes_of(std::uint32_t buffer) const;

  Context& context_;
  const LoadedPlan& loaded_;
  std::uint32_t entry_;
  const package::EntryMemory& memory_;
  const std::vector<std::uint64_t>& state_sizes_;
  const Schedule& schedule_;
  std::vector<std::uint32_t> root_;     // of arena buffers: whose storage they share
  std::vector<int> first_;              // of roots: first launch that uses the storage
  std::vector<std::uint64_t> storage_;  // of roots: bytes
  std::vector<bool> cleared_;           // of roots
  std::string infinity_;                // who made the first one, "" so far
  std::vector<std::byte> host_;
};

}  // namespace oclc::runtime
