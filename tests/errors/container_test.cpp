// Files that are no model, or damaged ones: RELIABILITY cases 1 to 11.
#include <sys/stat.h>

#include <ctime>

#include "tests/errors/import_error.h"

namespace oclc {
namespace {

using test::failure_of;
using test::relu_model;
using test::TempFolder;
using test::Writer;

// A model of about 2 kB with most kinds of content.
std::string two_kilobytes() {
  Writer w(13);
  w.input("image", {"N", 1, 6, 6}).output("scores", {"N", 4}).output("sizes", {2}, oclc_onnx::TensorProto::INT64);
  w.floats("weights", {2, 1, 3, 3}, std::vector<float>(18, 0.25F)).floats("bias", {2}, {1, -1});
  w.floats("dense", {18, 4}, std::vector<float>(72, 0.5F)).ints("shape", {2}, {0, -1});
  auto& conv = w.node("Conv", {"image", "weights", "bias"}, {"c"}, "conv");
  test::set_list(conv, "pads", {1, 1, 1, 1});
  test::set_list(conv, "strides", {2, 2});
  test::set_int(conv, "group", 1);
  w.node("Relu", {"c"}, {"r"}, "relu");
  w.node("Reshape", {"r", "shape"}, {"flat"}, "reshape");
  auto& gemm = w.node("Gemm", {"flat", "dense"}, {"g"}, "gemm");
  test::set_float(gemm, "alpha", 0.5F);
  auto& constant = w.node("Constant", {}, {"half"}, "constant");
  auto& value = test::attribute(constant, "value", oclc_onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(oclc_onnx::TensorProto::FLOAT);
  value.mutable_t()->add_float_data(0.5F);
  w.node("Mul", {"g", "half"}, {"m"}, "mul");
  auto& softmax = w.node("Softmax", {"m"}, {"scores"}, "softmax");
  test::set_int(softmax, "axis", 1);
  w.node("Shape", {"scores"}, {"sizes"}, "sizes");
  w.model.set_producer_name("test");
  w.model.set_producer_version(std::string(700, 'd'));
  return w.bytes();
}

// Imports damaged bytes; anything but success or CompileError escapes and fails the test.
bool survives(const std::string& bytes) {
  try {
    Writer::import_bytes(bytes);
    return true;
  } catch (const CompileError&) {
    return false;
  }
}

std::int64_t peak_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  }
  return -1;
}

TEST_CASE("case 1: paths that are no regular file") {
  const TempFolder folder;
  CHECK_FAILS(failure_of(folder.path() / "missing.onnx"), "wanted a readable model file, found No such file or directory", 6);
  CHECK_FAILS(failure_of(folder.path()), "wanted a readable model file, found a folder; name the .onnx file in it", 6);
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK_FAILS(failure_of(folder.path() / "pipe"), "wanted a readable model file, found no regular file", 6);
  CHECK_FAILS(failure_of(std::filesystem::path("/dev/zero")), "wanted a readable model file, found no regular file", 6);
}

TEST_CASE("case 2: an empty file") {
  const TempFolder folder;
  CHECK_FAILS(failure_of(folder.write("empty.onnx", "")), "wanted an ONNX model with a graph, found an empty file", 3);
  Writer w;
  w.model.clear_graph();
  CHECK_FAILS(failure_of(w), "wanted an ONNX model with a graph, found none", 3);
}

TEST_CASE("case 3: other kinds of files") {
  const TempFolder folder;
  CHECK_FAILS(failure_of(folder.write("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")),
              "wanted an ONNX model, found a Git-LFS pointer; fetch the real file with `git lfs pull`", 3);
  CHECK_FAILS(failure_of(folder.write("page", "\n<!DOCTYPE html><html></html>")),
              "wanted an ONNX model, found an HTML or XML page; the download may have failed", 3);
  CHECK_FAILS(failure_of(folder.write("zip", "PK\x03\x04 archive")),
              "wanted an ONNX model, found a zip archive, perhaps a PyTorch checkpoint; export the model to ONNX first", 3);
  CHECK_FAILS(failure_of(folder.write("text", "hello, this is a text\n")),
              "wanted an ONNX model, found text that starts with 'hello, this is a text\\x0a'", 3);
  CHECK_FAILS(failure_of(folder.write("json", "{\"graph\": {}}")), "wanted an ONNX model, found JSON text", 3);
}

TEST_CASE("case 4: a model cut off at every byte") {
  const std::string whole = two_kilobytes();
  REQUIRE(whole.size() > 1500);
  REQUIRE(survives(whole));
  int good = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) good += survives(whole.substr(0, length));
  // Only what lies behind the graph may be missing, and the version of the operators comes last.
  CHECK(good == 0);
}

TEST_CASE("case 5: a model with any one bit flipped") {
  const std::string whole = two_kilobytes();
  int good = 0, bad = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ++(survives(damaged) ? good : bad);
  }
  CHECK(good > 0);  // bits of weights, names used once, the documentation
  CHECK(bad > 0);
}

TEST_CASE("case 6: impossible numbers and lengths") {
  const auto raw = [](const std::string& bytes) { return failure_of([&] { Writer::import_bytes(bytes); }); };
  CHECK_FAILS(
      raw("\x08" + std::string(11, '\xff')),
      "wanted an ONNX model, found a number of more than 10 bytes at byte 1 of 12; the file is damaged or of another kind", 3);
  CHECK_FAILS(raw("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
              "wanted an ONNX model, found a field of 18446744073709551615 bytes where 0 are left at byte 1 of 11; the file is "
              "damaged or of another kind",
              3);
  CHECK_FAILS(raw("\x3a\x80\x80\x80\x80\x04z"),
              "wanted an ONNX model, found a field of 1073741824 bytes where 1 are left at byte 1 of 7; the file is damaged or "
              "of another kind",
              3);
  CHECK_FAILS(
      raw(std::string("\x00\x01", 2)),
      "wanted an ONNX model, found a field of number 0 or out of range at byte 0 of 2; the file is damaged or of another kind",
      3);
}

// If inside If, `depth` deep, all of them true.
Writer nested(int depth) {
  Writer w;
  w.input("x", {4}).output("y", {4});
  auto& yes = *w.graph().add_initializer();
  yes.set_name("yes");
  yes.set_data_type(oclc_onnx::TensorProto::BOOL);
  yes.add_int32_data(1);
  test::GraphProto* graph = &w.graph();
  std::string result = "y";
  for (int i = 0; i < depth; ++i) {
    auto& node = *graph->add_node();
    Writer::fill(node, "If", {"yes"}, {result}, "if" + std::to_string(i));
    result = "r" + std::to_string(i);
    auto& other = *test::attribute(node, "else_branch", oclc_onnx::AttributeProto::GRAPH).mutable_g();
    Writer::fill(*other.add_node(), "Neg", {"x"}, {result});
    other.add_output()->set_name(result);
    graph = test::attribute(node, "then_branch", oclc_onnx::AttributeProto::GRAPH).mutable_g();
    graph->add_output()->set_name(result);
  }
  Writer::fill(*graph->add_node(), "Relu", {"x"}, {result});
  return w;
}

TEST_CASE("case 7: nested sub-graphs and groups") {
  CHECK(nested(32).import()->entries[0]->size() == 1);
  CHECK_FAILS(failure_of(nested(33)), "wanted sub-graphs nested at most 32 deep, found deeper ones", 3);
  CHECK_FAILS(failure_of(nested(40)), "wanted sub-graphs nested at most 32 deep, found deeper ones", 3);
  const std::string groups = relu_model().bytes() + std::string(100'000, '\xc3') + std::string(100'000, '\xc4');
  const auto failure = failure_of([&] { Writer::import_bytes(groups); });
  CHECK(failure.text.find("found ") != std::string::npos);
  CHECK(failure.code == ExitCode::bad_model);
  std::string deep = relu_model().bytes();
  for (int i = 0; i < 100'000; ++i) deep += "\xfb\x01";  // groups of field 31
  const auto deep_failure = failure_of([&] { Writer::import_bytes(deep); });
  CHECK(deep_failure.text.find("more than 100 nested groups") != std::string::npos);
}

TEST_CASE("case 8: 20 MB of empty nodes") {
  std::string nodes;
  nodes.reserve(20'000'000);
  for (int i = 0; i < 10'000'000; ++i) nodes.append("\x0a\x00", 2);
  std::string bytes = "\x3a";
  for (std::size_t length = nodes.size(); length > 0; length >>= 7)
    bytes += static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
  bytes += nodes;
  const std::int64_t before = peak_memory_kib();
  CHECK_FAILS(failure_of([&] { Writer::import_bytes(bytes); }),
              "wanted at most 1000000 nodes, found 1000001; the limit is there against damaged and hostile files", 3);
  CHECK(peak_memory_kib() - before < 256 * 1024);
}

TEST_CASE("case 9: a chain of a million nodes") {
  Writer w;
  w.input("x", {4}).output("v1000000", {4});
  std::string last = "x";
  for (int i = 1; i <= 1'000'000; ++i) {
    const std::string next = "v" + std::to_string(i);
    Writer::fill(*w.graph().add_node(), "Neg", {last}, {next});
    last = next;
  }
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  CHECK(w.import()->entries[0]->size() == 1'000'000);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 60);
}

TEST_CASE("case 10: a file of more than 2 GiB") {
  const TempFolder folder;
  const auto file = folder.write("large.onnx", "");
  std::filesystem::resize_file(file, std::uintmax_t{3} << 30);
  CHECK_FAILS(failure_of(file),
              "wanted a model file of at most 2147483647 bytes, found 3221225472 bytes; store the weights as external data", 3);
}

TEST_CASE("case 11: fields of a newer ONNX") {
  std::vector<std::string> warnings;
  const auto options = test::with_warnings(warnings);
  const std::string bytes = relu_model().bytes() + "\xa2\x06\x03new" + "\xa8\x06\x05";
  CHECK(Writer::import_bytes(bytes, options)->entries[0]->size() == 1);
  CHECK(warnings.empty());
}

}  // namespace
}  // namespace oclc
