// Exit codes and the texts of errors.
#include <algorithm>

#include "tests/cli/cli.h"

namespace {

using namespace oclc::test;

// The text after "oclc: error: ", one line.
std::string error_of(const Outcome& outcome) {
  const std::string prefix = "oclc: error: ";
  CHECK(outcome.text.substr(0, prefix.size()) == prefix);
  return outcome.text.substr(std::min(prefix.size(), outcome.text.size()));
}

}  // namespace

TEST_CASE("exit code 2: the command line") {
  const ModelFolder folder;
  const std::string model = folder.model(), end = "; see oclc --help\n";
  const auto usage = [&](const std::string& arguments) {
    const Outcome outcome = run_oclc(arguments);
    CHECK(outcome.status == 2);
    return error_of(outcome);
  };
  CHECK(usage("") == "wanted a model file, found none" + end);
  CHECK(usage(model) == "wanted -o FILE, --emit-dir, --stop-after, --report or --list-ops" + end);
  CHECK(usage("tunes") ==
        "wanted a model file or a command (bench, cache, check-gradients, check-op, conformance, devices, export-onnx, info, "
        "new-op, refit, tune), found "
        "'tunes'; did you mean 'tune'?" +
            end);
  CHECK(usage(model + " -o x --dim N") == "wanted --dim NAME=NUMBER, found 'N'" + end);
  CHECK(usage(model + " -o x --dim N=-1") == "wanted --dim NAME=NUMBER, found 'N=-1'" + end);
  CHECK(usage(model + " -o x --dim N=2 --dim N=3") == "--dim N is given twice" + end);
  CHECK(usage(model + " -o x --shape x=1xtwo") == "wanted --shape NAME=1x3x224x224, found 'x=1xtwo'" + end);
  CHECK(usage(model + " -o x --conv fast") == "wanted --conv auto|im2col|implicit|direct|winograd, found 'fast'" + end);
  CHECK(usage(model + " -o x --gemm mkl") == "wanted --gemm own|clblast, found 'mkl'" + end);
  CHECK(usage(model + " -o x --subnormals zero") == "wanted --subnormals keep|flush, found 'zero'" + end);
  CHECK(
      usage(model + " -o x --target cpu --precision fp8") ==
      "wanted --precision strict|fp32|fast|tf32 for target cpu, found 'fp8'; 16-bit activations of a training run are --mixed "
      "f16 or --mixed bf16" +
          end);
  CHECK(usage(model + " --stop-after link") ==
        "wanted --stop-after graph|passes|kernels|schedule|codegen|plan, found 'link'" + end);
  CHECK(usage(model + " -o x --target cpu --device 0") == "wanted --target or --device, found both" + end);
  CHECK(has(usage(model + " -o x --target tpu"), "wanted one of cpu, "));
  CHECK(has(usage(model + " -o x --target cpu --disable fusion"), "found 'fusion'"));
  CHECK(has(usage(model + " -o x --target cpu --dim M=2"), "M"));
  CHECK(has(usage(model + " -o x --bogus"), "--bogus"));
  CHECK(has(usage("info"), "wanted a plan or a model, found none"));
  CHECK(has(usage("bench"), "wanted a model file, found none"));
}

TEST_CASE("exit code 3: a bad model names file and node") {
  const ModelFolder folder;
  folder.add("text.onnx", "version https://git-lfs.github.com/spec/v1\n");
  const Outcome pointer = run_oclc(folder.at("text.onnx") + " --target cpu -o " + folder.at("plan.bin"));
  CHECK(pointer.status == 3);
  CHECK(error_of(pointer) ==
        folder.at("text.onnx") + ": wanted an ONNX model, found a Git-LFS pointer; fetch the real file with `git lfs pull`\n");
  Writer w;
  w.input("a", {2, 3}).input("b", {4, 5}).output("y").node("MatMul", {"a", "b"}, {"y"}, "mm");
  folder.add("shapes.onnx", w.bytes());
  const Outcome shapes = run_oclc(folder.at("shapes.onnx") + " --target cpu -o " + folder.at("plan.bin"));
  CHECK(shapes.status == 3);
  CHECK(has(error_of(shapes), folder.at("shapes.onnx") + ": node 'mm' (MatMul): wanted "));
  folder.add("broken.bin", std::string("OCLC\r\n\x1a\n", 8) + std::string(200, 'x'));
  const Outcome plan = run_oclc("info " + folder.at("broken.bin"));
  CHECK(plan.status == 3);
  CHECK(has(error_of(plan), folder.at("broken.bin") + ": "));
  CHECK_FALSE(std::filesystem::exists(folder.path / "plan.bin"));
}

TEST_CASE("exit code 4: what is not supported is listed at once") {
  const ModelFolder folder;
  Writer w;
  w.input("x", {2, 3}).output("z");
  w.node("Frobnicate", {"x"}, {"y"}, "first");
  w.node("Defrobnicate", {"y"}, {"z"}, "second");
  folder.add("odd.onnx", w.bytes());
  const Outcome odd = run_oclc(folder.at("odd.onnx") + " --target cpu -o " + folder.at("plan.bin"));
  CHECK(odd.status == 4);
  CHECK(has(odd.text, "Frobnicate"));
  CHECK(has(odd.text, "Defrobnicate"));
  CHECK(has(odd.text, "oclc --list-ops"));
  const Outcome precision = run_oclc(folder.model() + " --target cpu --precision bf16 -o " + folder.at("plan.bin"));
  CHECK(precision.status == 4);
  CHECK(error_of(precision) == folder.model() +
                                   ": wanted --precision strict, fp32, fast or tf32, or bf16 for a target whose units multiply "
                                   "bfloat16, found 'bf16' for "
                                   "target cpu; no kernel computes in it there; `tf32` is the nearest\n");
}

TEST_CASE("exit code 5: no such device") {
  const ModelFolder folder;
  const Outcome none = run("OCL_ICD_VENDORS=/nonexistent " + kOclc + " devices");
  CHECK(none.status == 5);
  CHECK(has(none.text, "oclc: error: no OpenCL device found; install a driver"));
  CHECK(run("OCL_ICD_VENDORS=/nonexistent " + kOclc + " bench " + folder.model()).status == 5);
  const Outcome beyond = run_oclc(folder.model() + " --device 99 -o " + folder.at("plan.bin"));
  CHECK(beyond.status == 5);
  CHECK(has(error_of(beyond), "device index 99 is out of range"));
}

TEST_CASE("exit code 6: files, and nothing half written stays behind") {
  const ModelFolder folder;
  std::filesystem::create_directory(folder.path / "taken");
  const std::size_t before = files_in(folder.path);
  const auto io = [&](const std::string& arguments) {
    const Outcome outcome = run_oclc(arguments);
    CHECK(outcome.status == 6);
    CHECK(files_in(folder.path) == before);
    return error_of(outcome);
  };
  const std::string compile = folder.model() + " --target cpu -o ";
  CHECK(io(compile + folder.at("taken")) == folder.at("taken") + ": cannot write the plan: Is a directory\n");
  CHECK(io(compile + folder.at("no/plan.bin")) ==
        folder.at("no/plan.bin") + ": cannot write the plan: No such file or directory\n");
  CHECK(has(io(compile + "/dev/full"), "No space left on device"));
  CHECK(has(io(compile + "- > /dev/full"), "No space left on device"));
  CHECK(has(io(folder.model() + " --target cpu --emit-dir " + folder.model()), folder.model()));
  CHECK(has(io("info " + folder.at("missing.bin")), "missing.bin: wanted a readable model file, found "));
  CHECK(io("devices --targets > /dev/full") == "standard output: cannot write: No space left on device\n");
}

TEST_CASE("a failed compilation leaves the old plan") {
  const ModelFolder folder;
  folder.add("plan.bin", "old");
  CHECK(run_oclc(folder.model() + " --target cpu --disable nonsense -o " + folder.at("plan.bin")).status == 2);
  CHECK(read_bytes(folder.path / "plan.bin") == "old");
}

TEST_CASE("case 106: exit code 130: an interrupt leaves no file") {
  const ModelFolder folder;
  const std::size_t before = files_in(folder.path);
  const Outcome outcome =
      run("sleep 20 | timeout --preserve-status -s INT 0.5 " + kOclc + " - --target cpu -o " + folder.at("plan.bin"));
  CHECK(outcome.status == 130);
  CHECK(files_in(folder.path) == before);
}

TEST_CASE("case 107: a reader that has gone ends the tool quietly") {
  const Outcome outcome = run("( ( sleep 0.2; " + kOclc + " devices --targets; echo $? >&2 ) | true )");
  CHECK(outcome.text == "141\n");
}
