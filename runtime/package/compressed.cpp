#include "runtime/package/compressed.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/package/error.h"

namespace oclc::package {
namespace {

// Shorter ones cost as much as they save. Longer ones than kLongestMatch are cut, which bounds the growth: a sequence has at
// least three bytes.
constexpr std::size_t kShortestMatch = 6, kLongestMatch = 2048;
constexpr unsigned kHashBits = 16;

void put_number(std::vector<std::byte>& to, std::uint64_t number) {
  for (; number >= 128; number >>= 7) to.push_back(static_cast<std::byte>((number & 127) | 128));
  to.push_back(static_cast<std::byte>(number));
}

std::size_t hash_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, kShortestMatch);
  return static_cast<std::size_t>(value * 0x9E3779B97F4A7C15ULL >> (64 - kHashBits));
}

std::size_t length_of_match(std::span<const std::byte> bytes, std::size_t earlier, std::size_t at) {
  const std::size_t most = std::min(kLongestMatch, bytes.size() - at);
  std::size_t length = 0;
  while (length < most && bytes[earlier + length] == bytes[at + length]) ++length;
  return length;
}

[[noreturn]] void corrupt_text(const std::string& what) { throw Error(ErrorKind::corrupt, "the compressed metadata: " + what); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > from_.size()) corrupt_text("truncated within a sequence");
    const auto part = from_.first(static_cast<std::size_t>(count));
    from_ = from_.subspan(part.size());
    return part;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    corrupt_text("a number of too many bytes");
  }
  bool at_end() const { return from_.empty(); }

 private:
  std::span<const std::byte> from_;
};

}  // namespace

std::vector<std::byte> compressed(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  std::vector<std::byte> to(sizeof size);
  std::memcpy(to.data(), &size, sizeof size);
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> last(std::size_t{1} << kHashBits, kNone);
  std::size_t literals = 0;  // the first that is not written
  const auto put_literals = [&](std::size_t end) {
    put_number(to, end - literals);
    to.insert(to.end(), bytes.begin() + static_cast<std::ptrdiff_t>(literals),
              bytes.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (std::size_t at = 0; at + 8 <= bytes.size();) {
    std::size_t& known = last[hash_at(bytes, at)];
    const std::size_t earlier = known, length = earlier == kNone ? 0 : length_of_match(bytes, earlier, at);
    known = at;
    if (length < kShortestMatch) {
      ++at;
      continue;
    }
    put_literals(at);
    put_number(to, length);
    put_number(to, at - earlier);
    for (std::size_t i = at + 1; i < at + length && i + 8 <= bytes.size(); i += 2) last[hash_at(bytes, i)] = i;
    literals = at += length;
  }
  put_literals(bytes.size());
  put_number(to, 0);
  return to;
}

std::vector<std::byte> decompressed(std::span<const std::byte> section) {
  std::uint64_t size = 0;
  if (section.size() < sizeof size) corrupt_text("truncated within its head");
  std::memcpy(&size, section.data(), sizeof size);
  if (size / kMostGrowth > section.size()) corrupt_text("more bytes than the section can hold");
  std::vector<std::byte> to;
  to.reserve(static_cast<std::size_t>(size));
  Reader reader(section.subspan(sizeof size));
  for (;;) {
    const auto literals = reader.take(reader.number());
    if (literals.size() > size - to.size()) corrupt_text("more bytes than it says");
    to.insert(to.end(), literals.begin(), literals.end());
    const std::uint64_t length = reader.number();
    if (length == 0) break;
    const std::uint64_t distance = reader.number();
    if (distance == 0 || distance > to.size()) corrupt_text("a distance past the beginning");
    if (length > size - to.size()) corrupt_text("more bytes than it says");
    // A sequence may repeat what it writes.
    for (std::size_t from = to.size() - static_cast<std::size_t>(distance), i = 0; i < length; ++i) to.push_back(to[from + i]);
  }
  if (to.size() != size) corrupt_text("fewer bytes than it says");
  if (!reader.at_end()) corrupt_text("bytes after its end");
  return to;
}

}  // namespace oclc::package
