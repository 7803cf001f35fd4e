#include "frontends/onnx/model/file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace oclc::onnx {

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

std::string FileHandle::read(std::span<std::byte> bytes, std::int64_t offset) const {
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_, bytes.data(), std::min(bytes.size(), kPiece), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return "a file that became shorter while it was read";
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return {};
}

}  // namespace oclc::onnx
