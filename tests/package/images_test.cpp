// Image files as pixels. Each file of the folder `images` is this picture of 6 rows of 8 pixels.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/package/host_ops.h"

namespace oclc::package::images_test {

using plan::DType;

constexpr std::int64_t kRows = 6, kColumns = 8;

std::array<int, 3> colour_at(int y, int x) { return {x * 30 + y, y * 40 + 5, 255 - x * 20 - y * 10}; }

HostValue bytes_of(const std::string& text) {
  HostValue value{DType::u8, {static_cast<std::int64_t>(text.size())}, std::vector<std::byte>(text.size()), {}};
  if (!text.empty()) std::memcpy(value.data.data(), text.data(), text.size());
  return value;
}

HostValue file(const std::string& name) {
  std::ifstream in(std::filesystem::path(OCLC_SOURCE_DIR) / "tests/package/images" / name, std::ios::binary);
  REQUIRE(in);
  return bytes_of({std::istreambuf_iterator<char>(in), {}});
}

// The result, or why there is none.
struct Found {
  std::vector<std::byte> data;
  std::string problem;
};

Found run(const std::string& op, std::vector<std::int64_t> settings, const HostValue& in, DType dtype,
          std::vector<std::int64_t> shape) {
  HostValue out{dtype, std::move(shape), {}, {}};
  out.data.resize(out.elements() * (dtype == DType::i64 ? 8 : 1));
  const HostSettings all{std::move(settings), {}};
  REQUIRE(problem_of(*find_host_op(op), all) == "");
  try {
    find_host_op(op)->run(all, {&in, 1}, {&out, 1});
  } catch (const HostOpError& error) {
    return {{}, error.what()};
  }
  return {out.data, {}};
}

Found size_of(const HostValue& in) { return run("image_size", {}, in, DType::i64, {2}); }
Found pixels_of(const HostValue& in, int colours = 0, std::int64_t rows = kRows) {
  return run("decode_image", {colours}, in, DType::u8, {rows, kColumns, colours == 2 ? 1 : 3});
}

void check_picture(const std::string& name, int tolerance, bool optional) {
  CAPTURE(name);
  const Found size = size_of(file(name)), found = pixels_of(file(name));
  if (optional && size.problem.find("was built without this format's library") != std::string::npos) {
    MESSAGE(size.problem);
    CHECK(found.problem == size.problem);
    return;
  }
  REQUIRE(size.problem == "");
  std::int64_t sides[2];
  std::memcpy(sides, size.data.data(), sizeof sides);
  CHECK(sides[0] == kRows);
  CHECK(sides[1] == kColumns);
  REQUIRE(found.problem == "");
  for (std::size_t i = 0; i < found.data.size(); ++i) {
    const auto pixel = static_cast<int>(i / 3);
    CAPTURE(i);
    REQUIRE(std::abs(std::to_integer<int>(found.data[i]) - colour_at(pixel / 8, pixel % 8)[i % 3]) <= tolerance);
  }
}

TEST_CASE("files of each format are the picture that they hold") {
  check_picture("gradient.bmp", 0, false);
  check_picture("gradient.ppm", 0, false);
  check_picture("gradient.png", 0, true);
  check_picture("gradient.tiff", 0, true);
  check_picture("gradient.webp", 0, true);
  check_picture("gradient.jp2", 0, true);
  check_picture("gradient.jpg", 3, true);  // which keeps no number exactly
}

TEST_CASE("colours come in the order that is asked for, or as their luma") {
  const Found bgr = pixels_of(file("gradient.ppm"), 1), grey = pixels_of(file("gradient.ppm"), 2);
  REQUIRE(grey.data.size() == kRows * kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) {
    const auto [red, green, blue] = colour_at(i / 8, i % 8);
    const auto at = static_cast<std::size_t>(i);
    CHECK(std::to_integer<int>(bgr.data[at * 3]) == blue);
    CHECK(std::to_integer<int>(bgr.data[at * 3 + 2]) == red);
    CHECK(std::abs(std::to_integer<int>(grey.data[at]) - (0.299 * red + 0.587 * green + 0.114 * blue)) <= 0.51);
  }
}

TEST_CASE("grey pixels of a PNM file are three equal colours, stretched to 255") {
  const Found found =
      run("decode_image", {0}, bytes_of("P5 # two\n2 1\n5\n" + std::string("\x05\x02", 2)), DType::u8, {1, 2, 3});
  REQUIRE(found.problem == "");
  const int wanted[] = {255, 255, 255, 102, 102, 102};
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::to_integer<int>(found.data[i]) == wanted[i]);
}

TEST_CASE("what is no image, or not all of one, is refused") {
  const auto cut = [](const std::string& name, std::size_t bytes) {
    HostValue value = file(name);
    value.data.resize(bytes);
    value.shape = {static_cast<std::int64_t>(bytes)};
    return value;
  };
  CHECK(size_of(bytes_of("")).problem.find("wanted an image file (BMP,") == 0);
  CHECK(size_of(bytes_of("GIF89a")).problem.find("found bytes of no such form") != std::string::npos);
  CHECK(size_of(cut("gradient.bmp", 20)).problem == "BMP file: wanted a whole head, found the file's end");
  CHECK(pixels_of(cut("gradient.bmp", 190)).problem == "BMP file: wanted rows of 24 bytes, found the file's end");
  CHECK(pixels_of(cut("gradient.ppm", 100)).problem == "PNM file: wanted 48 pixels, found the file's end");
  CHECK(size_of(bytes_of("P6 999999999 999999999 255 ")).problem.find("PNM file: wanted an image of 1 to 2^28 pixels") == 0);
  CHECK(size_of(bytes_of("P6 0 4 255 ")).problem.find("wanted an image of 1 to 2^28 pixels") != std::string::npos);
  CHECK(size_of(bytes_of("P6 4 4 65535 ")).problem == "PNM file: wanted numbers up to at most 255, found 65535");
  for (const char* name : {"gradient.png", "gradient.jp2", "gradient.jpg"}) {
    CAPTURE(name);
    CHECK(pixels_of(cut(name, 30)).problem != "");
  }
  CHECK(pixels_of(file("gradient.ppm"), 0, 5).problem == "wanted room for the image as large as it is");
  CHECK(problem_of(*find_host_op("decode_image"), {{3}, {}}) == "pixel_format is 0, 1 or 2");
}

}  // namespace oclc::package::images_test
