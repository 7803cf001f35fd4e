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

// What is chosen, what the cost model would take, and what else may be timed for it, if the one who asks lists it: the
// likeliest first. `seconds`: of a contraction's row, by estimate.
struct TunedQuestion {
  std::string key;
  TunedChoice modelled;
  std::vector<TunedChoice> others{};
  double seconds = 0;
};

struct Tuning {
  std::map<std::string, TunedChoice, std::less<>> choices;  // by what is chosen for: "cpu_tiles 1 512 512 64 256"
  // Told of each question that is asked. For the tuner, which compiles on one thread.
  std::function<void(const TunedQuestion&)> asked{};
};

std::string tuning_key(std::string_view kind, const std::vector<std::int64_t>& sizes);

// The choice timed for `key`, null if there is none. The caller checks that it is legal, and takes `modelled` if not.
const TunedChoice* find_tuned(const Target& target, const TunedQuestion& question);

// The same device, whose questions nobody is told of: for estimates of what may not come to be.
Target without_questions(const Target& target);

}  // namespace oclc
