// A folder of programs that several share: writers that are killed, clocks that disagree, other versions.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "oclc/oclc.hpp"
#include "runtime/package/package.h"
#include "tests/process.h"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace shared_cache_test {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// An entry, as program_cache.cpp writes it: magic, hash of what follows, bytes of the key, bytes of the binary, key, binary.
struct Entry {
  explicit Entry(std::string text) : bytes(std::move(text)) {
    std::memcpy(&key_bytes, bytes.data() + 16, sizeof key_bytes);
    key = bytes.substr(32, key_bytes);
  }
  void set_key(const std::string& to) {
    REQUIRE(to.size() == key.size());
    bytes.replace(32, key.size(), key = to);
    const std::uint64_t hash = package::hash64(std::as_bytes(std::span(bytes).subspan(16)));
    std::memcpy(bytes.data() + 8, &hash, sizeof hash);
  }
  // Where the cache looks for the key.
  fs::path place(const fs::path& folder) const {
    char name[40];
    std::snprintf(name, sizeof name, "%016llx.bin",
                  static_cast<unsigned long long>(package::hash64(std::as_bytes(std::span(key)))));
    return folder / name;
  }

  std::string bytes, key;
  std::uint64_t key_bytes = 0;
};

void set_time(const fs::path& path, std::time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("case 74: processes killed while they fill the cache leave one that works") {
  const TempDir dir;
  const std::string cache = dir / "cache", plan = dir / "plan.bin";
  const auto bytes = vector_plan_bytes();
  std::ofstream(plan, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const std::string command = "OCLC_CACHE_DIR=" + cache + " " + OCLC_BINARY_DIR + "/bin/oclrun " + plan + " --random --dim N=4";
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(run(command).status == 0);
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  int killed = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 2 == 0) fs::remove_all(cache);
    // From before the program starts to after it ends.
    const double seconds = whole * (0.2 + 1.0 * round / kRounds);
    const Outcome outcome = run("timeout -s KILL " + std::to_string(seconds) + " sh -c '" + command + "'");
    killed += outcome.status != 0 ? 1 : 0;
    if (round % 8 == 7) {
      const Made made = make(cache.c_str());
      CHECK(made.result == kExpected);
      CHECK(made.messages.empty());
    }
  }
  CHECK(killed > 0);
  make(cache.c_str());
  CHECK(make(cache.c_str()).stats.programs_cached == 1);
}

TEST_CASE("case 77: entries from the past, from the future, and that vanish or cannot be read, change no result") {
  const TempDir dir;
  make(dir.path().c_str());
  const fs::path entry = entries(dir.path()).at(0);
  for (const std::time_t when : {std::time_t{0}, std::time_t{1}, std::time_t{4102444800}}) {
    set_time(entry, when);
    const Made made = make(dir.path().c_str());
    CHECK(made.stats.programs_cached == 1);
    CHECK(made.result == kExpected);
    CHECK(made.messages.empty());
  }
  // A folder of a server that does not answer looks like one of these: no entry, an entry that is a folder, a dangling link.
  const std::string good = content(entry);
  fs::remove(entry);
  fs::create_directory(entry);
  CHECK(make(dir.path().c_str()).result == kExpected);
  fs::remove(entry);
  fs::create_symlink(dir / "nowhere", entry);
  CHECK(make(dir.path().c_str()).result == kExpected);
  fs::remove(entry);
  std::ofstream(entry, std::ios::binary) << good;
  CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
}

TEST_CASE("case 79: processes that build one text with PoCL take turns, whatever becomes of one of them") {
  const TempDir dir;
  make(nullptr);  // PoCL keeps the folder that it begins with; what the runtime puts beside it goes where the variable says
  const Setting pocl("POCL_CACHE_DIR", dir.path().c_str());
  const Setting quirk("OCLC_QUIRKS", "races_on_disk");
  CHECK(make(nullptr).result == kExpected);
  std::string lock;
  for (const fs::path& entry : entries(dir.path()))
    if (entry.extension() == ".lock") lock = entry;
  REQUIRE(!lock.empty());
  const auto seconds_while = [&](const auto& held) {
    const auto begin = std::chrono::steady_clock::now();
    held();
    CHECK(make(nullptr).result == kExpected);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Held by somebody who gives it back.
  const int file = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  std::thread other;
  CHECK(seconds_while([&] {
          REQUIRE(::flock(file, LOCK_EX) == 0);
          other = std::thread([file] {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            ::flock(file, LOCK_UN);
          });
        }) >= 0.5);
  other.join();
  ::close(file);
  // By a process that is killed.
  const pid_t child = ::fork();
  if (child == 0) {
    const int own = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
    if (own >= 0 && ::flock(own, LOCK_EX) == 0) ::pause();
    ::_exit(1);
  }
  const int probe = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 1000 && ::flock(probe, LOCK_EX | LOCK_NB) == 0; ++i) {
    ::flock(probe, LOCK_UN);
    ::usleep(1000);
  }
  ::close(probe);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(make(nullptr).result == kExpected);
  // Where there can be no file.
  const Setting nowhere("POCL_CACHE_DIR", "/proc/nowhere");
  CHECK(make(nullptr).result == kExpected);
}

TEST_CASE("case 78: entries of another version are neither used nor removed") {
  const TempDir dir;
  make(dir.path().c_str());
  const fs::path own = entries(dir.path()).at(0);
  Entry entry(content(own));
  REQUIRE(entry.place(dir.path()) == own);
  REQUIRE(entry.key.starts_with("oclc "));
  std::string other = entry.key;
  other[5] = other[5] == '9' ? '8' : '9';  // the version's first digit
  entry.set_key(other);
  const fs::path place = entry.place(dir.path());
  CHECK(place != own);
  std::ofstream(place, std::ios::binary) << entry.bytes;
  CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
  CHECK(content(place) == entry.bytes);
  // Under this version's name too, as if both had one hash.
  std::ofstream(own, std::ios::binary | std::ios::trunc) << entry.bytes;
  const Made made = make(dir.path().c_str());
  CHECK(made.stats.programs_built == 1);
  CHECK(made.stats.programs_cached == 0);
  CHECK(made.result == kExpected);
  CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
}

}  // namespace shared_cache_test
