// Image files of the formats that are read by code of ours.
#include <vector>

#include "runtime/images/formats.h"
#include "tests/fuzz/targets/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace oclc;
  for (const auto& read : {images::read_bitmap, images::read_anymap}) {
    std::vector<unsigned char> pixels;
    try {
      read({data, size}, [&](std::int64_t height, std::int64_t width) -> unsigned char* {
        if (height < 0 || width < 0 || (width > 0 && height > (1 << 22) / width)) return nullptr;
        pixels.resize(static_cast<std::size_t>(height * width * 3));
        return pixels.data();
      });
    } catch (const std::runtime_error& error) {
      if (!*error.what()) fuzz::found("no text");
    }
  }
  return 0;
}
