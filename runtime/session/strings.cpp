#include "runtime/session/strings.h"

#include <limits>

#include "runtime/failure.h"
#include "runtime/package/limits.h"

namespace oclc::runtime {

StringTable::StringTable(const oclc::plan::Plan& plan) {
  for (std::uint32_t i = 0; plan.strings() && i < plan.strings()->size(); ++i) number_of(plan.strings()->Get(i)->string_view());
  own_ = texts_.size();
}

void StringTable::reset() {
  while (texts_.size() > own_) {
    numbers_.erase(texts_.back());
    texts_.pop_back();
  }
  made_bytes_ = 0;
}

std::int32_t StringTable::number_of_made(std::string_view text) {
  const std::size_t before = texts_.size();
  const std::int32_t number = number_of(text);
  if (texts_.size() > before && (made_bytes_ += text.size()) > package::kMaxTextBytes)
    throw Failure(OCLC_E_MEMORY, "a run makes strings of more than " + std::to_string(package::kMaxTextBytes) + " bytes");
  return number;
}

std::int32_t StringTable::number_of(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  if (texts_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Failure(OCLC_E_MEMORY, "a run makes more than 2^31 - 1 different strings");
  const auto number = static_cast<std::int32_t>(texts_.size());
  numbers_.emplace(texts_.emplace_back(text), number);
  return number;
}

const std::string* StringTable::text(std::int32_t number) const {
  return number < 0 || static_cast<std::size_t>(number) >= texts_.size() ? nullptr : &texts_[static_cast<std::size_t>(number)];
}

const std::string& StringTable::require(std::int32_t number) const {
  const std::string* found = text(number);
  if (!found)
    throw Failure(OCLC_E_PLAN, "invalid plan: a buffer of strings holds " + std::to_string(number) + ", the number of none");
  return *found;
}

}  // namespace oclc::runtime
