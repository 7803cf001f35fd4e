#include "runtime/package/text/unicode.h"

#include <cstdint>

namespace oclc::package {
namespace {

constexpr char32_t kReplacement = 0xfffd;

// Upper-case letters first to last; `step` 2: every other code point from `first` on. Lower case is `offset` away.
struct CaseRange {
  char32_t first, last;
  char32_t step;
  std::int32_t offset;
};

constexpr CaseRange kRanges[] = {
    {0x41, 0x5a, 1, 32},   {0xc0, 0xd6, 1, 32},    {0xd8, 0xde, 1, 32},     {0x100, 0x12e, 2, 1},    {0x132, 0x136, 2, 1},
    {0x139, 0x147, 2, 1},  {0x14a, 0x176, 2, 1},   {0x178, 0x178, 1, -121}, {0x179, 0x17d, 2, 1},    {0x386, 0x386, 1, 38},
    {0x388, 0x38a, 1, 37}, {0x38c, 0x38c, 1, 64},  {0x38e, 0x38f, 1, 63},   {0x391, 0x3a1, 1, 32},   {0x3a3, 0x3ab, 1, 32},
    {0x400, 0x40f, 1, 80}, {0x410, 0x42f, 1, 32},  {0x460, 0x480, 2, 1},    {0x48a, 0x4be, 2, 1},    {0x4d0, 0x52e, 2, 1},
    {0x531, 0x556, 1, 48}, {0x1e00, 0x1e94, 2, 1}, {0x1ea0, 0x1efe, 2, 1},  {0xff21, 0xff3a, 1, 32},
};

char32_t shifted(char32_t c, std::int32_t by) { return static_cast<char32_t>(static_cast<std::int32_t>(c) + by); }

std::string mapped(std::string_view text, char32_t (*map)(char32_t)) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at), to = map(c);
    if (to == c)
      out += text.substr(begin, at - begin);
    else
      append_code_point(out, to);
  }
  return out;
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t head = byte(at++);
  if (head < 0x80) return head;
  const std::size_t more = head >= 0xf0 ? 3 : head >= 0xe0 ? 2 : 1;
  if (head < 0xc2 || head > 0xf4 || text.size() - at < more) return kReplacement;
  char32_t c = head & (0x3fu >> more);
  for (std::size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return kReplacement;
    c = c << 6 | (byte(at + i) & 0x3fu);
  }
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return kReplacement;
  at += more;
  return c;
}

void append_code_point(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) return put(c);
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr char32_t kHeads[] = {0, 0xc0, 0xe0, 0xf0};
  put(kHeads[more] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) put(0x80u | (c >> (6 * i) & 0x3fu));
}

char32_t to_lower(char32_t c) {
  for (const CaseRange& r : kRanges)
    if (c >= r.first && c <= r.last && (c - r.first) % r.step == 0) return shifted(c, r.offset);
  return c;
}

char32_t to_upper(char32_t c) {
  for (const CaseRange& r : kRanges) {
    const char32_t from = shifted(c, -r.offset);
    if (from >= r.first && from <= r.last && (from - r.first) % r.step == 0) return from;
  }
  return c == 0x3c2 ? 0x3a3 : c;  // the sigma at the end of a word
}

std::string lower(std::string_view text) { return mapped(text, to_lower); }
std::string upper(std::string_view text) { return mapped(text, to_upper); }

std::string shown(std::string_view text, bool lines) {
  const auto steers = [&](char32_t c) {
    if (c == '\n' || c == '\t') return !lines;
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
  };
  constexpr std::string_view kReplacementText = "\xef\xbf\xbd", kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    const std::string_view bytes = text.substr(begin, at - begin);
    if (!steers(c) && (c != kReplacement || bytes == kReplacementText)) {
      out += bytes;
      continue;
    }
    for (const char byte : bytes) {
      const auto value = static_cast<unsigned char>(byte);
      out += "\\x";
      out += kDigits[value / 16];
      out += kDigits[value % 16];
    }
  }
  return out;
}

}  // namespace oclc::package
