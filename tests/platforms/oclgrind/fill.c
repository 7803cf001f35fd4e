/* Oclgrind 21.10: memory that clEnqueueFillBuffer has filled with several patterns counts as uninitialized, so that a kernel
   that reads it is reported. `oclgrind --uninitialized` writes two reports for this program, which has no fault; with
   clEnqueueWriteBuffer of the same zeros, none.

       gcc -DCL_TARGET_OPENCL_VERSION=120 fill.c -lOpenCL && oclgrind --uninitialized ./a.out */
#include <CL/cl.h>
#include <stdio.h>

int main(void) {
  const char* source = "__kernel void step(volatile __global int* count) { if (*count < 3) atomic_inc(count); }";
  const cl_int zero = 0;
  cl_int count[2] = {-1, -1};
  const size_t one = 1;
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 2;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 2;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 1, &device, "", NULL, NULL);
  cl_kernel kernel = clCreateKernel(program, "step", NULL);
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof count, NULL, NULL);
  clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, sizeof count, 0, NULL, NULL);
  clSetKernelArg(kernel, 0, sizeof memory, &memory);
  clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
  clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof count, count, 0, NULL, NULL);
  printf("count %d\n", count[0]);
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return count[0] == 1 ? 0 : 1;
}
