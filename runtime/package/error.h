// What can go wrong with a plan file. Thrown by the package library; caught by the tools and by the runtime's C entry points.
#pragma once
#include <stdexcept>
#include <string>

namespace oclc::package {

enum class ErrorKind {
  io,       // the operating system refused: the message ends with its text
  corrupt,  // not a plan, truncated, or a checksum differs
  version,  // a plan of another format version or byte order
  invalid   // checksums agree, but the contents break a rule of the format
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace oclc::package
