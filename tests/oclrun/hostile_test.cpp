// What plans and outputs may do to the terminal, to files and to the process that runs them.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/process.h"
#include "tests/runtime/plans.h"
#include "tests/sanitized.h"

using namespace oclc;
using namespace oclc::test;

namespace {

const std::string kBin = std::string(OCLC_BINARY_DIR) + "/bin/";

std::string add_plan(const Folder& folder, const std::vector<std::byte>& bytes) {
  folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return (folder.path / "plan.bin").string();
}

fb::PlanT named_plan(const std::string& name) {
  fb::PlanT plan = vector_plan();
  plan.model = name;
  plan.options = {name};
  plan.symbols[0]->name = "N" + name;
  plan.buffers[3]->name = name;
  plan.entries[0]->inputs[0]->name = name;
  plan.entries[0]->outputs[0]->name = name;
  plan.entries[0]->steps[0]->body.AsLaunch()->nodes = {name};
  return plan;
}

// Whether a text could steer a terminal.
bool steers(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 127; });
}

}  // namespace

TEST_CASE("R2: names that would steer a terminal are shown as text") {
  const Folder folder;
  const std::string escape = "\x1b[31mred\x1b[0m\x07\x9b\xff";
  const std::string plan = add_plan(folder, finish(named_plan(escape), {1, 2, 3, 4}));
  const std::string shown = "\\x1b[31mred\\x1b[0m\\x07\\x9b\\xff";
  for (const std::string& command :
       {kBin + "oclc info " + plan, kBin + "oclrun " + plan + " --random --dim N=4",
        kBin + "oclrun " + plan + " --random --dim \"$(printf 'N\\033[31mred\\033[0m\\007\\233\\377')=4\" --print --profile"}) {
    const Outcome outcome = run(command);
    INFO(outcome.text);
    CHECK(outcome.text.find(shown) != std::string::npos);
    CHECK(!steers(outcome.text));
  }
}

TEST_CASE("R1: oclrun ends with an error where memory cannot be had" * doctest::skip(kSanitized)) {
  const Folder folder;
  const std::string plan = add_plan(folder, vector_plan_bytes());
  const auto within = [&](const std::string& kilobytes, const std::string& n) {
    return run("export POCL_MAX_PTHREAD_COUNT=2; ulimit -v " + kilobytes + "; " + kBin + "oclrun " + plan +
               " --random --dim N=" + n);
  };
  // What the driver and the compiler behind it take depends on their versions; 256 MiB of floats come on top.
  for (const std::string kilobytes : {"4000000", "1000000"}) CHECK(within(kilobytes, "4").status == 0);
  for (const std::string kilobytes : {"520000", "500000"}) {
    const Outcome outcome = within(kilobytes, "16777216");
    INFO(outcome.text);
    CHECK(outcome.status == 5);
    CHECK(outcome.text.starts_with("oclrun: error: "));
  }
  const Outcome limited = run(kBin + "oclrun " + plan + " --random --dim N=1000 --memory-limit 9999");
  CHECK(limited.status == 5);
  // How much the arena takes depends on the device's alignment.
  CHECK(limited.text.starts_with("oclrun: error: entry point 'predict' takes 16"));
  CHECK(limited.text.ends_with("state 0, constants 16), the context's limit is 9999; use a smaller batch\n"));
}

TEST_CASE("outputs are written to devices and pipes, and through links, none of which is replaced") {
  const Folder folder;
  const std::string plan = add_plan(folder, vector_plan_bytes());
  const auto output = [&](const std::string& path) {
    return run(kBin + "oclrun " + plan + " --random --dim N=4 --output y=" + path + " --trace " + path);
  };
  CHECK(output("/dev/null").status == 0);
  struct stat status {};
  REQUIRE(::stat("/dev/null", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
  CHECK(output("/dev/full").text == "oclrun: error: /dev/full: cannot write: No space left on device\n");
  namespace fs = std::filesystem;
  const fs::path real = folder.path / "real.npy", link = folder.path / "link.npy", pipe = folder.path / "pipe";
  fs::create_symlink("real.npy", link);
  CHECK(output(link.string()).status == 0);  // which names nothing yet
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_regular_file(real));
  CHECK(output(link.string()).status == 0);
  CHECK(fs::is_symlink(link));
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Outcome read = run("cat " + pipe.string() + " | wc -c & " + kBin + "oclrun " + plan +
                           " --random --dim N=4 --output y=" + pipe.string() + "; wait");
  CHECK(read.text == "144\n");
  CHECK(fs::is_fifo(pipe));
  fs::create_symlink("b", folder.path / "a");
  fs::create_symlink("a", folder.path / "b");
  CHECK(output((folder.path / "a").string()).text ==
        "oclrun: error: " + (folder.path / "a").string() + ": cannot write: Too many levels of symbolic links\n");
  CHECK(fs::is_symlink(folder.path / "a"));
  CHECK(output(folder.path.string()).text == "oclrun: error: " + folder.path.string() + ": cannot write: Is a directory\n");
}
