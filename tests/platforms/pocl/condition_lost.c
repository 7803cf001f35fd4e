/* PoCL 3.1: behind a condition that a whole group takes and a barrier, a loop that begins at the work-item's number loses a
   condition inside it that depends on the work-item. Here every second half of 32 work-items shall write nothing; the program
   prints how many of its elements were written all the same: 512, and 0 where the loop begins at 0 (-DUNIFORM).

       gcc -DCL_TARGET_OPENCL_VERSION=120 condition_lost.c -lOpenCL && ./a.out */
#include <CL/cl.h>
#include <stdio.h>

#ifdef UNIFORM
#define LOOP "for (int at = 0; at < 1024; at += 256) { const int i = at + item;"
#else
#define LOOP "for (int i = item; i < 1024; i += 256) {"
#endif

int main(void) {
  const char* source =
      "__attribute__((reqd_work_group_size(256, 1, 1))) __kernel void halves(__global float* y, int groups) {\n"
      "  const int item = get_local_id(0);\n"
      "  if (get_group_id(0) < groups) {\n"
      "    barrier(CLK_LOCAL_MEM_FENCE);\n"
      "    " LOOP
      " if (item % 32 < 16) y[i] = 1.0f; }\n"
      "  }\n"
      "}\n";
  const cl_int groups = 1;
  const size_t items = 256;
  static float y[1024];
  int wrong = 0;
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 2;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 2;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 1, &device, "", NULL, NULL);
  cl_kernel kernel = clCreateKernel(program, "halves", NULL);
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof y, y, NULL);
  clSetKernelArg(kernel, 0, sizeof memory, &memory);
  clSetKernelArg(kernel, 1, sizeof groups, &groups);
  clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
  clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL);
  for (int i = 0; i < 1024; ++i)
    if (i % 32 >= 16 && y[i] != 0.0f) ++wrong;
  printf("%d\n", wrong);
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return wrong == 0 ? 0 : 1;
}
