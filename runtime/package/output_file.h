// Files that are the old one or the whole new one at every moment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace oclc::package {

// Where bytes go. `put` appends; `rewrite` replaces bytes written before (the header, whose checksums are known last).
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void put(std::span<const std::byte> bytes) = 0;
  virtual void rewrite(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
};

// Has `write` fill the file at `path`, by the rules of write_package (writer.h); returns what it returns.
std::uint64_t write_to(const std::string& path, const std::function<std::uint64_t(Sink&)>& write);

}  // namespace oclc::package
