// What wrong command lines are told: the nearest name, limits in numbers that a person reads, files by their names.
#include <set>

#include "tests/cli/cli.h"

namespace wrong_line_test {

using namespace oclc;
using namespace oclc::test;

std::string refusal(const std::string& arguments, int status) {
  const Outcome o = run_oclc(arguments);
  CHECK(o.status == status);
  return o.text;
}

TEST_CASE("unknown options are named in their order, with the nearest known one") {
  const ModelFolder folder;
  CHECK(refusal(folder.model() + " --precisoin fast --what -o plan.bin", 2) ==
        "oclc: error: unknown option '--precisoin', did you mean '--precision'?; unknown option '--what'; not expected here: "
        "'fast'; see oclc --help\n");
  CHECK(refusal(folder.model() + " --targets=cpu -o plan.bin", 2) ==
        "oclc: error: unknown option '--targets', did you mean '--target'?; see oclc --help\n");
  CHECK(refusal("export-onnx --modle m --state s -o o", 2).starts_with("oclc: error: "));
}

TEST_CASE("unknown commands, passes and targets get the nearest name") {
  const ModelFolder folder;
  CHECK(refusal("becnh", 2) ==
        "oclc: error: wanted a model file or a command (bench, cache, check-gradients, check-op, conformance, devices, "
        "export-onnx, "
        "info, new-op, refit, tune), "
        "found 'becnh'; did you mean 'bench'?; see oclc --help\n");
  CHECK_FALSE(has(refusal("xyzzy", 2), "did you mean"));
  const std::string compile = folder.model() + " -o " + folder.at("plan.bin");
  CHECK(has(refusal(compile + " --target cpu --disable fold_batchnrom", 2),
            "found 'fold_batchnrom'; did you mean 'fold_batchnorm'?"));
  CHECK(has(refusal(compile + " --target cpu-182", 2), "found target 'cpu-182'; did you mean 'cpu-128'?"));
}

TEST_CASE("passes answer to the names that they had, with a warning") {
  const ModelFolder folder;
  const std::string compile = folder.model() + " --target cpu --stop-after=schedule --disable ";
  const Outcome before = run_oclc(compile + "resident"), now = run_oclc(compile + "megakernel");
  CHECK(before.status == 0);
  CHECK(has(before.text,
            "oclc: warning: --disable=resident: the pass is called megakernel now; the old name goes with the next release\n"));
  CHECK_FALSE(has(now.text, "warning"));
  CHECK_FALSE(has(now.text, "megakernel {"));
  CHECK_FALSE(has(before.text, "megakernel {"));
}

TEST_CASE("numbers out of range are refused in few digits") {
  CHECK(refusal("bench m.onnx --runs 0", 2) == "oclc: error: --runs: wanted a number above 0, found '0'; see oclc --help\n");
  CHECK(refusal("conformance d --jobs 0", 2) ==
        "oclc: error: --jobs: wanted a number from 1 to 1024, found '0'; see oclc --help\n");
  CHECK(refusal("tune m.onnx --db d --trials x", 2) ==
        "oclc: error: --trials: wanted a number above 0, found 'x'; see oclc --help\n");
}

TEST_CASE("a contract of precision that the target refuses is not offered for it") {
  const ModelFolder folder;
  CHECK(refusal(folder.model() + " --target cpu --precision half -o " + folder.at("plan.bin"), 2) ==
        "oclc: error: wanted --precision strict|fp32|fast|tf32 for target cpu, found 'half'; 16-bit activations of a training "
        "run are --mixed f16 or --mixed bf16; see oclc --help\n");
  CHECK(has(refusal(folder.model() + " --target cpu-amx --precision half -o " + folder.at("plan.bin"), 2),
            "wanted --precision strict|fp32|fast|tf32|bf16 for target cpu-amx, found 'half'"));
}

TEST_CASE("a loss of an output that is not there is told which are") {
  const ModelFolder folder;
  CHECK(has(refusal(folder.model() + " --target cpu --train mse --train-output foo -o " + folder.at("plan.bin"), 2),
            "wanted an output of the model as what the loss reads: y, found 'foo'"));
}

TEST_CASE("a filter that no case fits is what is wrong") {
  Folder folder;
  folder.add("node/test_abs/model.onnx", small_model().bytes());
  CHECK(refusal("conformance " + folder.path.string() + " --filter 'nothing*'", 2) ==
        "oclc: error: wanted --filter that fits a case, found 'nothing*', which fits none of 1; see oclc --help\n");
  const Folder empty;
  CHECK(refusal("conformance " + empty.path.string(), 2) ==
        "oclc: error: wanted folders that hold a model.onnx, found none; see oclc --help\n");
}

TEST_CASE("--emit-dir removes kernels of the compilation before, and nothing else") {
  const ModelFolder folder;
  const std::string compile = folder.model() + " --target cpu -q --emit-dir " + folder.at("out");
  REQUIRE(run_oclc(compile + " --disable fuse").status == 0);
  folder.add("out/mine.cl", "mine");
  folder.add("out/notes.txt", "notes");
  const auto kernels = [&] {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder.path / "out"))
      if (file.path().extension() == ".cl") names.insert(file.path().filename().string());
    return names;
  };
  const std::set<std::string> before = kernels();
  REQUIRE(run_oclc(compile).status == 0);
  const std::set<std::string> after = kernels();
  CHECK(after.size() < before.size());
  CHECK(after.contains("mine.cl"));
  CHECK(std::filesystem::exists(folder.path / "out/notes.txt"));
  const std::string list = read_bytes(folder.path / "out/files.txt");
  for (const std::string& name : after) CHECK((name == "mine.cl" || has(list, name + "\n")));
  // A list from elsewhere reaches nothing outside of the folder.
  folder.add("outside.cl", "outside");
  folder.add("out/files.txt", "../outside.cl\nnotes.txt\n");
  REQUIRE(run_oclc(compile).status == 0);
  CHECK(std::filesystem::exists(folder.path / "outside.cl"));
  CHECK(std::filesystem::exists(folder.path / "out/notes.txt"));
}

TEST_CASE("plan.txt tells where the constants of a megakernel lie") {
  const ModelFolder folder;
  const std::string text = oclc_stdout(folder.model() + " --target cpu --stop-after plan").text;
  CHECK(std::regex_search(text, std::regex("buffer \\d+ constant \"w\" \\w+ bytes=0 in buffer \\d+ \\+ 0")));
  CHECK_FALSE(has(text, "bytes=0 offset="));
}

}  // namespace wrong_line_test
