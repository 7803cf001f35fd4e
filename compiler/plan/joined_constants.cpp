#include "compiler/plan/joined_constants.h"

#include "compiler/codegen/launches/megakernel.h"
#include "compiler/support/error.h"
#include "runtime/package/container.h"

namespace oclc {

std::size_t JoinedConstants::standing(const std::vector<int>& pieces, std::size_t first) const {
  std::size_t count = 0;
  while (count < pieces.size() && first + count < placed_.size() && placed_[first + count].piece == pieces[count] &&
         (count == 0 || placed_[first + count].at == placed_[first + count - 1].next))
    ++count;
  return count;
}

std::vector<std::uint64_t> JoinedConstants::place(const std::vector<int>& pieces, package::ConstantSection& section,
                                                  const std::function<StoredConstant(int piece)>& constant_of) {
  static_assert(MegakernelCode::kJoinedAlignment == package::ConstantSection::kAlignment);
  const auto aligned = [](std::uint64_t bytes) { return package::align_up(bytes, MegakernelCode::kJoinedAlignment); };
  // What stands last can go on only where nothing else was added since.
  const bool is_last = !placed_.empty() && placed_.back().next == aligned(section.bytes());
  std::size_t first = 0, count = 0;
  for (; first < placed_.size(); ++first) {
    count = standing(pieces, first);
    if (count == pieces.size() || (is_last && count > 0 && first + count == placed_.size())) break;
  }
  if (first == placed_.size()) count = 0;
  std::vector<std::uint64_t> at;
  for (std::size_t i = 0; i < count; ++i) at.push_back(placed_[first + i].at);
  for (std::size_t i = count; i < pieces.size(); ++i) {
    StoredConstant constant = constant_of(pieces[i]);
    const HostTensor& tensor = *constant.tensor;
    at.push_back(section.add({tensor.data(), tensor.bytes()}, std::move(constant.parts)));
    OCLC_CHECK(i == 0 || at[i] == placed_.back().next, "joined constants lie one after another");
    placed_.push_back({pieces[i], at[i], at[i] + aligned(tensor.bytes())});
  }
  return at;
}

}  // namespace oclc
