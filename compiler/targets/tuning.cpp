#include "compiler/targets/tuning.h"

namespace oclc {

std::string tuning_key(std::string_view kind, const std::vector<std::int64_t>& sizes) {
  std::string key(kind);
  for (const std::int64_t size : sizes) key += " " + std::to_string(size);
  return key;
}

const TunedChoice* find_tuned(const Target& target, const TunedQuestion& question) {
  if (!target.tuning) return nullptr;
  if (target.tuning->asked) target.tuning->asked(question);
  const auto at = target.tuning->choices.find(question.key);
  return at == target.tuning->choices.end() ? nullptr : &at->second;
}

Target without_questions(const Target& target) {
  Target silent = target;
  if (!target.tuning || !target.tuning->asked) return silent;
  auto tuning = std::make_shared<Tuning>(*target.tuning);
  tuning->asked = nullptr;
  silent.tuning = std::move(tuning);
  return silent;
}

}  // namespace oclc
