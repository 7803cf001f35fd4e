#include "runtime/package/order/keys.h"

#include <algorithm>
#include <array>
#include <utility>

namespace oclc::package {
namespace {

constexpr unsigned kDigitBits = 11;  // a table of 2,048 counts stays in the first cache
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

}  // namespace

template <class Key>
void sort_by_key(std::vector<Ordered<Key>>& list, std::vector<Ordered<Key>>& spare) {
  if (list.size() < kDigits) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return;
  }
  constexpr unsigned kPasses = (8 * sizeof(Key) + kDigitBits - 1) / kDigitBits;
  const auto digit = [](Key key, unsigned pass) {
    return static_cast<std::size_t>(key >> (pass * kDigitBits)) & (kDigits - 1);
  };
  std::vector<std::array<std::uint32_t, kDigits>> counts(kPasses);
  for (const Ordered<Key>& e : list)
    for (unsigned pass = 0; pass < kPasses; ++pass) ++counts[pass][digit(e.key, pass)];
  spare.resize(list.size());
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    auto& begin = counts[pass];
    if (begin[digit(list[0].key, pass)] == list.size()) continue;  // all have this digit
    std::uint32_t before = 0;
    for (std::uint32_t& count : begin) before += std::exchange(count, before);
    for (const Ordered<Key>& e : list) spare[begin[digit(e.key, pass)]++] = e;
    list.swap(spare);
  }
}

template void sort_by_key(std::vector<Ordered<std::uint32_t>>&, std::vector<Ordered<std::uint32_t>>&);
template void sort_by_key(std::vector<Ordered<std::uint64_t>>&, std::vector<Ordered<std::uint64_t>>&);

}  // namespace oclc::package
