// The first elements of each row in order of size.
#include <algorithm>

#include "runtime/package/order/keys.h"
#include "runtime/package/order/order.h"

namespace oclc::package {
namespace {

// Of a row all elements are sorted if so many of them are wanted; of fewer the best so far are kept.
constexpr std::size_t kSortedPart = 8;

template <class Key>
struct Row {
  std::vector<Ordered<Key>> list, spare;
};

// The k smallest keys of `size` in the order of key and place, at the front of row.list.
template <class Key, class KeyAt>
void take_first(Row<Key>& row, std::size_t size, std::size_t k, KeyAt&& key_at) {
  auto& list = row.list;
  list.clear();
  if (k >= size / kSortedPart) {
    list.resize(size);
    for (std::size_t i = 0; i < size; ++i) list[i] = {key_at(i), static_cast<std::uint32_t>(i)};
    sort_by_key(list, row.spare);
    return;
  }
  // Keeps at most twice as many and a constant; what is not below the last of the best k is passed over. One of the same key
  // that comes later stands behind it.
  constexpr std::size_t kLeast = 512;
  const std::size_t room = 2 * k + kLeast;
  const auto end = static_cast<std::ptrdiff_t>(k);
  list.reserve(room);
  const auto cut = [&] {
    std::nth_element(list.begin(), list.begin() + end - 1, list.end());
    list.resize(k);
  };
  Key limit = static_cast<Key>(~Key{0});
  bool limited = false;
  for (std::size_t i = 0; i < size; ++i) {
    const Key key = key_at(i);
    if (key >= limit && limited) continue;
    list.push_back({key, static_cast<std::uint32_t>(i)});
    if (list.size() < room) continue;
    cut();
    limit = list[k - 1].key;
    limited = true;
  }
  if (list.size() > k) cut();
  std::sort(list.begin(), list.end());
}

}  // namespace

void top_places(const HostSettings& settings, std::span<const HostValue> in, std::span<HostValue> out) {
  const HostValue &x = in[0], &places = out[0];
  require(!x.shape.empty() && places.shape.size() == x.shape.size() &&
              std::equal(x.shape.begin(), x.shape.end() - 1, places.shape.begin()) && places.shape.back() <= x.shape.back(),
          "wanted places of at most all elements of each row");
  const bool largest = settings.integers[0] != 0;
  const auto size = static_cast<std::size_t>(x.shape.back()), k = static_cast<std::size_t>(places.shape.back());
  if (places.elements() == 0) return;
  const std::size_t rows = x.elements() / size;
  std::byte* to = out[0].data.data();
  visit_keys(x, [&](auto key_at, bool) {
    using Key = decltype(key_at(0));
    const Key flip = largest ? static_cast<Key>(~Key{0}) : Key{0};
    Row<Key> row;
    for (std::size_t r = 0; r < rows; ++r) {
      take_first<Key>(row, size, k, [&](std::size_t i) { return static_cast<Key>(key_at(r * size + i) ^ flip); });
      for (std::size_t i = 0; i < k; ++i) set_element(to, r * k + i, static_cast<std::int64_t>(row.list[i].place));
    }
  });
}

}  // namespace oclc::package
