// Another folder for what PoCL compiles, where its own is full.
#pragma once
#include <string>

namespace oclc::runtime {

// PoCL 3.1 ends the process when it cannot write what it compiled ("LLVM ERROR: IO failure on output stream"). So where the
// file system of its folder has no room left, the environment of this process (POCL_CACHE_DIR) names a folder of this user
// below TMPDIR, /tmp or /dev/shm, which later processes find again. Before the driver is loaded; what a host program has loaded
// already stays as it is.
void make_room_for_pocl();

// What that did, in words; empty: nothing.
const std::string& note_of_pocl_folder();

}  // namespace oclc::runtime
