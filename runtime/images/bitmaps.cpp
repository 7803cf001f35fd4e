// Formats that hold pixels as they are.
#include <cctype>
#include <cstdlib>

#include "runtime/images/formats.h"

namespace oclc::images {
namespace {

[[noreturn]] void refuse_bitmap(const std::string& wanted, const std::string& found) {
  throw std::runtime_error("wanted " + wanted + ", found " + found);
}

// Numbers of a file, the lowest byte first.
std::uint32_t number_at(File file, std::size_t at, std::size_t bytes) {
  if (at + bytes > file.size()) refuse_bitmap("a whole head", "the file's end");
  std::uint32_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | file[at + i];
  return value;
}

}  // namespace

void read_bitmap(File file, const Room& room) {
  const std::uint32_t pixels = number_at(file, 10, 4), head = number_at(file, 14, 4);
  if (head < 40) refuse_bitmap("a head of 40 bytes or more", std::to_string(head));
  const auto width = static_cast<std::int32_t>(number_at(file, 18, 4)),
             rows = static_cast<std::int32_t>(number_at(file, 22, 4));
  const std::uint32_t bits = number_at(file, 28, 2), compression = number_at(file, 30, 4);
  if (bits != 8 && bits != 24 && bits != 32) refuse_bitmap("8, 24 or 32 bits a pixel", std::to_string(bits));
  if (compression != 0) refuse_bitmap("pixels as they are", "compression " + std::to_string(compression));
  const std::int64_t height = std::llabs(rows);
  unsigned char* to = room(height, width);
  if (!to) return;
  const std::size_t of_pixel = bits / 8, w = static_cast<std::size_t>(width), h = static_cast<std::size_t>(height),
                    line = (w * of_pixel + 3) / 4 * 4, colours = 14 + std::size_t{head};
  if (pixels > file.size() || (file.size() - pixels) / line < h)
    refuse_bitmap("rows of " + std::to_string(line) + " bytes", "the file's end");
  for (std::size_t y = 0; y < h; ++y) {
    const unsigned char* from = file.data() + pixels + (rows < 0 ? y : h - 1 - y) * line;
    for (std::size_t x = 0; x < w; ++x, to += 3) {
      const unsigned char* bgr = from + x * of_pixel;
      if (bits == 8) {
        const std::size_t at = colours + std::size_t{*bgr} * 4;
        if (at + 3 > file.size()) refuse_bitmap("a colour for each number", "the file's end");
        bgr = file.data() + at;
      }
      for (int i = 0; i < 3; ++i) to[i] = bgr[2 - i];
    }
  }
}

void read_anymap(File file, const Room& room) {
  std::size_t at = 2;
  const auto number = [&]() -> std::int64_t {
    while (at < file.size() && (std::isspace(file[at]) || file[at] == '#')) {
      if (file[at] == '#')
        while (at < file.size() && file[at] != '\n') ++at;
      else
        ++at;
    }
    std::int64_t value = 0;
    const std::size_t first = at;
    for (; at < file.size() && std::isdigit(file[at]) && at - first < 9; ++at) value = value * 10 + (file[at] - '0');
    if (at == first) refuse_bitmap("a number in the head", at < file.size() ? "another byte" : "the file's end");
    return value;
  };
  const std::int64_t width = number(), height = number(), most = number();
  if (most < 1 || most > 255) refuse_bitmap("numbers up to at most 255", std::to_string(most));
  ++at;  // one blank
  unsigned char* to = room(height, width);
  if (!to) return;
  const std::size_t of_pixel = file[1] == '6' ? 3 : 1, count = static_cast<std::size_t>(width * height);
  if (at > file.size() || (file.size() - at) / of_pixel < count)
    refuse_bitmap(std::to_string(count) + " pixels", "the file's end");
  const auto scaled = [&](unsigned char v) { return static_cast<unsigned char>((v * 255 + most / 2) / most); };
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c) to[i * 3 + c] = scaled(file[at + i * of_pixel + (of_pixel == 3 ? c : 0)]);
}

}  // namespace oclc::images
