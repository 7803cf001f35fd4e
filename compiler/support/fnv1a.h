// The hash FNV-1a of 64 bits: for names and streams of numbers that differ where texts do, the same in every build.
#pragma once
#include <cstdint>
#include <string_view>

namespace oclc {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace oclc
