// The loader of libOpenCL with what it does before PoCL is loaded, and the texts of OpenCL's errors, as the runtime has them.
#include "runtime/device/opencl.cpp"
#include "runtime/failure.cpp"
#include "runtime/program/cache_folder.cpp"
#include "runtime/program/pocl_folder.cpp"
