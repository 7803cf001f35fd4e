// The threads of CPU drivers and the cores they run on.
#pragma once

namespace oclc::command_line {

// Has each thread of PoCL stay on a core of its own, as other engines' threads do, where the process may use the first cores
// and PoCL starts one thread for each: it pins thread i to core i. Says so in the environment (POCL_AFFINITY), which the caller
// may have done: that stands. Before the first OpenCL call. True if it did.
bool keep_threads_on_cores();

}  // namespace oclc::command_line
