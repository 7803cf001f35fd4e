// Writing plan.bin. Constants are streamed: the writer never holds more than a chunk of a constant that is made on the fly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/package/error.h"
#include "runtime/package/quantized_constants.h"

namespace oclc::package {

class Package;

// Writes bytes [begin, begin + out.size()) of a constant. Called in order, each byte asked for once.
using FillConstant = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;

// The constants of a plan in file order. Give the offsets that `add` returns to Buffer::constant_offset.
class ConstantSection {
 public:
  static constexpr std::uint64_t kAlignment = 128;  // a line of a GPU's cache

  std::uint64_t add(std::span<const std::byte> bytes);  // must live until the plan is written
  std::uint64_t add(std::uint64_t bytes, FillConstant fill);
  // Bytes that are stored as the parts say, unless there are none.
  std::uint64_t add(std::span<const std::byte> bytes, std::vector<QuantizedPart> parts);
  std::uint64_t bytes() const { return bytes_; }  // as they are used

 private:
  friend class Writer;  // streams the pieces
  struct Piece {
    std::uint64_t offset;
    std::uint64_t bytes;
    const std::byte* data;
    FillConstant fill;
    std::vector<QuantizedPart> parts = {};
  };
  std::uint64_t place(std::uint64_t bytes, const std::byte* data, FillConstant fill);

  std::vector<Piece> pieces_;
  std::uint64_t bytes_ = 0;
};

// `shorter`: compressed where that makes the file much smaller.
enum class MetadataAs { it_is, shorter };

// Writes a plan to `path`: to a temporary file beside it, then fsync and rename, so `path` is the old file or the whole new one
// at every moment. "-" writes to standard output; an existing `path` that is not a regular file (a pipe, /dev/null) is written
// to and stays; of a symbolic link the file that it names is replaced; a directory is refused. `metadata` is a finished
// FlatBuffer of oclc::plan::Plan and is verified first (Error of kind `invalid` means a bug of the caller). Throws Error{io}
// with the system's text; no partial file stays behind. Deterministic: equal arguments give equal bytes. Returns the file's
// size.
std::uint64_t write_package(const std::string& path, std::span<const std::byte> metadata, const ConstantSection& constants,
                            MetadataAs metadata_as = MetadataAs::it_is);

// Writes `bytes` to `path` by the same rules: all files that oclc writes, but logs that grow.
void write_file(const std::string& path, std::span<const std::byte> bytes);

// Writes the plan again with a finished FlatBuffer of oclc::plan::Binaries instead of what it had of them, by the same rules;
// `path` may be the plan's own file.
std::uint64_t write_with_binaries(const std::string& path, const Package& plan, std::span<const std::byte> binaries);

// The same into memory, for tests and for callers that keep plans elsewhere.
std::vector<std::byte> package_to_memory(std::span<const std::byte> metadata, const ConstantSection& constants);

}  // namespace oclc::package
