// What the calls share.
#pragma once
#include <cstring>
#include <string>

#include "tests/fake_opencl/objects.h"

#define FAKE_CALL extern "C" __attribute__((visibility("default")))
#define FAKE_LOCK const std::lock_guard<std::recursive_mutex> held(oclc::fake::mutex)

namespace oclc::fake {

inline cl_int answer(const void* from, std::size_t size, std::size_t room, void* to, std::size_t* needed) {
  if (needed) *needed = size;
  if (!to) return CL_SUCCESS;
  if (room < size) return CL_INVALID_VALUE;
  std::memcpy(to, from, size);
  return CL_SUCCESS;
}
template <class T>
cl_int answer(const T& value, std::size_t room, void* to, std::size_t* needed) {
  return answer(&value, sizeof value, room, to, needed);
}
inline cl_int answer(const std::string& text, std::size_t room, void* to, std::size_t* needed) {
  return answer(text.c_str(), text.size() + 1, room, to, needed);
}

template <class T>
T made(T object, cl_int* code) {
  if (code) *code = CL_SUCCESS;
  return object;
}
template <class T>
T not_made(T, cl_int reason, cl_int* code) {
  if (code) *code = reason;
  return nullptr;
}

inline cl_ulong now = 1;

// A command has ended.
inline cl_int done(cl_event* event) {
  ++now;
  if (event) {
    *event = new _cl_event;
    (*event)->number = now;
  }
  return CL_SUCCESS;
}

inline void check_waits(cl_uint count, const cl_event* events, const char* call) {
  for (cl_uint i = 0; i < count; ++i) checked(events[i], "event", call);
}

}  // namespace oclc::fake
