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
