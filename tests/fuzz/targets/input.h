// What targets share: an input as a text, as a file, and as choices.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Of libFuzzer, or of driver.cpp: changes some of the `size` bytes, and gives their number, at most `room`.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace oclc::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A fault: the input is kept.
[[noreturn]] inline void found(const std::string& what) {
  std::fprintf(stderr, "found: %s\n", what.c_str());
  std::abort();
}

// A file in memory, for readers that take paths.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::exit(2);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Reads every byte, for the sanitizers.
inline void touch(const std::byte* bytes, std::size_t size) {
  static volatile unsigned char sum;
  for (std::size_t i = 0; i < size; ++i) sum = sum ^ static_cast<unsigned char>(bytes[i]);
}

// Copies what a mutator made to where libFuzzer wants it; what is too long stays as it was.
template <class Bytes>
std::size_t put(const Bytes& made, std::uint8_t* data, std::size_t size, std::size_t room) {
  if (made.size() > room) return size;
  const auto* begin = reinterpret_cast<const std::uint8_t*>(made.data());
  std::copy(begin, begin + made.size(), data);
  return made.size();
}

}  // namespace oclc::fuzz
