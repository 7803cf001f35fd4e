// Reads the .npy files of this example: version 1 headers, C order, little endian.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

template <typename T>
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> values;
};

// `type` is numpy's name of T: "<f4", "<i8". Throws std::runtime_error naming the file.
template <typename T>
Array<T> read_npy(const std::string& file, const std::string& type) {
  const auto fail = [&](const std::string& what) { throw std::runtime_error(file + ": " + what); };
  std::ifstream in(file, std::ios::binary);
  if (!in) fail("cannot be opened");
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t kPrefix = 10;  // "\x93NUMPY", two bytes of version, two bytes of header length
  if (bytes.size() < kPrefix || bytes.compare(0, 7, "\x93NUMPY\x01") != 0) fail("wanted a .npy file of version 1");
  const std::size_t length = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  if (bytes.size() < kPrefix + length) fail("ends within its header");
  const std::string header = bytes.substr(kPrefix, length);
  if (header.find("'descr': '" + type + "'") == std::string::npos) fail("wanted elements " + type + ", found header " + header);
  if (header.find("'fortran_order': False") == std::string::npos) fail("wanted C order, found header " + header);

  Array<T> array;
  std::size_t count = 1;
  std::size_t at = header.find("'shape': (");
  if (at == std::string::npos) fail("has no shape, found header " + header);
  std::istringstream dims(header.substr(at + 10, header.find(')', at) - at - 10));
  for (std::string dim; std::getline(dims, dim, ',');) {
    if (dim.find_first_not_of(' ') == std::string::npos) continue;
    array.shape.push_back(std::stoll(dim));
    count *= static_cast<std::size_t>(array.shape.back());
  }
  if (bytes.size() - kPrefix - length != count * sizeof(T)) fail("wanted " + std::to_string(count) + " elements");
  array.values.resize(count);
  bytes.copy(reinterpret_cast<char*>(array.values.data()), count * sizeof(T), kPrefix + length);
  return array;
}

}  // namespace digits
