// Signals in the middle of a compilation.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tests/cli/cli.h"

namespace interrupt_test {
namespace {

using namespace oclc::test;

// A model that takes seconds.
std::string large_model() {
  Writer w;
  w.input("x", {"N", 32}).output("y").floats("w", {32, 32}, std::vector<float>(32 * 32, 0.1F));
  std::string last = "x";
  constexpr int kLayers = 6000;
  for (int i = 0; i < kLayers; ++i) {
    const std::string product = "p" + std::to_string(i), next = i + 1 == kLayers ? "y" : "h" + std::to_string(i);
    w.node("MatMul", {last, "w"}, {product});
    w.node("Sin", {product}, {next});
    last = next;
  }
  return w.bytes();
}

struct Ended {
  int status = 0;
  double seconds = 0;  // from the signal on
};

// oclc on the model, and signals that come when so much time has passed.
Ended interrupted(const Folder& folder, const std::vector<int>& signals, std::chrono::milliseconds after) {
  const std::string model = (folder.path / "large.onnx").string(), plan = (folder.path / "plan.bin").string();
  std::fflush(stdout);  // or both processes write what stands in its buffer
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) ::_exit(99);
    ::execl(kOclc.c_str(), "oclc", model.c_str(), "--target", "cpu", "-o", plan.c_str(), static_cast<char*>(nullptr));
    ::_exit(99);
  }
  std::this_thread::sleep_for(after);
  const auto begin = std::chrono::steady_clock::now();
  for (const int signal : signals) ::kill(child, signal);
  Ended ended;
  REQUIRE(::waitpid(child, &ended.status, 0) == child);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

}  // namespace

TEST_CASE("case 106: an interrupt at any moment ends a compilation within a second and leaves no file") {
  const Folder folder;
  folder.add("large.onnx", large_model());
  int in_the_middle = 0;
  for (const int after : {30, 150, 400, 900, 1500}) {
    for (const std::vector<int>& signals : {std::vector<int>{SIGINT}, {SIGTERM}, {SIGINT, SIGINT}}) {
      const Ended ended = interrupted(folder, signals, std::chrono::milliseconds(after));
      CAPTURE(after);
      CHECK(ended.seconds < 1);
      // Before it listens, the signal ends it; behind its end, nothing does.
      if (WIFSIGNALED(ended.status)) {
        CHECK(WTERMSIG(ended.status) == signals[0]);
      } else if (WEXITSTATUS(ended.status) != 0) {
        CHECK(WEXITSTATUS(ended.status) == 128 + signals[0]);
        ++in_the_middle;
      }
      if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) != 0) CHECK(files_in(folder.path) == 1);
      std::filesystem::remove(folder.path / "plan.bin");
    }
  }
  CHECK(in_the_middle > 0);
}

TEST_CASE("case 106: an interrupt while a run is compiled by the driver ends it") {
  const ModelFolder folder;
  REQUIRE(run_oclc(folder.model() + " --target cpu -o " + folder.at("plan.bin")).status == 0);
  const std::string command = "mkdir -p " + folder.at("pocl") + "; POCL_CACHE_DIR=" + folder.at("pocl") +
                              " timeout --preserve-status -s INT 0.3 " OCLC_BINARY_DIR "/bin/oclrun " + folder.at("plan.bin") +
                              " --random --dim N=3 --runs 1000000000";
  const Outcome outcome = run(command);
  CAPTURE(outcome.text);
  CHECK(outcome.status == 130);
}

}  // namespace interrupt_test
