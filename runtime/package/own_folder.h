// Where a library of ours lies: its components lie beside it.
#pragma once
#include <string>

namespace oclc::package {

// The folder of the file that holds the function or object at `address`, with a slash; empty if that is not known.
std::string folder_of(const void* address);

}  // namespace oclc::package
