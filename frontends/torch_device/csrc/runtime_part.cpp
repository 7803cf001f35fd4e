// The loader of libOpenCL and the texts of its errors, as the runtime has them.
#include "runtime/device/opencl.cpp"
#include "runtime/failure.cpp"
