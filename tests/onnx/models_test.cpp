// The models under tests/models: each is read with symbolic and with bound dimensions.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::models_test {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(OCLC_SOURCE_DIR) / "tests" / "models";

nlohmann::json read_json(const fs::path& file) { return nlohmann::json::parse(std::ifstream(file)); }

// A folder with weights of the right size, all zero.
void write_zero_weights(const fs::path& model, const fs::path& folder) {
  const auto recipe = read_json(model / "weights.json");
  const fs::path file = folder / recipe["weights"].get<std::string>();
  std::ofstream(file).flush();
  fs::resize_file(file, recipe["bytes"].get<std::uintmax_t>());
}

// The shapes of the outputs with the symbols bound.
std::vector<std::int64_t> sizes(const Shape& shape, const SymbolValues& symbols) {
  std::vector<std::int64_t> out;
  for (const Expr& e : shape) out.push_back(e.evaluate(symbols).value_or(-1));
  return out;
}

void check_model(const std::string& name) {
  const test::TempFolder folder;
  const fs::path model = kModels / name;
  write_zero_weights(model, folder.path());
  const auto description = read_json(model / "cases.json");
  ImportOptions options;
  options.external_data_dir = folder.path();
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto symbolic = import_onnx(model / "model.onnx", options);
  REQUIRE(symbolic->entries.size() == 1);
  const Graph& graph = *symbolic->entries[0];
  CHECK(verify(graph) == "");
  CHECK(!symbolic->symbols.empty());
  for (const std::string& w : warnings) MESSAGE(w);
  for (const auto& test_case : description["cases"]) {
    // The cases' names of dimensions, by the inputs that show them.
    SymbolValues values;
    ImportOptions bound = options;
    REQUIRE(description["inputs"].size() == graph.inputs().size());
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const auto& input = description["inputs"][i];
      CHECK(graph.inputs()[i]->name == input["name"].get<std::string>());
      std::vector<std::int64_t> shape;
      for (std::size_t axis = 0; axis < input["shape"].size(); ++axis) {
        const auto& dim = input["shape"][axis];
        const std::int64_t size =
            dim.is_string() ? test_case["dims"][dim.get<std::string>()].get<std::int64_t>() : dim.get<std::int64_t>();
        shape.push_back(size);
        if (const auto symbol = graph.inputs()[i]->type.shape[axis].symbol_name()) values[*symbol] = size;
      }
      bound.shapes[input["name"]] = shape;
    }
    const auto fixed = import_onnx(model / "model.onnx", bound);
    CHECK(verify(*fixed->entries[0]) == "");
    CHECK(fixed->symbols.empty());
    for (const auto& output : test_case["outputs"]) {
      const auto wanted = output["shape"].get<std::vector<std::int64_t>>();
      bool found = false;
      for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        if (graph.outputs()[i].first != output["name"].get<std::string>()) continue;
        found = true;
        CHECK(sizes(graph.outputs()[i].second->type.shape, values) == wanted);
        CHECK(sizes(fixed->entries[0]->outputs()[i].second->type.shape, {}) == wanted);
      }
      CHECK(found);
    }
  }
}

TEST_CASE("alexnet is read") { check_model("alexnet"); }
TEST_CASE("bert_base is read") { check_model("bert_base"); }
TEST_CASE("densenet121 is read") { check_model("densenet121"); }
TEST_CASE("efficientnet_b0 is read") { check_model("efficientnet_b0"); }
TEST_CASE("googlenet is read") { check_model("googlenet"); }
TEST_CASE("gpt2 is read") { check_model("gpt2"); }
TEST_CASE("gpt2_decode is read") { check_model("gpt2_decode"); }
TEST_CASE("lstm_lm is read") { check_model("lstm_lm"); }
TEST_CASE("mobilenet_v2 is read") { check_model("mobilenet_v2"); }
TEST_CASE("resnet18 is read") { check_model("resnet18"); }
TEST_CASE("resnet50 is read") { check_model("resnet50"); }
TEST_CASE("squeezenet1_1 is read") { check_model("squeezenet1_1"); }
TEST_CASE("vgg16 is read") { check_model("vgg16"); }
TEST_CASE("vit_b_16 is read") { check_model("vit_b_16"); }

}  // namespace oclc::models_test
