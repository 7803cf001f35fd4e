// Work that is counted: allocations, which do not depend on how busy the machine is.
#pragma once
#include <functional>

namespace oclc::test {

// How many allocations `work` makes on this thread.
long allocations_in(const std::function<void()>& work);

}  // namespace oclc::test
