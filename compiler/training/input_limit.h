// What values an integer input may have, for programs that feed it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace oclc {

// Values of the integer input of this name lie in [0, limit) or are one of `also`.
struct InputLimit {
  std::string input;
  std::int64_t limit = 0;
  std::vector<std::int64_t> also;
};

}  // namespace oclc
