#ifdef OCLC_HAS_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/images/formats.h"

namespace oclc::images {
namespace {

struct TiffBytes {
  File file;
  std::uint64_t at = 0;
};

tmsize_t read_tiff_bytes(thandle_t handle, void* to, tmsize_t bytes) {
  auto& source = *static_cast<TiffBytes*>(handle);
  const std::uint64_t left = source.at < source.file.size() ? source.file.size() - source.at : 0;
  const auto count = std::min(left, static_cast<std::uint64_t>(std::max<tmsize_t>(bytes, 0)));
  if (count > 0) std::memcpy(to, source.file.data() + source.at, count);
  source.at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_tiff(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<TiffBytes*>(handle);
  source.at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? source.at + offset : source.file.size() + offset;
  return source.at;
}

int close_tiff(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return static_cast<TiffBytes*>(handle)->file.size(); }

}  // namespace

void read_tiff(File file, const Room& room) {
  TIFFSetErrorHandler(nullptr);  // which would print
  TIFFSetWarningHandler(nullptr);
  TiffBytes source{file};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(TIFFClientOpen("image", "rm", &source, read_tiff_bytes, write_tiff,
                                                                   seek_tiff, close_tiff, size_of_tiff, nullptr, nullptr),
                                                    TIFFClose);
  if (!tiff) throw std::runtime_error("libtiff: the head is damaged");
  std::uint32_t width = 0, height = 0;
  if (!TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height))
    throw std::runtime_error("libtiff: the image has no size");
  unsigned char* to = room(height, width);
  if (!to) return;
  std::vector<std::uint32_t> pixels(std::size_t{width} * height);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1))
    throw std::runtime_error("libtiff: the pixels are damaged, or of a form that it does not read");
  for (const std::uint32_t p : pixels) {
    *to++ = static_cast<unsigned char>(TIFFGetR(p));
    *to++ = static_cast<unsigned char>(TIFFGetG(p));
    *to++ = static_cast<unsigned char>(TIFFGetB(p));
  }
}

}  // namespace oclc::images
#else
#include "runtime/images/formats.h"

void oclc::images::read_tiff(File, const Room&) { refuse_format(); }
#endif
