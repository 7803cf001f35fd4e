// The oclc program and small models, for tests of the command line.
#pragma once
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/onnx/onnx_model.h"
#include "tests/process.h"

namespace oclc::test {

inline const std::string kOclc = OCLC_BINARY_DIR "/bin/oclc";

// Output and exit status of oclc with these arguments. Most tests name a target, so that they need no device.
inline Outcome run_oclc(const std::string& arguments) { return run("( " + kOclc + " " + arguments + " )"); }
// Standard output alone.
inline Outcome oclc_stdout(const std::string& arguments) { return run("( " + kOclc + " " + arguments + " 2>/dev/null )"); }

inline std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
inline bool matches(const std::string& text, const std::string& pattern) { return std::regex_match(text, std::regex(pattern)); }
inline std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// y = softmax(relu(conv(x, w)) flattened): x[N, 2, 4, 4]. A Dropout and an arithmetic on constants fold.
inline Writer small_model() {
  Writer w;
  w.input("x", {"N", 2, 4, 4}).output("y", {"N", 48});
  w.floats("w", {3, 2, 1, 1}, {0.5f, -1, 2, 0.25f, 1, -0.5f});
  w.floats("one", {1}, {1}).floats("two", {1}, {2}).ints("shape", {2}, {0, 48});
  w.node("Conv", {"x", "w"}, {"c"}, "stem.conv");
  w.node("Relu", {"c"}, {"r"}, "stem.relu");
  w.node("Add", {"one", "two"}, {"three"}, "sum");
  w.node("Mul", {"r", "three"}, {"m"}, "scale");
  w.node("Reshape", {"m", "shape"}, {"f"}, "flatten");
  w.node("Softmax", {"f"}, {"y"}, "head");
  return w;
}

// The folder with model.onnx of small_model() in it, and a shell-ready path of a file there.
struct ModelFolder : Folder {
  ModelFolder() { add("model.onnx", small_model().bytes()); }
  std::string at(const std::string& file) const { return (path / file).string(); }
  std::string model() const { return at("model.onnx"); }
};

}  // namespace oclc::test
