"""What a launch costs without PyTorch and oclc: a kernel of one work-group enqueued and flushed through the OpenCL library."""

from __future__ import annotations

import ctypes
import time

from oclc import _opencl

SOURCE = b"__kernel void one(__global float* x) { x[get_global_id(0)] += 1.0f; }"


class Launcher:
    """A queue in order on a device of the class that is asked for, with a kernel on 64 floats."""

    def __init__(self, gpu: bool) -> None:
        _opencl.find_loader()
        self.cl = cl = ctypes.CDLL("libOpenCL.so.1")
        pointer = ctypes.c_void_p
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clCreateKernel", "clCreateBuffer"):
            getattr(cl, name).restype = pointer
        self.device = self._device(gpu)
        code = ctypes.c_int()
        given = (pointer * 1)(self.device)
        self.context = pointer(cl.clCreateContext(None, 1, given, None, None, ctypes.byref(code)))
        self.queue = pointer(cl.clCreateCommandQueue(self.context, pointer(self.device), ctypes.c_uint64(0), ctypes.byref(code)))
        text = (ctypes.c_char_p * 1)(SOURCE)
        program = pointer(cl.clCreateProgramWithSource(self.context, 1, text, None, ctypes.byref(code)))
        if cl.clBuildProgram(program, 1, given, None, None, None) != 0:
            raise RuntimeError("launch.py: the kernel does not build")
        self.kernel = pointer(cl.clCreateKernel(program, b"one", ctypes.byref(code)))
        self.buffer = pointer(cl.clCreateBuffer(self.context, ctypes.c_uint64(1), ctypes.c_size_t(256), None, ctypes.byref(code)))
        self.size = (ctypes.c_size_t * 1)(64)

    def _device(self, gpu: bool) -> int:
        pointer, cl = ctypes.c_void_p, self.cl
        count = ctypes.c_uint()
        cl.clGetPlatformIDs(0, None, ctypes.byref(count))
        platforms = (pointer * count.value)()
        cl.clGetPlatformIDs(count, platforms, None)
        for platform in platforms:
            found = (pointer * 1)()
            if cl.clGetDeviceIDs(pointer(platform), ctypes.c_uint64(4 if gpu else 2), 1, found, None) == 0:
                return int(found[0] or 0)
        raise RuntimeError(f"launch.py: wanted an OpenCL {'GPU' if gpu else 'CPU'}, found none")

    def microseconds(self, calls: int, flush: bool = True) -> float:
        """Of the host, for one launch: its argument set, enqueued and flushed; the calls through ctypes are among it."""
        cl = self.cl
        buffer = ctypes.byref(self.buffer)
        begin = time.perf_counter()
        for _ in range(calls):
            cl.clSetKernelArg(self.kernel, 0, ctypes.c_size_t(8), buffer)
            if cl.clEnqueueNDRangeKernel(self.queue, self.kernel, 1, None, self.size, self.size, 0, None, None) != 0:
                raise RuntimeError("launch.py: the launch failed")
            if flush:
                cl.clFlush(self.queue)
        end = time.perf_counter()
        cl.clFinish(self.queue)
        return (end - begin) / calls * 1e6
