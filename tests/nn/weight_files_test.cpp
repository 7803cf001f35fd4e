// Files of named tensors as state dictionaries.
#include "frontends/cpp/weight_files.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"
#include "tests/process.h"

namespace weight_files_test {

using namespace oclc;
using oclc::test::Folder;

template <class T>
std::string packed(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string safetensors(const std::string& header, const std::string& data) {
  return packed(static_cast<std::uint64_t>(header.size())) + header + data;
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data, const char* order = "False") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + packed(static_cast<std::uint16_t>(header.size())) + header + data;
}

std::uint32_t crc(const std::string& bytes) {
  std::uint32_t c = ~0u;
  for (const char b : bytes) {
    c ^= static_cast<unsigned char>(b);
    for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
  }
  return ~c;
}

// A ZIP archive of one member.
std::string zip(const std::string& name, const std::string& data, std::uint16_t method = 0, std::uint32_t sum_change = 0) {
  const auto two = [](std::size_t v) { return packed(static_cast<std::uint16_t>(v)); };
  const auto four = [](std::size_t v) { return packed(static_cast<std::uint32_t>(v)); };
  const std::string common =
      two(method) + two(0) + two(0) + four(crc(data) ^ sum_change) + four(data.size()) + four(data.size()) + two(name.size());
  const std::string local = four(0x04034b50u) + two(20) + two(0) + common + two(0) + name + data;
  const std::string entry =
      four(0x02014b50u) + two(20) + two(20) + two(0) + common + two(0) + two(0) + two(0) + two(0) + four(0) + four(0) + name;
  return local + entry + four(0x06054b50u) + two(0) + two(0) + two(1) + two(1) + four(entry.size()) + four(local.size()) +
         two(0);
}

struct File : Folder {
  std::string file;
  explicit File(const std::string& bytes) : file((path / "weights").string()) { add("weights", bytes); }
};

std::string refusal(const std::string& bytes, nn::NamedTensors (*read)(const std::filesystem::path&)) {
  const File f(bytes);
  try {
    read(f.file);
  } catch (const CompileError& error) {
    const std::string text = error.what();
    CHECK(text.starts_with("wanted " + f.file + ": "));
    return text.substr(("wanted " + f.file + ": ").size());
  }
  return "none";
}

TEST_CASE("a layer takes its parameters out of a safetensors file") {
  const File f(safetensors(R"({"__metadata__":{"format":"pt"},"fc.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                           R"("fc.bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                           bytes_of({2, 3, 0.5f})));
  const nn::NamedTensors tensors = nn::read_safetensors(f.file);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors.at("fc.weight").at(1) == 3);
  nn::Network net("n", nn::state_dictionary(tensors));
  net.output("y", linear(net, "fc", net.input("x", DType::f32, {1, 2}), 1));
  CHECK(net.finish() != nullptr);
}

TEST_CASE("members of an .npz are tensors by their names") {
  const File f(zip("head.weight.npy", npy("<f4", "(2, 1)", bytes_of({4, 5}))));
  const nn::NamedTensors tensors = nn::read_npz(f.file);
  REQUIRE(tensors.size() == 1);
  CHECK(tensors.at("head.weight").shape() == std::vector<std::int64_t>{2, 1});
  CHECK(tensors.at("head.weight").at(1) == 5);
  const File scalar(zip("s.npy", npy("<i8", "()", packed(std::int64_t{7}))));
  CHECK(nn::read_npz(scalar.file).at("s").at(0) == 7);
}

TEST_CASE("damaged files are refused, with the tensor that is at fault") {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(refusal(safetensors(good, bytes_of({1, 2})), nn::read_safetensors) == "none");
  CHECK(refusal(safetensors(good, bytes_of({1})), nn::read_safetensors).starts_with("tensor 'a': a place within the file"));
  for (const char* odd : {R"({"a":{"dtype":"F32","shape":[2e30],"data_offsets":[0,8]}})",
                          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.5]}})"})
    CHECK(refusal(safetensors(odd, bytes_of({1, 2})), nn::read_safetensors)
              .starts_with("tensor 'a': whole numbers as shape and data_offsets"));
  CHECK(refusal("short", nn::read_safetensors).starts_with("a safetensors file"));
  CHECK(refusal(packed(std::uint64_t{1} << 60) + good, nn::read_safetensors).starts_with("a safetensors file"));
  CHECK(refusal(safetensors("[1]", ""), nn::read_safetensors).starts_with("a JSON object as header"));
  CHECK(refusal(safetensors(R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", "x"), nn::read_safetensors) ==
        "tensor 'a': an element type of safetensors that is known, found \"F8\"");
  CHECK(refusal(safetensors(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x"), nn::read_safetensors)
            .starts_with("tensor 'a': a place"));
  CHECK(
      refusal(safetensors(R"({"a":{"dtype":"U8","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})", ""),
              nn::read_safetensors)
          .starts_with("tensor 'a': a place"));
  CHECK(refusal(safetensors(R"({"a":3})", ""), nn::read_safetensors).starts_with("tensor 'a': an entry with dtype"));

  const std::string array = npy("<f4", "(2,)", bytes_of({1, 2}));
  CHECK(refusal(zip("a.npy", array), nn::read_npz) == "none");
  CHECK(refusal(zip("a.npy", array, 8), nn::read_npz) ==
        "member 'a.npy': stored members (np.savez, not np.savez_compressed), found method 8");
  CHECK(refusal(zip("a.npy", array, 0, 1), nn::read_npz) ==
        "member 'a.npy': the checksum of the directory, found another: the file is damaged");
  CHECK(refusal("PK", nn::read_npz).starts_with("a whole ZIP archive"));
  CHECK(refusal(std::string(200, 'x'), nn::read_npz) ==
        "a whole ZIP archive, as np.savez writes it, found no end of a directory");
  CHECK(refusal(zip("a.npy", npy(">f4", "(2,)", bytes_of({1, 2}))), nn::read_npz) ==
        "member 'a.npy': little-endian numbers, found '>f4'");
  CHECK(refusal(zip("a.npy", npy("<f4", "(2,)", bytes_of({1, 2}), "True")), nn::read_npz).find("C order") != std::string::npos);
  CHECK(refusal(zip("a.npy", npy("<f4", "(3,)", bytes_of({1, 2}))), nn::read_npz).find("the bytes of shape (3,)") !=
        std::string::npos);
  CHECK(refusal(zip("a.npy", "no array, though long enough"), nn::read_npz).find("NumPy's .npy format") != std::string::npos);
  // Every prefix of a good file is refused, and none crashes.
  const std::string archive = zip("a.npy", array);
  for (std::size_t cut = 1; cut < archive.size(); cut += 7) CHECK(refusal(archive.substr(0, cut), nn::read_npz) != "none");
  CHECK_THROWS_AS(nn::read_npz("/nonexistent.npz"), CompileError);
}

}  // namespace weight_files_test
