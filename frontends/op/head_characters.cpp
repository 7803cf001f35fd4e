#include "frontends/op/head.h"

namespace oclc::custom {

void refuse_odd_characters(const std::string& file, std::string_view head, const Place& begin) {
  std::string_view quotes;  // that the text around ends with; a comment: a line's end
  Place place = begin;
  for (std::size_t at = 0; at < head.size();) {
    const char c = head[at];
    std::size_t taken = 1;
    if (!quotes.empty()) {
      if (c == '\\' && quotes[0] == '"') {
        taken = 2;
      } else if (head.substr(at).starts_with(quotes)) {
        taken = quotes.size();
        quotes = {};
      } else if (c == '\n' && quotes.size() == 1) {
        quotes = {};  // TOML's reader says what is wrong
      }
    } else if (c == '#') {
      quotes = "\n";
    } else if (c == '"' || c == '\'') {
      taken = head.substr(at, 3) == std::string(3, c) ? 3 : 1;
      quotes = head.substr(at, taken);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      fail_at(file, place, "a head in TOML", "a character that is not ASCII, outside of texts and comments");
    }
    for (const char passed : head.substr(at, taken))
      place = passed == '\n' ? Place{place.line + 1, 1} : Place{place.line, place.column + 1};
    at += taken;
  }
}

}  // namespace oclc::custom
