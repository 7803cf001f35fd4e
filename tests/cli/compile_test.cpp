// oclc MODEL -o PLAN: what each option does.
#include <set>
#include <sstream>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "tests/cli/cli.h"

namespace {

using namespace oclc;
using namespace oclc::test;
using nlohmann::json;

std::string plan_text(const ModelFolder& folder, const std::string& options) {
  const Outcome outcome = oclc_stdout(folder.model() + " --target cpu --stop-after plan " + options);
  REQUIRE(outcome.status == 0);
  return outcome.text;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Names of the kernels that a plan launches.
std::set<std::string> kernels_of(const std::string& plan) {
  std::set<std::string> names;
  const std::regex launch("  launch [0-9]+ [a-z_]+ ([A-Za-z0-9_]+)\\(");
  for (std::sregex_iterator at(plan.begin(), plan.end(), launch), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

}  // namespace

TEST_CASE("the last line counts kernels, launches, arena and constants") {
  const ModelFolder folder;
  const Outcome symbolic = run_oclc(folder.model() + " --target cpu -o " + folder.at("plan.bin"));
  CHECK(symbolic.status == 0);
  CHECK(matches(symbolic.text,
                ".*/plan\\.bin: [0-9]+ kernels, [0-9]+ launches, arena [0-9.]+ [KM]?i?B at N=1, constants [0-9.]+ [KM]?i?B, "
                "compiled in [0-9.]+ s\n"));
  CHECK(std::filesystem::file_size(folder.path / "plan.bin") > 4096);
  const Outcome fixed = run_oclc(folder.model() + " --target cpu --dim N=3 -o " + folder.at("plan.bin"));
  CHECK(
      matches(fixed.text,
              ".*/plan\\.bin: [0-9]+ kernels, [0-9]+ launches, arena [0-9.]+ [KM]?i?B, constants [0-9.]+ [KM]?i?B, compiled in "
              "[0-9.]+ s\n"));
}

TEST_CASE("case 71: two compilations give the same bytes, and so does standard output") {
  const ModelFolder folder;
  CHECK(run_oclc(folder.model() + " --target cpu -o " + folder.at("a.bin")).status == 0);
  CHECK(run_oclc(folder.model() + " --target cpu -o " + folder.at("b.bin")).status == 0);
  CHECK(read_bytes(folder.path / "a.bin") == read_bytes(folder.path / "b.bin"));
  const Outcome piped = run("( " + kOclc + " " + folder.model() + " --target cpu -o - 2>" + folder.at("messages") + " >" +
                            folder.at("c.bin") + " )");
  CHECK(piped.status == 0);
  CHECK(read_bytes(folder.path / "a.bin") == read_bytes(folder.path / "c.bin"));
  CHECK(has(read_bytes(folder.path / "messages"), "standard output: "));
  const Outcome input = run_oclc("- --target cpu -o " + folder.at("d.bin") + " < " + folder.model());
  CHECK(input.status == 0);
  CHECK(read_bytes(folder.path / "a.bin") == read_bytes(folder.path / "d.bin"));
}

TEST_CASE("--dim and --shape fix sizes") {
  const ModelFolder folder;
  CHECK(has(plan_text(folder, ""), "input \"x\": f32[N, 2, 4, 4]"));
  CHECK(has(plan_text(folder, "--dim N=5"), "input \"x\": f32[5, 2, 4, 4]"));
  CHECK(has(plan_text(folder, "--shape x=7x2x4x4"), "input \"x\": f32[7, 2, 4, 4]"));
}

TEST_CASE("--disable takes lists and repetitions") {
  const ModelFolder folder;
  const std::string fused = plan_text(folder, ""), unfused = plan_text(folder, "--disable=fuse");
  CHECK(count_of(unfused, "  launch ") > count_of(fused, "  launch "));
  CHECK(has(unfused, "disable=fuse"));
  const std::string listed = plan_text(folder, "--disable cse,dce --disable fuse");
  for (const char* name : {"disable=cse", "disable=dce", "disable=fuse"}) CHECK(has(listed, name));
  const Outcome graph = oclc_stdout(folder.model() + " --target cpu --stop-after passes --disable fold_constants,fold_shapes");
  CHECK(has(graph.text, "add("));
  CHECK_FALSE(has(oclc_stdout(folder.model() + " --target cpu --stop-after passes").text, "add("));
}

TEST_CASE("target, strategy, engine and precision reach the plan") {
  const ModelFolder folder;
  CHECK(has(plan_text(folder, ""), "target=cpu precision=fp32"));
  const Outcome narrow = oclc_stdout(folder.model() + " --stop-after plan --target cpu-128 --precision strict --conv direct");
  CHECK(has(narrow.text, "target=cpu-128 precision=strict"));
  CHECK(has(narrow.text, "conv=direct"));
  CHECK(has(plan_text(folder, "--gemm own"), "gemm=own"));
  CHECK(has(plan_text(folder, "--precision fast"), "precision=fast"));
  CHECK(has(plan_text(folder, "--subnormals flush"), "subnormals=flush"));
  CHECK_FALSE(has(plan_text(folder, ""), "subnormals"));
}

TEST_CASE("case 83: without a device the target is cpu, and -v says so") {
  const ModelFolder folder;
  const Outcome outcome =
      run("OCL_ICD_VENDORS=/nonexistent " + kOclc + " -v " + folder.model() + " -o " + folder.at("plan.bin"));
  CHECK(outcome.status == 0);
  CHECK(has(outcome.text, "oclc: note: no OpenCL device found; compiling for target cpu\n"));
}

TEST_CASE("--device takes the facts of a device") {
  const ModelFolder folder;
  const Outcome outcome = run_oclc("-v --device cpu --stop-after plan " + folder.model());
  CHECK(outcome.status == 0);
  CHECK(has(outcome.text, "oclc: note: target cpu"));
}

TEST_CASE("texts of graph and passes parse back") {
  const ModelFolder folder;
  for (const std::string stage : {"graph", "passes"}) {
    const Outcome outcome = oclc_stdout(folder.model() + " --target cpu --stop-after " + stage + " -v");
    REQUIRE(outcome.status == 0);
    const Module module = parse_module(outcome.text, find_op);
    CHECK(print_module(module, {INT64_MAX}) == outcome.text);
  }
}

TEST_CASE("texts of the later stages") {
  const ModelFolder folder;
  const std::string from = folder.model() + " --target cpu --stop-after ";
  const std::string kernels = oclc_stdout(from + "kernels").text;
  CHECK(has(kernels, "symbol N >= 0\n"));
  CHECK(has(kernels, "input \"x\": f32[32*N]"));
  CHECK(has(kernels, "entry predict {\n"));
  CHECK_FALSE(has(kernels, "megakernel {"));
  CHECK(has(oclc_stdout(from + "schedule").text, "megakernel {"));
  const std::string code = oclc_stdout(from + "codegen").text;
  CHECK(count_of(code, "__kernel void") == kernels_of(plan_text(folder, "")).size());
  CHECK(run_oclc(from + "machine").status == 2);
}

TEST_CASE("--emit-dir writes every kernel, the graph and the plan") {
  const ModelFolder folder;
  CHECK(run_oclc(folder.model() + " --target cpu --emit-dir " + folder.at("out/deep")).status == 0);
  const std::filesystem::path out = folder.path / "out/deep";
  CHECK(has(read_bytes(out / "graph.dot"), "digraph"));
  CHECK(has(read_bytes(out / "kernels.txt"), "entry predict {"));
  const std::string plan = read_bytes(out / "plan.txt");
  CHECK(plan == plan_text(folder, ""));
  const json document = json::parse(read_bytes(out / "plan.json"));
  CHECK(document["symbols"][0]["name"] == "N");
  CHECK(kernels_of(plan).size() == files_in(out) - 7);
  const std::string page = read_bytes(out / "report.html");
  for (const std::string& kernel : kernels_of(plan)) CHECK(has(page, "<summary>" + kernel + "</summary>"));
  // Viewers read the graph; it is no model to run, which the compiler says.
  const Outcome again = run_oclc((out / "predict.onnx").string() + " --list-ops");
  CHECK(again.status == 4);
  CHECK(has(again.text, "oclc."));
  for (const json& launch : document["entries"][0]["launches"]) {
    const std::string name = launch["kernel"];
    CHECK(has(read_bytes(out / (name + ".cl")), name + "("));
  }
}

TEST_CASE("--report has one row a node") {
  const ModelFolder folder;
  const Outcome outcome = oclc_stdout(folder.model() + " --target cpu --report");
  REQUIRE(outcome.status == 0);
  std::istringstream lines(outcome.text);
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(lines, line);) rows[line.substr(0, line.find(' '))] = line;
  CHECK(has(rows["sum"], "folded"));
  CHECK(has(rows["stem.conv"], "kernel "));
  CHECK(has(rows["stem.relu"], "fused into "));
  CHECK(rows.count("head") == 1);
  const json document = json::parse(oclc_stdout(folder.model() + " --target cpu --report --json").text);
  CHECK(document["report"].size() == 6);
  CHECK(document["report"][0]["node"] == "stem.conv");
  const Outcome unfused = oclc_stdout(folder.model() + " --target cpu --report --disable fuse");
  CHECK_FALSE(has(unfused.text, "fused into"));
}

TEST_CASE("--report lists every strategy of each contraction, or why it is refused") {
  const std::string digits = OCLC_SOURCE_DIR "/examples/digits/model.onnx --target cpu --report";
  const Outcome outcome = oclc_stdout(digits);
  REQUIRE(outcome.status == 0);
  const json document = json::parse(oclc_stdout(digits + " --json").text);
  CHECK(has(outcome.text, "contraction "));
  CHECK(has(outcome.text, "amx_rows, amx_limb_window, amx_limbs: needs tile units that the contract of precision allows"));
  REQUIRE_FALSE(document["contractions"].empty());
  for (const json& contraction : document["contractions"]) {
    const json& candidates = contraction["candidates"];
    CHECK(candidates.size() > 20);
    CHECK(candidates[0].contains("seconds"));
    for (const json& candidate : candidates) CHECK(candidate.contains("seconds") != candidate.contains("why_not"));
  }
}

TEST_CASE("--json describes the compilation") {
  const ModelFolder folder;
  const json document = json::parse(oclc_stdout(folder.model() + " --target cpu --json -o " + folder.at("plan.bin")).text);
  CHECK(document["schema"] == 1);
  CHECK(document["target"] == "cpu");
  CHECK(document["dims"]["N"] == 1);
  CHECK(document["launches"].get<int>() > 0);
  CHECK(document["arena_bytes"].get<std::int64_t>() >= document["live_bytes"].get<std::int64_t>());
}

TEST_CASE("--quiet says nothing, --progress=json says each stage, --color obeys") {
  const ModelFolder folder;
  const std::string compile = folder.model() + " --target cpu -o " + folder.at("plan.bin");
  CHECK(run_oclc("-q " + compile).text.empty());
  std::istringstream lines(run_oclc("--json --progress json " + compile + " >/dev/null").text);
  std::istringstream progress(run("( " + kOclc + " -q --progress json " + compile + " 2>&1 >/dev/null )").text);
  std::vector<std::string> stages;
  for (std::string line; std::getline(progress, line);) stages.push_back(json::parse(line)["stage"]);
  CHECK(stages == std::vector<std::string>{"device", "graph", "passes", "kernels", "schedule", "codegen", "plan", "write"});
  CHECK(has(run_oclc("--color always missing.onnx -o x").text, "\033[1;31merror:\033[0m"));
  CHECK_FALSE(has(run_oclc("--color auto missing.onnx -o x").text, "\033"));
  CHECK(run_oclc("--color sometimes missing.onnx -o x").status == 2);
}

TEST_CASE("--list-ops counts operators and says what is missing") {
  const ModelFolder folder;
  const Outcome known = run_oclc("--list-ops " + folder.model());
  CHECK(known.status == 0);
  CHECK(matches(known.text, "[^]*Conv +17 +1  yes +stem.conv\n[^]*"));
  Writer w = small_model();
  w.node("Nonsense", {"f"}, {"z"}, "odd").set_domain("my.ops");
  w.model.add_opset_import()->set_domain("my.ops");
  w.model.mutable_opset_import(1)->set_version(1);
  folder.add("odd.onnx", w.bytes());
  const Outcome odd = run_oclc("--list-ops " + folder.at("odd.onnx"));
  CHECK(odd.status == 4);
  CHECK(has(odd.text, "my.ops.Nonsense"));
  CHECK(has(odd.text, "NO"));
  const json document = json::parse(oclc_stdout("--list-ops --json " + folder.at("odd.onnx")).text);
  CHECK(document["supported"] == false);
  CHECK(document["operators"].size() == 7);
}

TEST_CASE("external data: its folder and links") {
  Writer w = small_model();
  oclc_onnx::TensorProto& t = *w.graph().mutable_initializer(0);
  const std::string data = t.raw_data();
  t.clear_raw_data();
  t.set_data_location(oclc_onnx::TensorProto::EXTERNAL);
  auto* entry = t.add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  const Folder folder;
  folder.add("model.onnx", w.bytes());
  folder.add("data/weights.bin", data);
  const std::string compile =
      (folder.path / "model.onnx").string() + " --target cpu -q -o " + (folder.path / "plan.bin").string();
  const Outcome missing = run_oclc(compile);
  CHECK(missing.status == 6);
  CHECK(has(missing.text, "weights.bin"));
  CHECK(run_oclc(compile + " --external-data-dir " + (folder.path / "data").string()).status == 0);
  std::filesystem::create_symlink("data/weights.bin", folder.path / "weights.bin");
  CHECK(run_oclc(compile).status != 0);
  CHECK(run_oclc(compile + " --allow-symlinks").status == 0);
}

TEST_CASE("help fits a screen and names every option, the version is one line") {
  const Outcome help = run_oclc("--help");
  CHECK(help.status == 0);
  CHECK(count_of(help.text, "\n") <= 60);
  for (const char* option : {"--dim",
                             "--shape",
                             "--target",
                             "--device",
                             "--disable",
                             "--conv",
                             "--gemm",
                             "--precision",
                             "--output",
                             "--stop-after",
                             "--emit-dir",
                             "--report",
                             "--list-ops",
                             "--recompute",
                             "--json",
                             "--external-data-dir",
                             "--allow-symlinks",
                             "--allow-newer-opset",
                             "--verbose",
                             "--quiet",
                             "--color",
                             "--progress",
                             "--version"})
    CHECK_MESSAGE(has(help.text, option), option);
  CHECK(run_oclc("-h").text == help.text);
  CHECK(matches(run_oclc("--version").text, "oclc [0-9.]+\n"));
  for (const char* command : {"bench", "devices", "info"})
    CHECK(has(run_oclc(std::string(command) + " --help").text, "usage: oclc " + std::string(command)));
}

TEST_CASE("options of training: entries, seed, and an error without --train") {
  const ModelFolder folder;
  Writer w = small_model();
  w.graph().mutable_node(4)->set_input(0, "d");
  w.floats("ratio", {}, {0.25f});
  w.node("Dropout", {"m", "ratio"}, {"d"}, "drop");
  folder.add("dropout.onnx", w.bytes());
  const auto text_of = [&](const std::string& file, const std::string& options) {
    return oclc_stdout(folder.at(file) + " --target cpu --train cross_entropy --stop-after graph " + options).text;
  };
  const std::string plain = text_of("model.onnx", ""), drops = text_of("dropout.onnx", "--train-seed 7"),
                    all = text_of("model.onnx", "--train-seed 9 --accumulate --init");
  CHECK(plain.find("random.") == plain.npos);
  CHECK(plain.find("graph accumulate_step") == plain.npos);
  CHECK(plain.find("graph init") == plain.npos);
  CHECK(count_of(drops, "random_bits(") == 2);  // forward and backward
  CHECK(drops.find("state \"random.seed\" : u32[] = u32[] 7") != drops.npos);
  CHECK(drops.find("state \"random.step\" : u32[]") != drops.npos);
  CHECK(all.find("graph accumulate_step") != all.npos);
  CHECK(all.find("graph init") != all.npos);
  CHECK(all.find("state \"gradients.count\"") != all.npos);
  CHECK(all.find("state \"random.seed\" : u32[] = u32[] 9") != all.npos);
  for (const char* option : {"--train-seed 1", "--accumulate", "--init"}) {
    const Outcome outcome = run_oclc(folder.model() + " --target cpu -o " + folder.at("plan.bin") + " " + option);
    CHECK(outcome.status == 2);
    CHECK(outcome.text.find("means something with --train LOSS only") != outcome.text.npos);
  }
}
