// Rows that differ, and the places of what counts.
#include <algorithm>
#include <numeric>

#include "runtime/package/order/keys.h"
#include "runtime/package/order/order.h"

namespace oclc::package {
namespace {

template <class Key>
struct KeyTable {
  std::vector<Key> keys;
  std::size_t rows, columns;
  bool may_be_nan;

  Key at(std::size_t row, std::size_t column) const { return keys[row * columns + column]; }
  bool is_nan(Key key) const { return may_be_nan && key == static_cast<Key>(~Key{0}); }
  bool equal(std::size_t a, std::size_t b) const {
    for (std::size_t c = 0; c < columns; ++c)
      if (at(a, c) != at(b, c) || is_nan(at(a, c))) return a == b;
    return true;
  }
  // By the first column in which they differ. NaN differs from itself: of two the row that stands first.
  bool less(std::size_t a, std::size_t b) const {
    for (std::size_t c = 0; c < columns; ++c) {
      if (at(a, c) != at(b, c)) return at(a, c) < at(b, c);
      if (is_nan(at(a, c))) break;
    }
    return a < b;
  }

  std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> out(rows);
    if (columns == 1) {
      std::vector<Ordered<Key>> list(rows), spare;
      for (std::size_t i = 0; i < rows; ++i) list[i] = {keys[i], static_cast<std::uint32_t>(i)};
      sort_by_key(list, spare);
      std::transform(list.begin(), list.end(), out.begin(), [](const auto& e) { return e.place; });
    } else {
      std::iota(out.begin(), out.end(), 0u);
      std::sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) { return less(a, b); });
    }
    return out;
  }
};

// Texts as numbers in the order of their bytes.
HostValue as_numbers(const HostValue& x) {
  std::vector<std::string> different = x.texts;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  HostValue out{plan::DType::u32, x.shape, std::vector<std::byte>(x.texts.size() * sizeof(std::uint32_t)), {}};
  for (std::size_t i = 0; i < x.texts.size(); ++i) {
    const auto at = std::lower_bound(different.begin(), different.end(), x.texts[i]);
    set_element(out.data.data(), i, static_cast<std::uint32_t>(at - different.begin()));
  }
  return out;
}

}  // namespace

void unique_rows(const HostSettings& settings, std::span<const HostValue> in, std::span<HostValue> out) {
  if (in[0].dtype == plan::DType::string_) {
    const HostValue numbers = as_numbers(in[0]);
    return unique_rows(settings, {&numbers, 1}, out);
  }
  const HostValue& x = in[0];
  require(x.shape.size() == 2, "wanted rows of numbers");
  const auto n = static_cast<std::size_t>(x.shape[0]);
  require(out[0].elements() == n && out[1].elements() == n && out[2].elements() == n && out[3].elements() == 1,
          "wanted room for all rows and their number");
  visit_keys(x, [&](auto key_at, bool may_be_nan) {
    using Key = decltype(key_at(0));
    KeyTable<Key> table{{}, n, static_cast<std::size_t>(x.shape[1]), may_be_nan};
    table.keys.resize(x.elements());
    for (std::size_t i = 0; i < table.keys.size(); ++i) table.keys[i] = key_at(i);
    const std::vector<std::uint32_t> order = table.order();
    // Groups of equal rows follow each other, the first row of each in front.
    std::vector<std::uint32_t> begin;
    for (std::size_t i = 0; i < n; ++i)
      if (i == 0 || !table.equal(order[i - 1], order[i])) begin.push_back(static_cast<std::uint32_t>(i));
    std::vector<std::uint32_t> groups(begin.size());
    std::iota(groups.begin(), groups.end(), 0u);
    if (settings.integers[0] == 0)
      std::sort(groups.begin(), groups.end(),
                [&](std::uint32_t a, std::uint32_t b) { return order[begin[a]] < order[begin[b]]; });
    begin.push_back(static_cast<std::uint32_t>(n));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t from = begin[groups[g]], to = begin[groups[g] + 1];
      set_element(out[0].data.data(), g, static_cast<std::int64_t>(order[from]));
      for (std::size_t i = from; i < to; ++i) set_element(out[1].data.data(), order[i], static_cast<std::int64_t>(g));
      set_element(out[2].data.data(), g, static_cast<std::int64_t>(to - from));
    }
    for (std::size_t g = groups.size(); g < n; ++g)
      for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) set_element(out[i].data.data(), g, std::int64_t{0});
    set_element(out[3].data.data(), 0, static_cast<std::int64_t>(groups.size()));
  });
}

void positions(const HostSettings&, std::span<const HostValue> in, std::span<HostValue> out) {
  const std::size_t n = in[0].elements();
  require(out[0].elements() == n && out[1].elements() == 1, "wanted room for all positions and their number");
  std::size_t found = 0;
  // Without a branch: the place behind the last is written over.
  for (std::size_t i = 0; i < n; ++i) {
    set_element(out[0].data.data(), found, static_cast<std::int64_t>(i));
    found += in[0].data[i] != std::byte{0} ? 1 : 0;
  }
  for (std::size_t i = found; i < n; ++i) set_element(out[0].data.data(), i, std::int64_t{0});
  set_element(out[1].data.data(), 0, static_cast<std::int64_t>(found));
}

}  // namespace oclc::package
