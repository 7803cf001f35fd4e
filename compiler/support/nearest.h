// The known name that somebody meant, for messages about an unknown one.
#pragma once
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

// Least number of letters inserted, removed, replaced or exchanged with their neighbour that makes `b` of `a` (optimal string
// alignment).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// The first of the names nearest to `text`, empty if more than a third of its letters differ in all of them. Of names that
// `text` begins, the shortest is nearest.
inline std::string nearest(std::string_view text, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(text.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(text, name);
    if (distance < least) best = name, least = distance;
  }
  if (!best.empty() || text.size() < 3) return best;
  for (const std::string& name : names) {
    if (name.starts_with(text) && (best.empty() || name.size() < best.size())) best = name;
  }
  return best;
}

// "did you mean 'x'?", empty if no name is near.
inline std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  const std::string near = nearest(text, names);
  return near.empty() ? near : "did you mean '" + near + "'?";
}

}  // namespace oclc
