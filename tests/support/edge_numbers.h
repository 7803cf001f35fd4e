// Numbers at which sizes, offsets and counts go wrong.
#pragma once
#include <cstdint>
#include <iterator>

namespace oclc::test {

// A small number, or one at an edge. `below(n)` gives numbers from 0 to n - 1.
template <class Below>
std::int64_t edge_number(Below&& below) {
  constexpr std::int64_t kEdges[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     64,
                                     127,
                                     128,
                                     1000,
                                     65536,
                                     1 << 24,
                                     INT32_MAX,
                                     INT32_MIN,
                                     INT64_MAX,
                                     INT64_MIN,
                                     INT64_C(1) << 31,
                                     INT64_C(1) << 40,
                                     INT64_C(1) << 62};
  return below(3) == 0 ? static_cast<std::int64_t>(below(40)) - 8 : kEdges[below(std::size(kEdges))];
}

}  // namespace oclc::test
