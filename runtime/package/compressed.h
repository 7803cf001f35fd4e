// Metadata of a plan is mostly text, which repeats itself. A section of it is
//
//   u64 bytes, as they are read | sequences
//
// of Lempel and Ziv's kind (1977): each a number of literal bytes, these, a length, and how far back so many bytes stand, which
// are the next ones; numbers are LEB128. A length of 0 ends the section, without a distance.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oclc::package {

std::vector<std::byte> compressed(std::span<const std::byte> bytes);
// Throws Error{corrupt} where the section is not of that form; asks for no more memory than kMostGrowth times its size.
std::vector<std::byte> decompressed(std::span<const std::byte> section);

// Bytes read for each that is stored.
inline constexpr std::uint64_t kMostGrowth = 1024;

}  // namespace oclc::package
