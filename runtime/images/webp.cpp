#ifdef OCLC_HAS_WEBP
#include <webp/decode.h>

#include "runtime/images/formats.h"

namespace oclc::images {

void read_webp(File file, const Room& room) {
  int width = 0, height = 0;
  if (!WebPGetInfo(file.data(), file.size(), &width, &height)) throw std::runtime_error("libwebp: the head is damaged");
  unsigned char* to = room(height, width);
  if (!to) return;
  const std::size_t line = static_cast<std::size_t>(width) * 3;
  if (!WebPDecodeRGBInto(file.data(), file.size(), to, line * static_cast<std::size_t>(height), static_cast<int>(line)))
    throw std::runtime_error("libwebp: the pixels are damaged");
}

}  // namespace oclc::images
#else
#include "runtime/images/formats.h"

void oclc::images::read_webp(File, const Room&) { refuse_format(); }
#endif
