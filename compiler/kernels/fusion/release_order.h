// Orders groups so that tensors are released early.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace oclc {

// What groups need and which storage they use, by group and by storage.
struct GroupMemory {
  std::vector<std::vector<std::size_t>> needs;  // groups that go before it
  std::vector<std::vector<std::size_t>> uses;   // storages it reads or writes, each once
  std::vector<double> bytes;                    // of each storage; 0: what is not in the arena
  std::vector<bool> is_shared;                  // written by several groups: parts of one concatenation, interleaved
  std::vector<bool> is_part;                    // a range of a concatenation, which all its readers use
};

// Largest sum of bytes alive when the groups run in `order`: a storage lives from the first group that uses it to the last.
double peak_bytes(const GroupMemory& memory, const std::vector<std::size_t>& order);

// `order`, in which groups follow what they need, with groups brought forward that release more than they make: a weight's
// gradient right behind the last other reader of its operands, instead of behind the whole backward pass. Of several such
// orders the one with the lowest peak; then groups at and before the peak are put off that make more than they release. `order`
// itself if none is better.
std::vector<std::size_t> release_early(const GroupMemory& memory, const std::vector<std::size_t>& order);

}  // namespace oclc
