// The texts of a session by number: on the device a text is its number.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plan_generated.h"

namespace oclc::runtime {

class StringTable {
 public:
  explicit StringTable(const oclc::plan::Plan& plan);
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;

  // Forgets what is not the plan's.
  void reset();
  // Equal texts have equal numbers. Text 0 is empty.
  std::int32_t number_of(std::string_view text);
  // The same for a text that the host made: Failure if all those of a run have more than kMaxTextBytes.
  std::int32_t number_of_made(std::string_view text);
  // Valid until reset() or, of the plan's texts, always; null if there is no such number.
  const std::string* text(std::int32_t number) const;
  // Failure if there is no such number.
  const std::string& require(std::int32_t number) const;

 private:
  std::deque<std::string> texts_;  // which never move
  std::unordered_map<std::string_view, std::int32_t> numbers_;
  std::size_t own_ = 0;  // texts of the plan
  std::uint64_t made_bytes_ = 0;
};

}  // namespace oclc::runtime
