#include "compiler/codegen/launches/equal_constants.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace oclc {
namespace {

// Bytes hashed at each end. Most constants differ there; of those that do not all bytes are compared.
constexpr std::size_t kEnd = 4096;

std::uint64_t hash_of_ends(const HostTensor& content) {
  const std::size_t end = std::min(kEnd, content.bytes());
  return XXH3_64bits_withSeed(content.data() + content.bytes() - end, end, XXH3_64bits(content.data(), end));
}

}  // namespace

int EqualConstants::number_of(const Buffer& buffer, int next, const std::function<const Buffer&(int)>& at) {
  const HostTensor& content = buffer.constant;
  if (buffer.kind != BufferKind::constant || content.bytes() == 0) return next;
  const std::uint64_t hash = hash_of_ends(content);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Buffer& other = at(known->second);
    if (other.dtype == buffer.dtype && other.constant.bytes() == content.bytes() &&
        std::memcmp(other.constant.data(), content.data(), content.bytes()) == 0)
      return known->second;
  }
  known_.emplace(hash, next);
  return next;
}

}  // namespace oclc
