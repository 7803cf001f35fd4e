#include "compiler/targets/tuning.h"

namespace oclc {

std::string tuning_key(std::string_view kind, const std::vector<std::int64_t>& sizes) {
  std::string key(kind);
  for (const std::int64_t size : sizes) key += " " + std::to_string(size);
  return key;
}

const TunedChoice* find_tuned(const Target& target, const std::string& key, const TunedChoice& modelled) {
  if (!target.tuning) return nullptr;
  if (target.tuning->asked) target.tuning->asked(key, modelled);
  const auto at = target.tuning->choices.find(key);
  return at == target.tuning->choices.end() ? nullptr : &at->second;
}

}  // namespace oclc
