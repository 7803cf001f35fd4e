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
  const std::byte* floats = nullptr;  // of a row of f32
  bool largest = false;               // keys are in the other order
};

// Rows of at least so many elements have a threshold estimated from a sample.
constexpr std::size_t kFewestSampled = 4096, kSampled = 1024;

template <class Key>
void cut(std::vector<Ordered<Key>>& list, std::size_t k) {
  std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(k) - 1, list.end());
  list.resize(k);
}

// A key that more than k elements are probably below: of a sample the element in the place that twice as many would have, and
// some more.
template <class Key, class KeyAt>
Key guessed_limit(std::vector<Ordered<Key>>& list, std::size_t size, std::size_t k, const KeyAt& key_at) {
  constexpr std::size_t kMore = 5;
  for (std::size_t i = 0; i < kSampled; ++i) list.push_back({key_at(i * size / kSampled), 0});
  cut(list, std::min(kSampled, 2 * k * kSampled / size + kMore));
  return list.back().key;
}

// Adds the elements whose key is below `limit`. Most blocks hold none that may be, which a loop without branches tells.
template <class Key, class KeyAt, class MayBeBelow>
void take_below(std::vector<Ordered<Key>>& list, std::size_t size, Key limit, KeyAt key_at, MayBeBelow may_be_below) {
  constexpr std::size_t kBlock = 16;
  const auto take = [&](std::size_t i) {
    if (const Key key = key_at(i); key < limit) list.push_back({key, static_cast<std::uint32_t>(i)});
  };
  std::size_t i = 0;
  for (; i + kBlock <= size; i += kBlock) {
    unsigned any = 0;
    for (std::size_t j = 0; j < kBlock; ++j) any |= static_cast<unsigned>(may_be_below(i + j));
    for (std::size_t j = 0; j < kBlock && any != 0; ++j) take(i + j);
  }
  for (; i < size; ++i) take(i);
}

// The number whose key that is.
float number_of(std::uint32_t key) {
  constexpr std::uint32_t kSign = std::uint32_t{1} << 31;
  const std::uint32_t bits = (key & kSign) != 0 ? key ^ kSign : ~key;
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// Keeps at most twice as many as are wanted and a constant; what is not below the last of the best k is passed over. One of
// the same key that comes later stands behind it.
template <class Key, class KeyAt>
void keep_best(std::vector<Ordered<Key>>& list, std::size_t size, std::size_t k, const KeyAt& key_at) {
  constexpr std::size_t kLeast = 512;
  const std::size_t room = 2 * k + kLeast;
  list.clear();
  Key limit = static_cast<Key>(~Key{0});
  bool limited = false;
  for (std::size_t i = 0; i < size; ++i) {
    const Key key = key_at(i);
    if (key >= limit && limited) continue;
    list.push_back({key, static_cast<std::uint32_t>(i)});
    if (list.size() < room) continue;
    cut(list, k);
    limit = list[k - 1].key;
    limited = true;
  }
}

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
  // What a sample says is below twice as many elements as are wanted: one pass finds these, if it says right.
  if (size >= kFewestSampled) {
    const Key guess = guessed_limit(list, size, k, key_at);
    list.clear();
    if (sizeof(Key) == 4 && row.floats) {
      const float bound = number_of(static_cast<std::uint32_t>(row.largest ? ~guess : guess));
      const auto float_at = [floats = row.floats](std::size_t i) { return element_at<float>(floats, i); };
      if (row.largest)
        take_below(list, size, guess, key_at, [=](std::size_t i) { return !(float_at(i) <= bound); });  // NaN is the largest
      else
        take_below(list, size, guess, key_at, [=](std::size_t i) { return float_at(i) < bound; });
    } else {
      take_below(list, size, guess, key_at, [=](std::size_t i) { return key_at(i) < guess; });
    }
  }
  if (list.size() < k) keep_best(list, size, k, key_at);
  if (list.size() > k) cut(list, k);
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
    row.largest = largest;
    for (std::size_t r = 0; r < rows; ++r) {
      if (x.dtype == plan::DType::f32) row.floats = x.data.data() + r * size * sizeof(float);
      take_first<Key>(row, size, k,
                      [key_at, flip, first = r * size](std::size_t i) { return static_cast<Key>(key_at(first + i) ^ flip); });
      for (std::size_t i = 0; i < k; ++i) set_element(to, r * k + i, static_cast<std::int64_t>(row.list[i].place));
    }
  });
}

}  // namespace oclc::package
