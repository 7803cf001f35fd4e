#include "runtime/package/images.h"

#include <dlfcn.h>

#include <array>
#include <cstring>

#include "runtime/package/image_reader.h"
#include "runtime/package/order/order.h"
#include "runtime/package/own_folder.h"

namespace oclc::package {
namespace {

enum class Colours : std::int64_t { rgb, bgr, grey };

// The component stays loaded.
oclc_image_read_function reader() {
  static const auto read = []() -> oclc_image_read_function {
    const std::string own = folder_of(reinterpret_cast<const void*>(&image_size));
    for (const std::string& path :
         {own + "liboclc_images.so", own + "../lib/liboclc_images.so", std::string("liboclc_images.so")}) {
      void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library) return reinterpret_cast<oclc_image_read_function>(::dlsym(library, OCLC_IMAGE_READ_SYMBOL));
    }
    return nullptr;
  }();
  if (!read)
    throw HostOpError(
        "wanted the component liboclc_images.so, which reads image files, found none beside the runtime; install "
        "it, or decode in front of the model");
  return read;
}

// `size` holds height and width; those of an earlier call if the pixels are asked for.
void read(const HostValue& file, std::array<std::int64_t, 2>& size, unsigned char* rgb) {
  require(file.dtype == plan::DType::u8 && file.shape.size() == 1, "wanted the bytes of a file as a vector of u8");
  char message[256] = {};
  if (reader()(reinterpret_cast<const unsigned char*>(file.data.data()), file.data.size(), &size[0], &size[1], rgb, message,
               sizeof message) != 0)
    throw HostOpError(message);
}

// The luma of ITU-R BT.601 in integers.
std::byte grey_of(unsigned red, unsigned green, unsigned blue) {
  return static_cast<std::byte>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace

std::string colours_problem(const HostSettings& s) {
  return s.integers[0] < 0 || s.integers[0] > 2 ? "pixel_format is 0, 1 or 2" : "";
}

void image_size(const HostSettings&, std::span<const HostValue> in, std::span<HostValue> out) {
  require(out[0].elements() == 2, "wanted room for height and width");
  std::array<std::int64_t, 2> size{};
  read(in[0], size, nullptr);
  for (std::size_t i = 0; i < 2; ++i) std::memcpy(out[0].data.data() + i * 8, &size[i], 8);
}

void decode_image(const HostSettings& s, std::span<const HostValue> in, std::span<HostValue> out) {
  const auto colours = static_cast<Colours>(s.integers[0]);
  const std::vector<std::int64_t>& shape = out[0].shape;
  require(out[0].dtype == plan::DType::u8 && shape.size() == 3 && shape[2] == (colours == Colours::grey ? 1 : 3),
          "wanted room for rows of pixels of 1 or 3 bytes");
  std::array<std::int64_t, 2> size{};
  read(in[0], size, nullptr);
  require(size[0] == shape[0] && size[1] == shape[1], "wanted room for the image as large as it is");
  std::vector<unsigned char> rgb(static_cast<std::size_t>(size[0] * size[1]) * 3);
  read(in[0], size, rgb.data());
  std::byte* to = out[0].data.data();
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    if (colours == Colours::grey) *to++ = grey_of(rgb[i], rgb[i + 1], rgb[i + 2]);
    for (std::size_t c = 0; c < 3 && colours != Colours::grey; ++c)
      *to++ = std::byte{rgb[i + (colours == Colours::bgr ? 2 - c : c)]};
  }
}

}  // namespace oclc::package
