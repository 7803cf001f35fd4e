// One process at a time builds a text, for drivers whose files on disk do not bear two (Quirk::races_on_disk). PoCL before 6.0
// removes a file before it renames another to its place; a process that reads it in between fails to build, or ends by an
// assertion (its issue 1480).
#pragma once
#include <string>
#include <string_view>

namespace oclc::runtime {

class BuildLock {
 public:
  BuildLock() = default;  // locks nothing
  // Waits while another process builds this text with these options, at most a minute. A lock is a file in PoCL's folder that
  // ends with the process that holds it; where there can be none, nothing is locked.
  BuildLock(std::string_view options, std::string_view source);
  BuildLock(BuildLock&& other) noexcept;
  BuildLock& operator=(BuildLock&&) = delete;
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;
  ~BuildLock();

 private:
  int file_ = -1;
};

}  // namespace oclc::runtime
