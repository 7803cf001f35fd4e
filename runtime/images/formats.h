// One function a format of image files. Each throws std::runtime_error that says what was wanted and found.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

namespace oclc::images {

using File = std::span<const unsigned char>;
// Told the size, gives where the pixels go: height * width * 3 bytes. Null: the size alone is asked for.
using Room = std::function<unsigned char*(std::int64_t height, std::int64_t width)>;

// What a format's function does where the component was built without its library.
[[noreturn]] void refuse_format();

void read_bitmap(File file, const Room& room);    // Windows bitmaps, not compressed
void read_anymap(File file, const Room& room);    // PNM of bytes: P5, P6
void read_png(File file, const Room& room);       // libpng
void read_jpeg(File file, const Room& room);      // libjpeg
void read_jpeg2000(File file, const Room& room);  // OpenJPEG
void read_tiff(File file, const Room& room);      // libtiff
void read_webp(File file, const Room& room);      // libwebp

}  // namespace oclc::images
