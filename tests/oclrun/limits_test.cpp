// Limits of the machine on a process, and a driver whose folder is of no use.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/onnx/onnx_model.h"
#include "tests/process.h"
#include "tests/runtime/plans.h"
#include "tests/sanitized.h"

using namespace oclc::test;

namespace limits_test {
namespace {

const std::string kBin = std::string(OCLC_BINARY_DIR) + "/bin/";

struct Files : Folder {
  Files() {
    const std::vector<std::byte> bytes = vector_plan_bytes();
    add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    Writer w;
    w.input("x", {"N", 64}).output("y").floats("w", {64, 64}, std::vector<float>(64 * 64, 0.5F));
    std::string last = "x";
    for (int i = 0; i < 40; ++i) {
      const std::string product = "p" + std::to_string(i), next = i == 39 ? "y" : "h" + std::to_string(i);
      w.node("MatMul", {last, "w"}, {product});
      w.node("Relu", {product}, {next});
      last = next;
    }
    add("model.onnx", w.bytes());
  }
  std::string at(const std::string& file) const { return (path / file).string(); }
  Outcome oclc(const std::string& limit) const {
    return run(limit + "; " + kBin + "oclc " + at("model.onnx") + " --target cpu -o " + at("out.bin"));
  }
  Outcome oclrun(const std::string& limit, const std::string& n = "4") const {
    return run(limit + "; " + kBin + "oclrun " + at("plan.bin") + " --random --dim N=" + n + " --output y=" + at("y.npy"));
  }
};

// A line that begins with the program's name and says `part`.
void check_error(const Outcome& outcome, int status, const std::string& part) {
  CAPTURE(outcome.text);
  CHECK(outcome.status == status);
  CHECK(outcome.text.find(": error: ") != std::string::npos);
  CHECK(outcome.text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("case 105: sixteen descriptors, 256 KiB of stack and half a gigabyte of address space suffice to compile") {
  const Files files;
  CHECK(files.oclc("ulimit -n 16").status == 0);
  CHECK(files.oclc("ulimit -s 256").status == 0);
  if (!kSanitized) CHECK(files.oclc("ulimit -v 524288").status == 0);
}

TEST_CASE("case 105: sixteen descriptors and 256 KiB of stack suffice to run") {
  const Files files;
  CHECK(files.oclrun("ulimit -n 16").status == 0);
  CHECK(files.oclrun("ulimit -s 256").status == 0);
}

TEST_CASE("case 105: too few descriptors are an error, not a crash") {
  const Files files;
  const Outcome compiled = files.oclc("ulimit -n 3");
  CAPTURE(compiled.text);
  CHECK(compiled.status > 0);
  CHECK(compiled.status < 10);
  const Outcome ran = files.oclrun("ulimit -n 4");
  CAPTURE(ran.text);
  CHECK(ran.status > 0);
  CHECK(ran.status < 10);
}

TEST_CASE("case 105: files beyond the limit of their size are an error, and nothing half written stays") {
  const Files files;
  check_error(files.oclc("ulimit -f 8"), 6, "out.bin: cannot write: File too large");
  CHECK_FALSE(std::filesystem::exists(files.path / "out.bin"));
  // A megabyte for what the driver keeps of kernels (PoCL ends the process where it cannot write), and 4 for the result.
  check_error(files.oclrun("ulimit -f 2000", "1000000"), 6, "y.npy: cannot write: File too large");
  CHECK_FALSE(std::filesystem::exists(files.path / "y.npy"));
  CHECK(std::distance(std::filesystem::directory_iterator(files.path), {}) == 2);
}

TEST_CASE("case 79: a folder of PoCL's that cannot be used is named") {
  const Files files;
  files.add("file", "");
  check_error(files.oclrun("export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd POCL_CACHE_DIR=" + files.at("file") + "/below"),
              5, "POCL_CACHE_DIR");
}

TEST_CASE("case 79: where the file system of PoCL's folder is full, kernels are kept elsewhere, with one note") {
  const Files files;
  const std::string full = files.at("full");
  // Who may not mount cannot make a full file system.
  if (run("mkdir " + full + " && mount -t tmpfs -o size=200k none " + full).status != 0) return;
  const std::string tmp = files.at("tmp"), kept = tmp + "/oclc-pocl-" + std::to_string(::getuid());
  const auto start = [&] {
    return files.oclrun("mkdir -p " + tmp + "; export OCLC_DEVICE=cpu TMPDIR=" + tmp + " POCL_CACHE_DIR=" + full + "/below");
  };
  const Outcome cold = start(), warm = start();
  const bool held = std::filesystem::exists(kept), untouched = !std::filesystem::exists(full + "/below");
  const auto mode = std::filesystem::status(kept).permissions();
  // A folder that others may write is not taken.
  std::filesystem::permissions(kept, std::filesystem::perms::all);
  const Outcome elsewhere = start();
  run("umount " + full);
  const std::string begin = "oclrun: warning: PoCL's cache folder '" + full + "/below' has no room (",
                    end = " bytes left); what it compiles is kept in '" + kept + "'\n";
  for (const Outcome& outcome : {cold, warm}) {
    CAPTURE(outcome.text);
    CHECK(outcome.status == 0);
    CHECK(outcome.text.starts_with(begin));
    CHECK(outcome.text.ends_with(end));
    CHECK(std::count(outcome.text.begin(), outcome.text.end(), '\n') == 1);
  }
  CHECK(held);
  CHECK(untouched);
  CHECK(mode == std::filesystem::perms::owner_all);
  CHECK(elsewhere.status == 0);
  CHECK(elsewhere.text.find(kept) == std::string::npos);
}

}  // namespace limits_test
