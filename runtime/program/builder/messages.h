// What the runtime and its builder processes say to each other, over a socket between the two.
#pragma once
#include <cstdint>

namespace oclc::runtime {

// To a builder: a head, then `first_bytes` and `second_bytes` bytes of text.
struct BuilderRequest {
  enum Kind : std::uint32_t {
    kProgram = 1,  // build: options, source
    kKernel = 2,   // compile the kernel of that name, of the unit; no second text
    kLifted = 3,   // as kProgram, and what it gives lifted to sm_90a, see runtime/device/sm90a.h
    kOpen = 4      // make a context of the device, which else the first program does; no texts
  };
  std::uint32_t kind;
  std::uint32_t unit;
  std::uint64_t first_bytes;
  std::uint64_t second_bytes;
};

// From a builder, one for each request, in their order.
struct BuilderReply {
  std::uint32_t kind;
  std::uint32_t unit;
  std::int32_t status;  // of OpenCL
};

}  // namespace oclc::runtime
