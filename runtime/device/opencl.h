// The OpenCL functions that the runtime calls. libOpenCL is not linked: it is opened at the first call, so that programs load,
// and plans compile, on machines without it. Each name below hides the function of the header of the same name.
//
// Looked for in this order: the file that the environment variable OCLC_OPENCL names; what the process has loaded for all to
// see (a program that links libOpenCL, a tracer in LD_PRELOAD); libOpenCL.so.1 as the system finds it.
#pragma once
#include <CL/cl.h>

#include <atomic>

namespace oclc::runtime {

// The address of the function. Failure (OCLC_E_DEVICE) if there is no library, (OCLC_E_UNSUPPORTED) if it lacks the function.
void* find_opencl_function(const char* name);

template <class F>
class OpenclFunction;

template <class R, class... A>
class OpenclFunction<R(A...)> {
 public:
  explicit constexpr OpenclFunction(const char* name) : name_(name) {}
  R operator()(A... arguments) const { return address()(arguments...); }

 private:
  using Address = R (*)(A...);
  Address address() const {
    Address found = found_.load(std::memory_order_acquire);
    if (!found) {
      found = reinterpret_cast<Address>(find_opencl_function(name_));
      found_.store(found, std::memory_order_release);
    }
    return found;
  }

  const char* name_;
  mutable std::atomic<Address> found_{nullptr};
};

#define OCLC_OPENCL_FUNCTION(name) inline constinit const OpenclFunction<decltype(::name)> name(#name)
OCLC_OPENCL_FUNCTION(clBuildProgram);
OCLC_OPENCL_FUNCTION(clCreateBuffer);
OCLC_OPENCL_FUNCTION(clCreateCommandQueue);
OCLC_OPENCL_FUNCTION(clCreateContext);
OCLC_OPENCL_FUNCTION(clCreateKernel);
OCLC_OPENCL_FUNCTION(clCreateProgramWithBinary);
OCLC_OPENCL_FUNCTION(clCreateProgramWithSource);
OCLC_OPENCL_FUNCTION(clEnqueueBarrierWithWaitList);
OCLC_OPENCL_FUNCTION(clEnqueueCopyBuffer);
OCLC_OPENCL_FUNCTION(clEnqueueFillBuffer);
OCLC_OPENCL_FUNCTION(clEnqueueMapBuffer);
OCLC_OPENCL_FUNCTION(clEnqueueMarkerWithWaitList);
OCLC_OPENCL_FUNCTION(clEnqueueNDRangeKernel);
OCLC_OPENCL_FUNCTION(clEnqueueNativeKernel);
OCLC_OPENCL_FUNCTION(clEnqueueReadBuffer);
OCLC_OPENCL_FUNCTION(clEnqueueUnmapMemObject);
OCLC_OPENCL_FUNCTION(clEnqueueWriteBuffer);
OCLC_OPENCL_FUNCTION(clFinish);
OCLC_OPENCL_FUNCTION(clFlush);
OCLC_OPENCL_FUNCTION(clGetCommandQueueInfo);
OCLC_OPENCL_FUNCTION(clGetDeviceIDs);
OCLC_OPENCL_FUNCTION(clGetDeviceInfo);
OCLC_OPENCL_FUNCTION(clGetEventInfo);
OCLC_OPENCL_FUNCTION(clGetEventProfilingInfo);
OCLC_OPENCL_FUNCTION(clGetExtensionFunctionAddressForPlatform);
OCLC_OPENCL_FUNCTION(clGetKernelArgInfo);
OCLC_OPENCL_FUNCTION(clGetKernelInfo);
OCLC_OPENCL_FUNCTION(clGetKernelWorkGroupInfo);
OCLC_OPENCL_FUNCTION(clGetMemObjectInfo);
OCLC_OPENCL_FUNCTION(clGetPlatformIDs);
OCLC_OPENCL_FUNCTION(clGetPlatformInfo);
OCLC_OPENCL_FUNCTION(clGetProgramBuildInfo);
OCLC_OPENCL_FUNCTION(clGetProgramInfo);
OCLC_OPENCL_FUNCTION(clReleaseCommandQueue);
OCLC_OPENCL_FUNCTION(clReleaseContext);
OCLC_OPENCL_FUNCTION(clReleaseEvent);
OCLC_OPENCL_FUNCTION(clReleaseKernel);
OCLC_OPENCL_FUNCTION(clReleaseMemObject);
OCLC_OPENCL_FUNCTION(clReleaseProgram);
OCLC_OPENCL_FUNCTION(clRetainCommandQueue);
OCLC_OPENCL_FUNCTION(clRetainContext);
OCLC_OPENCL_FUNCTION(clRetainEvent);
OCLC_OPENCL_FUNCTION(clRetainKernel);
OCLC_OPENCL_FUNCTION(clRetainMemObject);
OCLC_OPENCL_FUNCTION(clRetainProgram);
OCLC_OPENCL_FUNCTION(clSetKernelArg);
OCLC_OPENCL_FUNCTION(clWaitForEvents);
#undef OCLC_OPENCL_FUNCTION

}  // namespace oclc::runtime
