// When the buffers of a plan are in use.
#pragma once
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/plan/buffer_pieces.h"
#include "plan_generated.h"

namespace oclc {

struct Life {
  int first = -1, last = -1;  // schedule indices of its entry; -1: not used
  int entry = -1;
};

// Collects uses at schedule indices, entry by entry, in the order of the steps. A buffer is known by its index in `buffers`,
// which may grow meanwhile.
class BufferLives {
 public:
  BufferLives(const Schedule& schedule, const std::vector<Buffer>& buffers) : schedule_(schedule), buffers_(buffers) {}

  // From now on uses are those of this entry.
  void begin_entry(int entry);
  // The next step of the schedule: its index.
  int step() { return clock_++; }
  // The index that the next step will have.
  int next_step() const { return clock_; }

  void touch(int buffer, int at);
  // As touch(), for an operand of a kernel of the schedule: what the kernel uses of it.
  void touch_operand(const Kernel& kernel, std::size_t operand, int at);
  // As touch(); the buffer is not alive in pieces.
  void touch_whole(int buffer, int at);
  // The steps from `begin` up to the next one were those of a loop's body. Inner loops come first.
  void add_loop(int begin, std::span<const Step> body);
  // At the end of an entry: what is also used outside of a loop, or read in a trip before it is written, lives through all
  // trips.
  void extend_over_loops();

  Life of(int buffer) const;
  // Of an arena buffer that only kernels use, outside of loops.
  std::vector<plan::Piece> pieces(int buffer) const;

 private:
  struct Loop {
    int begin, end;
    std::span<const Step> body;
  };

  // Whether the first step of `list` that uses `buffer` writes it and does not read it; nothing if none is known to use it.
  std::optional<bool> first_use_writes(std::span<const Step> list, int buffer) const;

  const Schedule& schedule_;
  const std::vector<Buffer>& buffers_;
  std::vector<Life> lives_;
  std::unordered_map<int, std::vector<BufferUse>> uses_;  // of arena buffers of known size, by kernels
  std::set<int> whole_;                                   // used by others too, or in loops
  std::vector<Loop> loops_;
  int clock_ = 0, entry_ = 0;
};

}  // namespace oclc
