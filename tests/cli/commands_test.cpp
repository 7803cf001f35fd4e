// oclc info, devices and bench.
#include "tests/cli/cli.h"

namespace {

using namespace oclc::test;
using nlohmann::json;

json document_of(const std::string& arguments) {
  const Outcome outcome = oclc_stdout(arguments);
  REQUIRE(outcome.status == 0);
  return json::parse(outcome.text);
}

}  // namespace

TEST_CASE("info of a plan: ports, launches, arena beside its bound") {
  const ModelFolder folder;
  REQUIRE(run_oclc(folder.model() + " --target cpu -o " + folder.at("plan.bin")).status == 0);
  const Outcome text = run_oclc("info " + folder.at("plan.bin"));
  CHECK(text.status == 0);
  for (const char* part :
       {"target cpu, precision fp32", "options: conv=auto gemm=own", "symbol N from 0", "entry predict at N=1",
        "input   x: f32[N, 2, 4, 4]", "output  y: f32[N, 48]", "largest sum of live bytes", "stem.conv"})
    CHECK_MESSAGE(has(text.text, part), part);
  const json one = document_of("info --json " + folder.at("plan.bin")),
             four = document_of("info --json --dim N=4 " + folder.at("plan.bin"));
  const json &e1 = one["entries"][0], &e4 = four["entries"][0];
  CHECK(four["symbols"][0]["value"] == 4);
  CHECK(e4["flops"].get<double>() == 4 * e1["flops"].get<double>());
  CHECK(e4["bytes"].get<double>() > 3 * e1["bytes"].get<double>());
  CHECK(e1["arena_bytes"].get<std::int64_t>() >= e1["live_bytes"].get<std::int64_t>());
  double sum = 0;
  for (const json& launch : e1["launches"]) sum += launch["bytes"].get<double>();
  CHECK(sum == e1["bytes"].get<double>());
  for (const json& buffer : e1["arena"])
    CHECK(buffer["offset"].get<std::int64_t>() + buffer["bytes"].get<std::int64_t>() <= e1["arena_bytes"].get<std::int64_t>());
  const Outcome memory = run_oclc("info --memory " + folder.at("plan.bin"));
  CHECK(memory.status == 0);
  for (const char* part : {"most bytes are alive at step ", "B  steps "}) CHECK_MESSAGE(has(memory.text, part), part);
  CHECK(run_oclc("info --memory " + folder.model()).status == 2);
  CHECK(run_oclc("info --dim M=4 " + folder.at("plan.bin")).status == 2);
  CHECK(run_oclc("info --dim N=0 " + folder.at("plan.bin")).status == 0);
  CHECK(run_oclc("info --dim N=-1 " + folder.at("plan.bin")).status == 2);
}

TEST_CASE("info of a model: ports, operators, parameters") {
  const ModelFolder folder;
  const json model = document_of("info --json " + folder.model());
  CHECK(model["kind"] == "model");
  CHECK(model["inputs"][0] == json{{"name", "x"}, {"type", "f32[N, 2, 4, 4]"}});
  CHECK(model["operators"]["Conv"] == 1);
  CHECK(model["symbols"] == json{"N"});
  CHECK(document_of("info --json --dim N=2 " + folder.model())["inputs"][0]["type"] == "f32[2, 2, 4, 4]");
  CHECK(has(run_oclc("info " + folder.model()).text, "output  y: f32[N, 48]\n"));
}

TEST_CASE("devices and targets are listed") {
  const Outcome targets = run("OCL_ICD_VENDORS=/nonexistent " + kOclc + " devices --targets");
  CHECK(targets.status == 0);
  for (const char* name : {"cpu ", "cpu-128 ", "gpu "}) CHECK(has("\n" + targets.text, "\n" + std::string(name)));
  CHECK(document_of("devices --targets --json")["targets"].size() >= 4);
  CHECK(document_of("devices --costs --json")["costs"].size() > 60);
  CHECK(run("OCL_ICD_VENDORS=/nonexistent " + kOclc + " devices --costs").text.starts_with("CoreFusionLaunchBytes "));
  const json devices = document_of("devices --json")["devices"];
  REQUIRE(devices.size() >= 1);
  CHECK(devices[0]["index"] == 0);
  CHECK(has(run_oclc("devices").text, devices[0]["name"]));
}

TEST_CASE("bench puts fused beside unfused") {
  const ModelFolder folder;
  const json document = document_of("bench --runs 3 --device cpu --json " + folder.model());
  const json& m = document["models"][0];
  CHECK(m["dims"]["N"] == 1);
  CHECK(m["fused"]["times_ms"].size() == 3);
  CHECK(m["fused"]["launches"].get<int>() < m["unfused"]["launches"].get<int>());
  CHECK(m["ratio"]["bytes"].get<double>() > 1);
  CHECK(m["max_rel"].get<double>() < 5e-6);
  const Outcome text = oclc_stdout("bench --runs 2 --device cpu --dim N=2 " + folder.model());
  CHECK(text.status == 0);
  CHECK(has(text.text, "model.onnx  N=2\n"));
  CHECK(has(text.text, "  ratio: time "));
  CHECK(run_oclc("bench --vs eager " + folder.model()).status == 2);
}

TEST_CASE("check-gradients compares with finite differences") {
  const ModelFolder folder;
  const Outcome text = run_oclc("check-gradients " + folder.model());
  CHECK(text.status == 0);
  for (const char* part : {"conv ", "relu ", "softmax ", "stem.conv", "check-gradients: PASS"})
    CHECK_MESSAGE(has(text.text, part), part);
  const json document = document_of("check-gradients --all --dim N=3 --json " + folder.model());
  CHECK(document["kind"] == "gradients");
  CHECK(document["passed"] == true);
  CHECK(document["variables"] == 3 * 2 * 4 * 4 + 6);
  CHECK(document["worst"].get<double>() < 1e-6);
  CHECK(document["worst"].get<double>() > 0);
  CHECK(document["whole_model"]["difference"].get<double>() != 0);
  CHECK(run_oclc("check-gradients --tolerance 1e-30 " + folder.model()).status == 7);
  CHECK(run_oclc("check-gradients --tolerance 0 " + folder.model()).status == 2);
  CHECK(run_oclc("check-gradients").status == 2);
}

TEST_CASE("check-gradients lists all operators without a gradient") {
  Folder folder;
  Writer w;
  w.input("x", {2, 8}).output("y", {2, 12});
  w.ints("sides", {4}, {0, 1, 0, 1});
  set_text(w.node("Pad", {"x", "sides"}, {"a"}, "repeat"), "mode", "edge");
  set_text(w.node("Pad", {"a", "sides"}, {"y"}, "mirror"), "mode", "reflect");
  folder.add("model.onnx", w.bytes());
  const Outcome outcome = run_oclc("check-gradients " + (folder.path / "model.onnx").string());
  CHECK(outcome.status == 4);
  CHECK(has(outcome.text, "node 'repeat' (pad)"));
  CHECK(has(outcome.text, "node 'mirror' (pad)"));
}
