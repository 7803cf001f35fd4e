#include "tools/io/npy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::io;

namespace npy_test {

std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  const std::size_t size = dictionary.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(size >> 8 * i);
  return bytes + dictionary + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string error_of(const std::string& bytes) {
  try {
    parse_npy(bytes, "x.npy");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> list;
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) list.push_back(tensor.at(i));
  return list;
}

TEST_CASE("case 59: all versions, orders and byte orders of .npy are read") {
  for (const int version : {1, 2, 3}) {
    const Tensor t = parse_npy(
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", raw<float>({1, 2, 3, 4, 5, 6}), version), "x.npy");
    CHECK(t.shape == std::vector<std::int64_t>{2, 3});
    CHECK(values(t) == std::vector<double>{1, 2, 3, 4, 5, 6});
  }
  const Tensor f = parse_npy(
      npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", raw<std::int16_t>({1, 4, 2, 5, 3, 6})), "x.npy");
  CHECK(values(f) == std::vector<double>{1, 2, 3, 4, 5, 6});
  const Tensor f3 =
      parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 3)}", std::string("\1\4\2\5\3\6")), "x.npy");
  CHECK(values(f3) == std::vector<double>{1, 2, 3, 4, 5, 6});
  const Tensor big = parse_npy(
      npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,)}", std::string("\0\0\1\0\xff\xff\xff\xfe", 8)), "x.npy");
  CHECK(values(big) == std::vector<double>{256, -2});
  const Tensor scalar =
      parse_npy(npy("{\"descr\": \"<f8\", 'fortran_order': False, 'shape': ()}\n", raw<double>({2.5})), "x.npy");
  CHECK(scalar.shape.empty());
  CHECK(values(scalar) == std::vector<double>{2.5});
  const Tensor empty = parse_npy(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2)}", ""), "x.npy");
  CHECK(empty.elements() == 0);
  const Tensor flags =
      parse_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\1\7", 3)), "x.npy");
  CHECK(values(flags) == std::vector<double>{0, 1, 1});
  const Tensor half = parse_npy(
      npy("{'descr': '<f2', 'fortran_order': False, 'shape': (4,)}", raw<std::uint16_t>({0x3c00, 0xc100, 0x0001, 0x7c00})),
      "x.npy");
  CHECK(values(half) == std::vector<double>{1, -2.5, 5.9604644775390625e-8, std::numeric_limits<double>::infinity()});
  const Tensor python2 =
      parse_npy(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (2L,)}", raw<std::uint64_t>({1, 2})), "x.npy");
  CHECK(values(python2) == std::vector<double>{1, 2});
}

TEST_CASE("case 59: hostile .npy files are refused by name") {
  const auto header = [](const std::string& dictionary, const std::string& data = "") {
    return error_of(npy(dictionary, data));
  };
  CHECK(error_of("") == "x.npy: not an .npy file (wrong magic number)");
  CHECK(error_of("PK\x03\x04 and so on") == "x.npy: it is an .npz archive; give one of its .npy files");
  CHECK(error_of(std::string("\x93NUMPY\x04\x00\x10\x00", 10)) == "x.npy: .npy version 4.0 is not supported");
  CHECK(error_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)) ==
        "x.npy: its header claims 4294967295 bytes, at most 65536 are allowed");
  CHECK(error_of(std::string("\x93NUMPY\x01\x00\x10\x00", 10)) == "x.npy: truncated within the header");
  CHECK(header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "12345678") ==
        "x.npy: element type '|O' is a pickled Python object, which is refused");
  CHECK(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") ==
        "x.npy: structured element types are not supported");
  CHECK(header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}") == "x.npy: element type '<c8' is not supported");
  CHECK(header("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}") == "x.npy: element type '<U3' is not supported");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "1234") ==
        "x.npy: its shape needs 12 bytes, found 4");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "12345") ==
        "x.npy: its shape needs 4 bytes, found 5");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}") == "x.npy: dimension -1 is negative");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}") ==
        "x.npy: its shape has too many elements");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,)}") ==
        "x.npy: the shape is no tuple of integers");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').system('x'),)}") ==
        "x.npy: the shape is no tuple of integers");
  CHECK(header("{'descr': '<f4', 'fortran_order': exit(), 'shape': ()}") == "x.npy: fortran_order is neither True nor False");
  CHECK(header("{'descr': '<f4', 'shape': ()}") == "x.npy: the header lacks the key 'fortran_order'");
  CHECK(header("{'descr': '<f4', 'descr': '<f4'}") == "x.npy: the key 'descr' appears twice in the header");
  CHECK(header("{'extra': 1}") == "x.npy: unknown key 'extra' in the header");
  CHECK(header("dict()") == "x.npy: the header is no dictionary literal: wanted '{' at character 0");
  CHECK(header("{'descr': '\\x3cf4'}") == "x.npy: an escape in a string of the header");
  CHECK(header("{'descr': 'f4") == "x.npy: a string of the header does not end");
  CHECK(header("{'descr': '<f4', 'fortran_order': False, 'shape': ()} + 1", "1234") ==
        "x.npy: text after the header's dictionary");
  std::string deep = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i) deep += "1,";
  CHECK(header(deep + ")}", "1234") == "x.npy: the rank is above 32");
}

TEST_CASE("case 59: damaged .npy files never crash") {
  const std::string good = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", raw<float>({1, 2, 3, 4, 5, 6}));
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      parse_npy(bytes, "x.npy");
    } catch (const FileError&) {
    }
  }
}

TEST_CASE("written .npy files are read back") {
  test::TempDir dir;
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {5}, {2, 3}, {0}, {1, 2, 3, 4}}) {
    Tensor t;
    t.dtype = OCLC_I32;
    t.shape = shape;
    t.data.resize(tensor_bytes("t", t.dtype, shape));
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<std::byte>(i * 7);
    write_npy(dir / "t.npy", t);
    CHECK(std::filesystem::file_size(dir / "t.npy") == 128 + t.data.size());
    const Tensor back = read_npy(dir / "t.npy");
    CHECK(back.dtype == t.dtype);
    CHECK(back.shape == t.shape);
    CHECK(back.data == t.data);
  }
  Tensor b;
  b.dtype = OCLC_BF16;
  b.shape = {2};
  b.data = {std::byte{0}, std::byte{0x3f}, std::byte{0x80}, std::byte{0xbf}};
  write_npy(dir / "b.npy", b);
  CHECK(values(read_npy(dir / "b.npy")) == std::vector<double>{0.5, -1});
  CHECK_THROWS_AS(write_npy(dir / "none/t.npy", b), FileError);
  CHECK_THROWS_WITH(read_npy(dir / "gone.npy"), doctest::Contains("gone.npy: cannot open: No such file or directory"));
  CHECK_THROWS_WITH(read_npy("/dev/zero"), "/dev/zero: wanted a regular file, found a device, pipe or socket");
}

}  // namespace npy_test
