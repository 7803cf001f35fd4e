// A tensor on the host, as files hold it: row major, packed, little endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "oclc/oclc.h"

namespace oclc::io {

struct Tensor {
  std::string name;  // "" if the file gives none
  oclc_dtype dtype = OCLC_F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;  // of strings: pointers, into `texts` or memory of a session
  std::shared_ptr<const std::vector<std::string>> texts;

  std::uint64_t elements() const;
  const char* text_at(std::uint64_t index) const;  // of strings
  void set_texts(std::vector<std::string> values);
  double at(std::uint64_t index) const;  // half and bfloat16 widened; large 64-bit integers rounded
};

// float32 etc. of the 16-bit formats.
float widen_half(std::uint16_t bits);
float widen_bfloat16(std::uint16_t bits);

// Product of the dimensions times the element size; throws FileError naming `where` if it overflows or a dimension is negative.
std::uint64_t tensor_bytes(const std::string& where, oclc_dtype dtype, std::span<const std::int64_t> shape);

enum class FileProblem { io, contents };

// The message starts with the path.
class FileError : public std::runtime_error {
 public:
  FileError(FileProblem problem, const std::string& message) : std::runtime_error(message), problem_(problem) {}
  FileProblem problem() const { return problem_; }

 private:
  FileProblem problem_;
};

// A regular file's bytes, at most `limit`.
std::string read_file(const std::string& path, std::uint64_t limit);

}  // namespace oclc::io
