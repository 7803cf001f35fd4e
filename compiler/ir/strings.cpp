#include "compiler/ir/strings.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "compiler/support/error.h"

namespace oclc {
namespace {

struct Table {
  std::mutex mutex;
  std::deque<std::string> texts{std::string()};  // which never move
  std::unordered_map<std::string_view, std::int32_t> numbers{{std::string_view(texts[0]), 0}};
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

std::int32_t string_number(std::string_view text) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.numbers.find(text); known != all.numbers.end()) return known->second;
  OCLC_CHECK(all.texts.size() < INT32_MAX, "more than 2^31 - 1 different strings");
  const auto number = static_cast<std::int32_t>(all.texts.size());
  all.numbers.emplace(all.texts.emplace_back(text), number);
  return number;
}

const std::string& string_text(std::int64_t number) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  OCLC_CHECK(number >= 0 && static_cast<std::size_t>(number) < all.texts.size(), "number of a string");
  return all.texts[static_cast<std::size_t>(number)];
}

}  // namespace oclc
