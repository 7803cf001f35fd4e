// The trained network of examples/digits against its reference results.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ops/reference/evaluate.h"
#include "frontends/onnx/model/tensors.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::digits_test {

const std::filesystem::path kDigits = std::filesystem::path(OCLC_SOURCE_DIR) / "examples" / "digits";

HostTensor read_tensor(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  oclc_onnx::TensorProto proto;
  REQUIRE(proto.ParseFromIstream(&in));
  const ImportOptions options;
  onnx::ExternalFiles files(std::nullopt, options);
  onnx::check_tensor(proto, "tensor", options.limits, files);
  return onnx::TensorStore(files).get(proto);
}

TEST_CASE("the digits network gives its reference results") {
  const auto module = import_onnx(kDigits / "model.onnx");
  REQUIRE(module->symbols.size() == 1);
  const Graph& graph = *module->entries[0];
  CHECK(verify(graph) == "");
  const HostTensor images = read_tensor(kDigits / "test_data_set_0" / "input_0.pb");
  const HostTensor wanted = read_tensor(kDigits / "test_data_set_0" / "output_0.pb");
  const std::vector<HostTensor> found = evaluate(graph, std::vector{images});
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].type() == wanted.type());
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    worst = std::max(worst, std::fabs(found[0].at(i) - wanted.at(i)));
    largest = std::max(largest, std::fabs(wanted.at(i)));
  }
  CHECK(largest > 1);
  CHECK(worst <= 5e-6 * largest);
}

}  // namespace oclc::digits_test
