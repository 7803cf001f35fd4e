// The hash of several numbers, one after another.
#pragma once
#include <cstddef>

namespace oclc {

inline std::size_t hash_with(std::size_t hash, std::size_t next) { return (hash ^ next) * 0x9e3779b97f4a7c15u + (hash >> 29); }

}  // namespace oclc
