// examples/digits/waiting.h: what keeps somebody waiting is told of.
#include "examples/digits/waiting.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/process.h"

namespace {

// What stands on standard error, which is a file, when so much time has passed.
std::string told_after(std::chrono::milliseconds time) {
  const oclc::test::Folder folder;
  const std::string file = (folder.path / "errors").string();
  const int saved = ::dup(STDERR_FILENO), to = ::open(file.c_str(), O_CREAT | O_WRONLY, 0600);
  REQUIRE(::dup2(to, STDERR_FILENO) >= 0);
  {
    const examples::Waiting waiting("compiling kernels");
    std::this_thread::sleep_for(time);
  }
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(to);
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("waiting is told of after a second, in a line where standard error is a file") {
  CHECK(told_after(std::chrono::milliseconds(1500)) == "compiling kernels (1 s)\n");
}

TEST_CASE("what is quick is not told of") { CHECK(told_after(std::chrono::milliseconds(50)).empty()); }
