// Tensors' data inside the model and beside it: RELIABILITY cases 36, 38, 51 to 58.
#include <sys/stat.h>

#include "frontends/onnx/model/external.h"
#include "tests/errors/import_error.h"

namespace oclc {
namespace {

using oclc_onnx::AttributeProto;
using oclc_onnx::TensorProto;
using test::failure_of;
using test::TempFolder;
using test::Writer;

// y = x + w; the caller fills `w`.
Writer sum_model() {
  Writer w;
  w.input("x", {2, 3}).output("y");
  w.node("Add", {"x", "w"}, {"y"}, "sum");
  return w;
}

TensorProto& weights(Writer& w, const std::vector<std::int64_t>& dims = {2, 3}) {
  auto& t = *w.graph().add_initializer();
  t.set_name("w");
  t.set_data_type(TensorProto::FLOAT);
  for (const std::int64_t d : dims) t.add_dims(d);
  return t;
}

void set_entry(TensorProto& t, const std::string& key, const std::string& value) {
  auto& e = *t.add_external_data();
  e.set_key(key);
  e.set_value(value);
}

TensorProto& external(TensorProto& t, const std::string& location, const std::string& offset = {},
                      const std::string& length = {}) {
  t.set_data_location(TensorProto::EXTERNAL);
  t.clear_external_data();
  set_entry(t, "location", location);
  if (!offset.empty()) set_entry(t, "offset", offset);
  if (!length.empty()) set_entry(t, "length", length);
  return t;
}

std::string float_bytes(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
}

// A folder with the model and a file of 24 bytes, and one outside of it.
struct Place {
  TempFolder folder;
  std::filesystem::path inside = folder.path() / "model";
  Place() {
    std::filesystem::create_directory(inside);
    folder.write("secret.bin", float_bytes(6));
    std::ofstream(inside / "w.bin", std::ios::binary) << float_bytes(6);
  }
  std::filesystem::path save(const Writer& w) const {
    std::ofstream(inside / "m.onnx", std::ios::binary) << w.bytes();
    return inside / "m.onnx";
  }
  test::Failure fails(const Writer& w, const ImportOptions& options = {}) const { return failure_of(save(w), options); }
};

const HostTensor& weights_of(const Module& module) {
  for (const Node* node : module.entries[0]->nodes()) {
    if (const HostTensor* t = constant_of(node->output())) return *t;
  }
  throw std::runtime_error("no constant");
}

TEST_CASE("case 36: sizes that overflow") {
  const std::string text = "wanted initializer 'w' of at most 281474976710656 elements, found ";
  for (const auto& dims : std::vector<std::vector<std::int64_t>>{{1LL << 31, 1LL << 31, 4}, {4194305, 4194305, 211106198978}}) {
    Writer w = sum_model();
    weights(w, dims).set_raw_data("1234");
    CHECK(failure_of(w).text.starts_with(text));
  }
  Writer w = sum_model();
  weights(w, {INT64_MAX, 2}).set_raw_data("1234");
  CHECK_FAILS(failure_of(w), "wanted initializer 'w' with dimensions of at most 1099511627776, found 9223372036854775807", 3);
  Writer negative = sum_model();
  weights(negative, {-5}).set_raw_data("1234");
  CHECK_FAILS(failure_of(negative), "wanted initializer 'w' with dimensions of at least 0, found -5", 3);
}

TEST_CASE("case 38: four terabytes claimed") {
  Writer w = sum_model();
  weights(w, {1LL << 20, 1LL << 20}).set_raw_data("1234");
  CHECK_FAILS(failure_of(w), "wanted initializer 'w': 4398046511104 bytes of raw_data for FLOAT [1048576, 1048576], found 4",
              3);
}

TEST_CASE("case 51: raw_data of a wrong length") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{23}, std::size_t{25}, std::size_t{28}}) {
    Writer w = sum_model();
    weights(w).set_raw_data(std::string(size, 'x'));
    CHECK_FAILS(failure_of(w), "wanted initializer 'w': 24 bytes of raw_data for FLOAT [2, 3], found " + std::to_string(size),
                3);
  }
}

TEST_CASE("case 52: data in several places, in a wrong place, of an unknown type") {
  Writer both = sum_model();
  auto& t = weights(both);
  t.set_raw_data(float_bytes(6));
  t.add_float_data(1);
  CHECK_FAILS(failure_of(both), "wanted initializer 'w' with its data in one place, found both raw_data and float_data", 3);
  Writer field = sum_model();
  auto& wrong = weights(field);
  for (int i = 0; i < 6; ++i) wrong.add_int64_data(i);
  CHECK_FAILS(failure_of(field), "wanted initializer 'w': FLOAT data in float_data, found int64_data", 3);
  Writer few = sum_model();
  weights(few).add_float_data(1);
  CHECK_FAILS(failure_of(few), "wanted initializer 'w': 6 values in float_data for FLOAT [2, 3], found 1", 3);
  Writer none = sum_model();
  weights(none);
  CHECK_FAILS(failure_of(none), "wanted initializer 'w': 6 values in float_data for FLOAT [2, 3], found 0", 3);
  Writer unknown = sum_model();
  weights(unknown).set_data_type(9999);
  CHECK_FAILS(failure_of(unknown), "wanted initializer 'w' of a known element type, found 9999", 3);
  Writer complex = sum_model();
  weights(complex).set_data_type(TensorProto::COMPLEX64);
  CHECK_FAILS(failure_of(complex),
              "wanted initializer 'w' of a supported element type, found COMPLEX64; convert it to a number type first", 4);
  Writer narrow = sum_model();
  auto& bytes = weights(narrow, {1});
  bytes.set_data_type(TensorProto::UINT8);
  bytes.add_int32_data(256);
  CHECK_FAILS(failure_of(narrow), "wanted initializer 'w': values of 0 to 255 in int32_data, found 256", 3);
}

TEST_CASE("case 52: typed data of every kind is read") {
  const auto read = [](int type, const std::function<void(TensorProto&)>& fill) {
    Writer w;
    w.input("x", {1}).output("y");
    auto& t = weights(w, {2});
    t.set_data_type(type);
    fill(t);
    w.node("Identity", {"w"}, {"y"});
    const auto module = w.import();
    const HostTensor& tensor = weights_of(*module);
    return std::pair{tensor.at(0), tensor.at(1)};
  };
  const auto ints = [](std::int32_t a, std::int32_t b) {
    return [=](TensorProto& t) { t.add_int32_data(a), t.add_int32_data(b); };
  };
  CHECK(read(TensorProto::INT8, ints(-128, 127)) == std::pair{-128.0, 127.0});
  CHECK(read(TensorProto::UINT8, ints(0, 255)) == std::pair{0.0, 255.0});
  CHECK(read(TensorProto::INT16, ints(-32768, 5)) == std::pair{-32768.0, 5.0});
  CHECK(read(TensorProto::UINT16, ints(65535, 5)) == std::pair{65535.0, 5.0});
  CHECK(read(TensorProto::INT32, ints(INT32_MIN, 5)) == std::pair{-2147483648.0, 5.0});
  CHECK(read(TensorProto::BOOL, ints(0, 7)) == std::pair{0.0, 1.0});
  CHECK(read(TensorProto::FLOAT16, ints(0x3c00, 0xc000)) == std::pair{1.0, -2.0});
  CHECK(read(TensorProto::BFLOAT16, ints(0x3f80, 0xc000)) == std::pair{1.0, -2.0});
  CHECK(read(TensorProto::FLOAT, [](TensorProto& t) { t.add_float_data(0.5F), t.add_float_data(-2); }) == std::pair{0.5, -2.0});
  CHECK(read(TensorProto::DOUBLE, [](TensorProto& t) { t.add_double_data(0.1), t.add_double_data(-2); }) ==
        std::pair{0.1, -2.0});
  CHECK(read(TensorProto::INT64, [](TensorProto& t) { t.add_int64_data(-1), t.add_int64_data(1); }) == std::pair{-1.0, 1.0});
  CHECK(read(TensorProto::UINT32, [](TensorProto& t) { t.add_uint64_data(4294967295U), t.add_uint64_data(1); }) ==
        std::pair{4294967295.0, 1.0});
  CHECK(read(TensorProto::UINT64, [](TensorProto& t) { t.add_uint64_data(7), t.add_uint64_data(1); }) == std::pair{7.0, 1.0});
  // Bytes of a bool other than 0 and 1 are made 1.
  CHECK(read(TensorProto::BOOL, [](TensorProto& t) { t.set_raw_data(std::string("\x02\x00", 2)); }) == std::pair{1.0, 0.0});
}

struct BadLocation {
  std::string location, problem, shown;
};

TEST_CASE("case 53: locations that lead elsewhere, in every carrier") {
  const std::vector<BadLocation> bad = {
      {"../secret.bin", "a path with '..'", "../secret.bin"},
      {"a/../../secret.bin", "a path with '..'", "a/../../secret.bin"},
      {"w.bin/..", "a path with '..'", "w.bin/.."},
      {"/etc/passwd", "an absolute path", "/etc/passwd"},
      {"~/w.bin", "a home folder", "~/w.bin"},
      {"", "an empty name", ""},
      {".", "a folder", "."},
      {"./", "a folder", "./"},
      {std::string("w.bin\0.txt", 10), "a name with a NUL byte", "w.bin\\x00.txt"},
      {"C:w.bin", "a drive letter", "C:w.bin"},
      {"C:\\w.bin", "a name with a backslash", "C:\\w.bin"},
      {"\\\\server\\w.bin", "a name with a backslash", "\\\\server\\w.bin"},
      {"https://example.org/w.bin", "an address", "https://example.org/w.bin"},
  };
  const Place place;
  for (const BadLocation& b : bad) {
    const auto text = [&](const std::string& where) {
      return "wanted " + where + ": external data in a regular file below the model's folder, found " + b.problem + ": '" +
             b.shown + "'";
    };
    Writer initializer = sum_model();
    external(weights(initializer), b.location);
    CHECK_FAILS(place.fails(initializer), text("initializer 'w'"), 3);
    CHECK_FAILS(failure_of(initializer), text("initializer 'w'"), 3);
    Writer constant = sum_model();
    auto& node = constant.node("Constant", {}, {"w"}, "const");
    auto& value = *test::attribute(node, "value", AttributeProto::TENSOR).mutable_t();
    value.set_data_type(TensorProto::FLOAT);
    external(value, b.location);
    CHECK_FAILS(place.fails(constant), text("node 'const' (Constant): attribute 'value'"), 3);
    Writer sparse = sum_model();
    auto& part = *sparse.graph().add_sparse_initializer()->mutable_values();
    part.set_name("w");
    external(part, b.location);
    CHECK_FAILS(place.fails(sparse), text("sparse initializer 'w'"), 3);
    Writer branch = sum_model();
    weights(branch).set_raw_data(float_bytes(6));
    auto& inner =
        *test::attribute(branch.node("If", {"x"}, {"unused"}, "if"), "then_branch", AttributeProto::GRAPH).mutable_g();
    auto& hidden = *inner.add_initializer();
    hidden.set_name("h");
    hidden.set_data_type(TensorProto::FLOAT);
    external(hidden, b.location);
    CHECK_FAILS(place.fails(branch), text("initializer 'h'"), 3);
    Writer function = sum_model();
    weights(function).set_raw_data(float_bytes(6));
    auto& f = *function.model.add_functions();
    f.set_name("F");
    f.set_domain("local");
    f.add_opset_import()->set_version(17);
    auto& in_function = *f.add_node();
    Writer::fill(in_function, "Constant", {}, {"c"}, "const");
    auto& carried = *test::attribute(in_function, "value", AttributeProto::TENSOR).mutable_t();
    carried.set_data_type(TensorProto::FLOAT);
    external(carried, b.location);
    CHECK_FAILS(place.fails(function), text("node 'const' (Constant): attribute 'value'"), 3);
  }
  // A model from memory has no folder.
  Writer memory = sum_model();
  external(weights(memory), "w.bin");
  CHECK_FAILS(failure_of(memory),
              "wanted initializer 'w' inside the model, which has no folder on disk, found external data 'w.bin'; give a "
              "folder of external data",
              3);
}

TEST_CASE("case 54: links, pipes and folders as external data") {
  const Place place;
  namespace fs = std::filesystem;
  fs::create_symlink("../secret.bin", place.inside / "link.bin");
  fs::create_directory_symlink("..", place.inside / "up");
  fs::create_hard_link(place.folder.path() / "secret.bin", place.inside / "hard.bin");
  REQUIRE(mkfifo((place.inside / "pipe.bin").c_str(), 0600) == 0);
  fs::create_directory(place.inside / "folder");
  const std::string wanted = "wanted initializer 'w': external data in a regular file below the model's folder, found ";
  const auto text_for = [&](const std::string& location) {
    Writer w = sum_model();
    external(weights(w), location);
    const auto failure = place.fails(w);
    CHECK(failure.code != ExitCode::good);
    return failure.text;
  };
  CHECK(text_for("link.bin") == wanted + "a symbolic link: 'link.bin'; give --allow-symlinks if you trust it");
  CHECK(text_for("up/secret.bin") == wanted + "a symbolic link: 'up/secret.bin'; give --allow-symlinks if you trust it");
  CHECK(text_for("hard.bin") == wanted + "a file with 2 hard links: 'hard.bin'; give --allow-symlinks if you trust it");
  CHECK(text_for("pipe.bin") == wanted + "no regular file: 'pipe.bin'");
  CHECK(text_for("folder") == wanted + "no regular file: 'folder'");
  ImportOptions trusting;
  trusting.allow_links = true;
  for (const char* location : {"link.bin", "hard.bin"}) {
    Writer w = sum_model();
    external(weights(w), location);
    CHECK(weights_of(*import_onnx(place.save(w), trusting)).at(5) == 5);
  }
  // Both ways to open refuse the same things.
  for (const auto with : {onnx::OpenWith::openat2, onnx::OpenWith::walk}) {
    for (const char* location : {"link.bin", "up/secret.bin", "hard.bin", "pipe.bin", "folder"}) {
      CHECK_FAILS(failure_of([&] { onnx::open_external(place.inside, location, false, "it", with); }),
                  text_for(location).replace(7, std::string("initializer 'w'").size(), "it"), 3);
    }
    CHECK(onnx::open_external(place.inside, "w.bin", false, "it", with).size == 24);
    CHECK(onnx::open_external(place.inside, "./w.bin", false, "it", with).size == 24);
    CHECK(onnx::open_external(place.inside, "nowhere/w.bin", false, "it", with).missing);
  }
}

TEST_CASE("case 55: offsets and lengths") {
  const Place place;
  const auto fails = [&](const std::string& offset, const std::string& length) {
    Writer w = sum_model();
    external(weights(w), "w.bin", offset, length);
    return place.fails(w);
  };
  const std::string number = "wanted initializer 'w': a number of bytes from 0 to 2^63-1 as external ";
  CHECK_FAILS(fails("-1", "24"), number + "offset, found '-1'", 3);
  CHECK_FAILS(fails("0x10", "24"), number + "offset, found '0x10'", 3);
  CHECK_FAILS(fails("", "-1"), number + "length, found '-1'", 3);
  CHECK_FAILS(fails("18446744073709551615", "24"), number + "offset, found '18446744073709551615'", 3);
  CHECK_FAILS(fails("9223372036854775807", "24"),
              "wanted initializer 'w': an end of external data below 2^63, found offset 9223372036854775807 and 24 bytes", 3);
  CHECK_FAILS(fails("4", "24"),
              "wanted initializer 'w': 24 bytes from offset 4 of 'w.bin', found a file of 24 bytes; the file may be cut short "
              "or belong to another model",
              3);
  CHECK_FAILS(fails("0", "20"), "wanted initializer 'w': 24 bytes of external data, found length 20", 3);
  Writer unaligned = sum_model();
  std::ofstream(place.inside / "odd.bin", std::ios::binary) << "?" << float_bytes(6);
  external(weights(unaligned), "odd.bin", "1");
  CHECK(weights_of(*import_onnx(place.save(unaligned))).at(5) == 5);
  std::vector<std::string> warnings;
  Writer keys = sum_model();
  set_entry(external(weights(keys), "w.bin"), "colour", "red");
  import_onnx(place.save(keys), test::with_warnings(warnings));
  CHECK(warnings == std::vector<std::string>{"initializer 'w': external data key 'colour' is ignored"});
  Writer twice = sum_model();
  set_entry(external(weights(twice), "w.bin"), "location", "w.bin");
  CHECK_FAILS(place.fails(twice), "wanted initializer 'w': each external data key once, found 'location' twice", 3);
}

TEST_CASE("case 56: tensors that share bytes of the file") {
  const Place place;
  Writer w;
  w.input("x", {3}).output("y");
  for (int i = 0; i < 4; ++i) {
    auto& t = *w.graph().add_initializer();
    t.set_name("w" + std::to_string(i));
    t.set_data_type(TensorProto::FLOAT);
    t.add_dims(3);
    external(t, "w.bin", std::to_string(4 * i));
  }
  w.node("Sum", {"x", "w0", "w1", "w2", "w3"}, {"y"});
  const auto module = import_onnx(place.save(w));
  std::vector<const HostTensor*> tensors;
  for (const Node* node : module->entries[0]->nodes()) {
    if (const HostTensor* t = constant_of(node->output())) tensors.push_back(t);
  }
  REQUIRE(tensors.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(tensors[i]->at(2) == static_cast<double>(i) + 2);
    CHECK(tensors[i]->data() == tensors[0]->data() + 4 * i);  // one copy of the file
  }
}

TEST_CASE("case 57: a file that shrinks or changes while it is in use") {
  const Place place;
  Writer w = sum_model();
  external(weights(w), "w.bin");
  const auto module = import_onnx(place.save(w));
  std::filesystem::resize_file(place.inside / "w.bin", 0);
  CHECK(weights_of(*module).at(5) == 5);  // no fault: the weights are not mapped
  for (const bool shorter : {true, false}) {
    std::ofstream(place.inside / "w.bin", std::ios::binary) << float_bytes(6);
    ImportOptions options;
    TensorProto tensor;
    tensor.set_data_type(TensorProto::FLOAT);
    external(tensor, "w.bin");
    onnx::ExternalFiles files(place.inside, options);
    files.declare(tensor, "it", 24);
    files.open_all();
    std::filesystem::resize_file(place.inside / "w.bin", shorter ? 8 : 100);
    CHECK_FAILS(failure_of([&] { files.read(tensor); }),
                std::string("wanted it: readable external data in 'w.bin', found a file that ") +
                    (shorter ? "became shorter while it was read" : "changed while it was read"),
                6);
  }
}

TEST_CASE("case 58: missing files are listed together") {
  const Place place;
  Writer w = sum_model();
  external(weights(w), "gone.bin");
  for (const char* name : {"also-gone.bin", "gone.bin"}) {
    auto& t = *w.graph().add_initializer();
    t.set_name(std::string("of-") + name);
    t.set_data_type(TensorProto::FLOAT);
    external(t, name);
  }
  const std::string folder = place.inside.string();
  CHECK_FAILS(place.fails(w),
              "wanted 2 files of external data in '" + folder +
                  "', found none named 'gone.bin', 'also-gone.bin'; name their folder with --external-data-dir",
              6);
  ImportOptions elsewhere;
  elsewhere.external_data_dir = place.folder.path() / "nowhere";
  CHECK_FAILS(
      place.fails(w, elsewhere),
      "wanted a folder of external data, found No such file or directory: '" + (place.folder.path() / "nowhere").string() + "'",
      6);
}

}  // namespace
}  // namespace oclc
