// An open file descriptor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace oclc::onnx {

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle();

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Fills `bytes` from `offset`. Empty, or what went wrong. A file cut short meanwhile is an error, not a fault.
  std::string read(std::span<std::byte> bytes, std::int64_t offset) const;

 private:
  int fd_ = -1;
};

}  // namespace oclc::onnx
