// Owning handles of OpenCL objects.
#pragma once
#include <utility>

#include "runtime/device/opencl.h"

namespace oclc::runtime {

template <class T, const auto& Retain, const auto& Release>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}  // takes the reference over
  static Handle retain(T object) {
    if (object) Retain(object);
    return Handle(object);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    if (object_) Release(std::exchange(object_, nullptr));
  }
  T release() { return std::exchange(object_, nullptr); }

 private:
  T object_ = nullptr;
};

using ClContext = Handle<cl_context, clRetainContext, clReleaseContext>;
using ClQueue = Handle<cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue>;
using ClProgram = Handle<cl_program, clRetainProgram, clReleaseProgram>;
using ClKernel = Handle<cl_kernel, clRetainKernel, clReleaseKernel>;
using ClMem = Handle<cl_mem, clRetainMemObject, clReleaseMemObject>;
using ClEvent = Handle<cl_event, clRetainEvent, clReleaseEvent>;

}  // namespace oclc::runtime
