// Products of which the largest results of windows are stored, where no template compares them.
#pragma once
#include "compiler/kernels/kernel.h"

namespace oclc {

// A product for one result of each window (Contraction::windows), whose coordinates in the window are symbols: axes of rows go
// over windows, and what is there already is stored again if it is larger, unless the coordinates are zeros.
Kernel one_of_each_window(const Kernel& kernel);
// Lines that declare these symbols, as code generation names them, for number `window` of a window's results.
std::string window_coordinates(const Kernel& kernel, std::string_view window);
std::int64_t window_results(const Kernel& kernel);

}  // namespace oclc
