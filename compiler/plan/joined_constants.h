// Tables of constants that lie one after another: each megakernel has one, and several may hold the same weights.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/plan/quantized_parts.h"
#include "runtime/package/writer.h"

namespace oclc {

class JoinedConstants {
 public:
  // The offsets of a table's pieces, each from a multiple of MegakernelCode::kJoinedAlignment on. Pieces that stand so in
  // tables before it are not added again, and a table that begins with the last pieces of the section goes on behind them.
  // `constant_of` gives a piece that is added; the section keeps no copy.
  std::vector<std::uint64_t> place(const std::vector<int>& pieces, package::ConstantSection& section,
                                   const std::function<StoredConstant(int piece)>& constant_of);

 private:
  struct Placed {
    int piece = 0;
    std::uint64_t at = 0, next = 0;  // next: where a piece behind it lies
  };

  // So many of the pieces stand one after another from placed_[first] on.
  std::size_t standing(const std::vector<int>& pieces, std::size_t first) const;

  std::vector<Placed> placed_;  // in the section's order
};

}  // namespace oclc
