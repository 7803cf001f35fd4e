// Ctrl-C and its kin end the tool at once, except while files are being written.
#pragma once

namespace oclc::tool {

// SIGINT ends the process with 130 (SIGTERM 143, SIGHUP 129), also within a driver; SIGPIPE as usual. A file beyond the limit
// of its size (SIGXFSZ) is an error.
void install_signal_handlers();

// While one lives, the first such signal waits, so that no temporary file stays behind; a second one ends the process.
class FilesBeingWritten {
 public:
  FilesBeingWritten();
  ~FilesBeingWritten();
  FilesBeingWritten(const FilesBeingWritten&) = delete;
  FilesBeingWritten& operator=(const FilesBeingWritten&) = delete;
};

}  // namespace oclc::tool
