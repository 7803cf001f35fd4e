// Choices that were timed on a device: what the compiler takes before it asks its cost models.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/targets/target.h"

namespace oclc {

// Numbers of a choice, in the order that the place which makes it gives them.
using TunedChoice = std::vector<std::int64_t>;

struct Tuning {
  std::map<std::string, TunedChoice, std::less<>> choices;  // by what is chosen for: "cpu_tiles 1 512 512 64 256"
  // Told of each question that is asked, with what the cost model would take. For the tuner, which compiles on one thread.
  std::function<void(const std::string& key, const TunedChoice& modelled)> asked{};
};

std::string tuning_key(std::string_view kind, const std::vector<std::int64_t>& sizes);

// The choice timed for `key`, null if there is none. The caller checks that it is legal, and takes `modelled` if not.
const TunedChoice* find_tuned(const Target& target, const std::string& key, const TunedChoice& modelled);

}  // namespace oclc
