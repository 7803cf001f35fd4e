#ifdef OCLC_HAS_PNG
#include <png.h>

#include <vector>

#include "runtime/images/formats.h"

namespace oclc::images {

void read_png(File file, const Room& room) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto check = [&](int done) {
    if (done != 0 && !PNG_IMAGE_FAILED(image)) return;
    const std::string message = image.message;
    png_image_free(&image);
    throw std::runtime_error("libpng: " + message);
  };
  check(png_image_begin_read_from_memory(&image, file.data(), file.size()));
  unsigned char* to = nullptr;
  std::vector<unsigned char> rgba;
  try {
    to = room(image.height, image.width);
    if (to) rgba.resize(std::size_t{image.height} * image.width * 4);
  } catch (...) {
    png_image_free(&image);
    throw;
  }
  if (!to) return png_image_free(&image);
  image.format = PNG_FORMAT_RGBA;
  check(png_image_finish_read(&image, nullptr, rgba.data(), 0, nullptr));
  // What is transparent keeps its colour.
  for (std::size_t i = 0; i < rgba.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) *to++ = rgba[i + c];
}

}  // namespace oclc::images
#else
#include "runtime/images/formats.h"

void oclc::images::read_png(File, const Room&) { refuse_format(); }
#endif
