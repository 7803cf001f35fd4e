#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/images/formats.h"
#include "runtime/package/image_reader.h"

namespace oclc::images {
namespace {

// Larger pictures are taken for damaged heads.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

struct Format {
  std::string_view name, begin;  // the file's first bytes; a dot stands for any
  void (*read)(File file, const Room& room);
};

using namespace std::string_view_literals;

constexpr Format kFormats[] = {
    {"BMP", "BM", read_bitmap},
    {"PNM", "P5", read_anymap},
    {"PNM", "P6", read_anymap},
    {"PNG", "\x89PNG\r\n\x1a\n", read_png},
    {"JPEG", "\xff\xd8\xff", read_jpeg},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n"sv, read_jpeg2000},
    {"JPEG 2000", "\xff\x4f\xff\x51", read_jpeg2000},
    {"TIFF", "II*\0"sv, read_tiff},
    {"TIFF", "MM\0*"sv, read_tiff},
    {"WebP", "RIFF....WEBP", read_webp},
};

bool begins(File file, std::string_view with) {
  return file.size() >= with.size() && std::equal(with.begin(), with.end(), file.begin(), [](char wanted, unsigned char found) {
           return wanted == '.' || static_cast<unsigned char>(wanted) == found;
         });
}

void read(File file, std::int64_t& height, std::int64_t& width, unsigned char* rgb) {
  const auto* format =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return begins(file, f.begin); });
  if (format == std::end(kFormats))
    throw std::runtime_error(
        "wanted an image file (BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP), found bytes of no such form");
  const auto room = [&](std::int64_t h, std::int64_t w) -> unsigned char* {
    if (h < 1 || w < 1 || h > kMostPixels / w)
      throw std::runtime_error("wanted an image of 1 to 2^28 pixels, found " + std::to_string(h) + " rows of " +
                               std::to_string(w));
    if (rgb && (h != height || w != width)) throw std::runtime_error("the file is another than the one whose size was read");
    height = h;
    width = w;
    return rgb;
  };
  try {
    format->read(file, room);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(format->name) + " file: " + error.what());
  }
}

}  // namespace

void refuse_format() {
  throw std::runtime_error(
      "liboclc_images.so was built without this format's library (libpng, libjpeg, libtiff, libwebp, OpenJPEG)");
}

}  // namespace oclc::images

extern "C" __attribute__((visibility("default"))) int oclc_image_read_v1(const unsigned char* file, size_t bytes,
                                                                         int64_t* height, int64_t* width, unsigned char* rgb,
                                                                         char* message, size_t message_bytes) {
  try {
    oclc::images::read({file, bytes}, *height, *width, rgb);
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes, "%s", error.what());
    return 1;
  }
}
