#include "runtime/package/checkpoint.h"

#include <cstring>

#include "tests/cli/cli.h"
#include "tests/runtime/plan_builder.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Variables "w" [3, 2, 1, 1] and "w/momentum".
std::shared_ptr<const package::Package> trained_plan() {
  fb::PlanT plan = new_plan();
  for (const char* name : {"w", "w/momentum"}) {
    auto v = std::make_unique<fb::VariableT>();
    v->name = name;
    v->buffer = static_cast<int>(plan.buffers.size());
    for (const std::int64_t d : {3, 2, 1, 1}) v->shape.push_back(E(d).ptr());
    plan.buffers.push_back(buffer(name, fb::BufferKind::state, 24));
    plan.variables.push_back(std::move(v));
  }
  return package::Package::from_memory(finish(plan));
}

}  // namespace

TEST_CASE("export-onnx writes the model with a checkpoint's weights, which compiles again") {
  const Folder folder;
  const auto file = [&](const std::string& name) { return (folder.path / name).string(); };
  folder.add("m.onnx", small_model().bytes());
  const std::vector<float> w = {1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f};
  package::write_checkpoint(file("state"), trained_plan()->plan(), 12, [&](auto, std::uint64_t begin, auto out) {
    std::memcpy(out.data(), reinterpret_cast<const char*>(w.data()) + begin, out.size());
  });
  const Outcome o = run_oclc("export-onnx --model " + file("m.onnx") + " --state " + file("state") + " -o " + file("t.onnx"));
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(o.text == file("t.onnx") + ": 1 trained weights of step 12, 3 initializers as they were\n");
  const std::string bytes = read_bytes(file("t.onnx"));
  CHECK(has(bytes, {reinterpret_cast<const char*>(w.data()), 24}));
  const Outcome graph = run_oclc("--target cpu --stop-after graph -v " + file("t.onnx"));
  CHECK(graph.status == 0);
  CHECK(has(graph.text, "5.5"));

  const Outcome again = run_oclc("export-onnx --model " + file("m.onnx") + " --state " + file("m.onnx") + " -o " + file("u"));
  CHECK(again.status == 3);
  CHECK(again.text == "oclc: error: " + file("m.onnx") + ": not a checkpoint (wrong magic number)\n");
  CHECK(run_oclc("export-onnx --model " + file("none") + " --state " + file("state") + " -o " + file("u")).status == 6);
  CHECK(run_oclc("export-onnx --model " + file("m.onnx") + " -o " + file("u")).status == 2);
  CHECK(!std::filesystem::exists(file("u")));
}

TEST_CASE("export-onnx names element types by their names, not by ONNX's numbers") {
  const Folder folder;
  const auto file = [&](const std::string& name) { return (folder.path / name).string(); };
  const std::vector<float> w(6, 1.5f);
  package::write_checkpoint(file("state"), trained_plan()->plan(), 12, [&](auto, std::uint64_t begin, auto out) {
    std::memcpy(out.data(), reinterpret_cast<const char*>(w.data()) + begin, out.size());
  });
  const auto refusal = [&](int type) {
    Writer model = small_model();
    for (auto& initializer : *model.model.mutable_graph()->mutable_initializer())
      if (initializer.name() == "w") initializer.set_data_type(type);
    folder.add("m.onnx", model.bytes());
    const Outcome o = run_oclc("export-onnx --model " + file("m.onnx") + " --state " + file("state") + " -o " + file("t.onnx"));
    CHECK(o.status == 3);
    CHECK(!std::filesystem::exists(file("t.onnx")));
    return o.text;
  };
  const std::string wanted =
      "oclc: error: " + file("m.onnx") + ": initializer 'w': wanted float32 [3, 2, 1, 1] as in the state, ";
  CHECK(refusal(TensorProto::DOUBLE) == wanted + "found float64 [3, 2, 1, 1]\n");
  CHECK(refusal(TensorProto::BFLOAT16) == wanted + "found bfloat16 [3, 2, 1, 1]\n");
  CHECK(refusal(TensorProto::INT64) == wanted + "found int64 [3, 2, 1, 1]\n");
  CHECK(refusal(TensorProto::UINT4) == wanted + "found uint4 [3, 2, 1, 1]\n");
  CHECK(refusal(TensorProto::COMPLEX64) == wanted + "found element type 14 of ONNX [3, 2, 1, 1]\n");
}
